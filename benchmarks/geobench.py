"""Do the intervals of capability scores hold? ``python benchmarks/geobench.py [--sets 100] [--errors normal]``.

Every backbone of the base submission is taken for the truth: its mean and spread on each dataset. From these, five
seeds are drawn again and again, and it is counted how often an interval holds the expected score, which is the average
over all draws: ours; the same with 1.96 standard errors; and 1.96 times the published ±, which is the standard error
divided by 10. ``worst`` is the backbone whose interval holds least often. ``ranks`` is how often the interval of a
backbone's rank holds the rank of its expected score among the others, and how many ranks are in it.

Before that: the published ± and our standard error, on average over the backbones, and by how many errors of a mean of
100 resamples the published score is off at most. It is the table of docs/howto/geobench.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from neuco_core.boards.stats.ranking import positions
from neuco_extensions.geobench.board_scores import rank
from neuco_extensions.geobench.facts import CAPABILITIES
from neuco_extensions.geobench.iqm import (
    GEOBENCH,
    REPLICATES,
    ComparedScore,
    PooledScore,
    capability_table,
    load_normaliser,
    score,
)
from neuco_extensions.geobench.submission import read_submission

REGISTRY = Path(__file__).parents[1] / "registry"
BASE, SEEDS, RESAMPLES = "114be1f0", 5, 300
HEADS = ("capability", "± published", "SE", "off by", "interval", "worst", "1.96 SE", "1.96 ±", "ranks")
Errors = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
# By name: errors of mean 0 and variance 1.
ERRORS: dict[str, Errors] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "heavy": lambda rng, shape: rng.standard_t(5, shape) / np.sqrt(5 / 3),
    "skewed": lambda rng, shape: 1 - rng.exponential(1, shape),
}


def truths() -> dict[str, dict[str, tuple[float, float]]]:
    """By backbone and dataset: mean and standard deviation of normalised scores."""
    normaliser = load_normaliser(GEOBENCH)
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for own in read_submission(REGISTRY / "geobench" / BASE).runs:
        values = normaliser(own.dataset, own.scores)
        found.setdefault(own.backbone, {})[own.dataset] = float(values.mean()), float(values.std(ddof=1))
    return found


def drawn(
    cells: Sequence[Sequence[tuple[float, float]]], rng: np.random.Generator, sets: int, errors: Errors
) -> list[list[PooledScore]]:
    """``sets`` boards: a score for each backbone, from seeds drawn anew."""
    found = []
    for _ in range(sets):
        board = []
        for own in cells:
            mean, spread = np.array(own).T[:, :, None]
            board.append(score((mean + spread * errors(rng, (len(own), SEEDS))).tolist(), replicates=RESAMPLES))
        found.append(board)
    return found


def covered(boards: Sequence[Sequence[PooledScore]]) -> tuple[np.ndarray, float]:
    """The shares of boards in which the three intervals hold the expected score, and the least one of ours."""
    value = np.array([[own.value for own in board] for board in boards])
    away = np.abs(value - value.mean(axis=0))
    half = np.array([[own.high - own.value for own in board] for board in boards])
    error = 1.96 * np.array([[own.error for own in board] for board in boards])
    shares = [(away < ends).mean(axis=0) for ends in (half, error, error / np.sqrt(REPLICATES))]
    return np.mean(shares, axis=1), float(shares[0].min())


def ranked(boards: Sequence[Sequence[PooledScore]]) -> tuple[float, float]:
    """The share of ranks that their intervals hold, and the mean number of ranks in an interval."""
    truth = positions(-np.mean([[own.value for own in board] for board in boards], axis=0))
    names = [str(number) for number in range(len(truth))]
    intervals = [rank(dict(zip(names, board, strict=True))).ranks for board in boards]
    low, high = np.array([[ranks[name] for name in names] for ranks in intervals]).transpose(2, 0, 1)
    return float(np.mean((low <= truth) & (truth <= high))), float((high - low + 1).mean())


def table(sets: int, seed: int = 1, errors: str = "normal", only: str = "") -> dict[str, list[list[PooledScore]]]:
    """By capability: boards drawn anew; of ``only`` one if it is named."""
    rng, known = np.random.default_rng(seed), truths()
    return {
        capability: drawn(
            [[own[d] for d in datasets] for own in known.values() if all(d in own for d in datasets)],
            rng, sets, ERRORS[errors],
        )
        for capability, datasets in CAPABILITIES.items()
        if only in ("", capability)
    }  # fmt: skip


def off_by(pair: ComparedScore) -> float:
    """The difference of the published score to ours, in errors of a mean of 100 resamples."""
    return float(abs(pair.official - pair.ours.value) / (pair.ours.error / np.sqrt(REPLICATES)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--errors", choices=ERRORS, default="normal", help="how seeds scatter")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--capability", choices=CAPABILITIES, default="", help="only this one")
    args = parser.parse_args()
    real = capability_table(read_submission(REGISTRY / "geobench" / BASE), load_normaliser(GEOBENCH)).values()
    print(f"| {' | '.join(HEADS)} |\n{'|---' * len(HEADS)}|")
    whole = []
    for capability, boards in table(args.sets, args.seed, args.errors, args.capability).items():
        pairs = [own[capability] for own in real if capability in own]
        theirs, ours = np.mean([pair.official_error for pair in pairs]), np.mean([pair.ours.error for pair in pairs])
        (interval, errors, published), least = covered(boards)
        held, width = ranked(boards)
        whole.append((interval, errors, published, held))
        print(
            f"| {capability} | {theirs:.4f} | {ours:.4f} | {max(map(off_by, pairs)):.1f} | {interval:.1%} "
            f"| {least:.0%} | {errors:.1%} | {published:.1%} | {held:.1%} of {width:.1f} |",
            flush=True,
        )
    interval, errors, published, held = np.mean(whole, axis=0)
    print(f"| all | | | | {interval:.1%} | | {errors:.1%} | {published:.1%} | {held:.1%} |")


if __name__ == "__main__":
    main()
