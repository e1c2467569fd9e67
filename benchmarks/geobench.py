"""Do the intervals of capability scores hold? ``python benchmarks/geobench.py [--sets 100]``.

Every backbone of the base submission is taken for the truth: its mean and spread on each dataset. From these, five
seeds are drawn again and again, with normal errors, and it is counted how often an interval holds the expected score,
which is the average over all draws: ours; the same with 1.96 standard errors; and 1.96 times the published ±, which is
the standard error divided by 10. It prints the table of docs/geobench.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from neuco_core.geobench.facts import CAPABILITIES
from neuco_core.geobench.iqm import REPLICATES, score
from neuco_core.geobench.normaliser import GEOBENCH, load_normaliser
from neuco_core.geobench.submission import read_submission

REGISTRY = Path(__file__).parents[1] / "registry"
BASE, SEEDS, RESAMPLES = "114be1f0", 5, 300
COLUMNS = ("interval", "1.96 standard errors", "1.96 published ±")


def truths() -> dict[str, dict[str, tuple[float, float]]]:
    """By backbone and dataset: mean and standard deviation of normalised scores."""
    normaliser = load_normaliser(GEOBENCH)
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for own in read_submission(REGISTRY / "geobench" / BASE).runs:
        values = normaliser(own.dataset, own.scores)
        found.setdefault(own.backbone, {})[own.dataset] = float(values.mean()), float(values.std(ddof=1))
    return found


def covered(
    cells: Sequence[tuple[float, float]], rng: np.random.Generator, sets: int, resamples: int = RESAMPLES
) -> np.ndarray:
    """The share of ``sets`` in which each of the three intervals holds the expected score."""
    mean, spread = np.array(cells).T
    scores = []
    for _ in range(sets):
        drawn = mean[:, None] + spread[:, None] * rng.standard_normal((len(cells), SEEDS))
        scores.append(score(drawn.tolist(), replicates=resamples))
    truth = np.mean([own.value for own in scores])
    away = np.array([abs(own.value - truth) for own in scores])
    error = 1.96 * np.array([own.error for own in scores])
    inside = [own.low <= truth <= own.high for own in scores]
    return np.array([np.mean(inside), np.mean(away < error), np.mean(away < error / np.sqrt(REPLICATES))])


def table(sets: int, seed: int = 1) -> dict[str, tuple[np.ndarray, float]]:
    """By capability: the three shares over all backbones, and the least share of our interval for one of them."""
    rng, known = np.random.default_rng(seed), truths()
    found: dict[str, tuple[np.ndarray, float]] = {}
    for capability, datasets in CAPABILITIES.items():
        cells = [[own[d] for d in datasets] for own in known.values() if all(d in own for d in datasets)]
        shares = np.array([covered(own, rng, sets) for own in cells])
        found[capability] = shares.mean(axis=0), float(shares[:, 0].min())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=100)
    found = table(parser.parse_args().sets)
    print(f"| capability | {' | '.join(COLUMNS)} | interval, worst backbone |\n|---|---|---|---|---|")
    for capability, (shares, least) in found.items():
        print(f"| {capability} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} | {100 * least:.0f} % |")
    whole = np.mean([shares for shares, _ in found.values()], axis=0)
    print(f"| all | {' | '.join(f'{100 * share:.1f} %' for share in whole)} | |")


if __name__ == "__main__":
    main()
