"""How often do intervals of ranks hold the true rank? ``python benchmarks/rank_intervals.py [--boards 200]``.

Worlds are boards whose truth is known, and each is drawn many times:

- as shipped: the truth is a board of the registry, with the real deviations of its splits. Drawn anew, each split has
  a deviation that is resampled from these, and all splits of a data set share another one, with the variance that
  Nadeau and Bengio assume; tasks of one dataset share the draws. "Pulled" has the means nearer to the task's median;
- as published: the means of Table 4 of the paper, and, with ``--geobench FOLDER``, those of a GEO-Bench-2 submission
  with the spread of its seeds;
- simulated: as in the tests, from one where noise decides to one where nothing is in doubt, also with two methods far
  below the others, methods in two clusters, methods of different spreads over splits, and unrelated tasks.

``held`` is the mean over methods, ``worst`` that of the method whose intervals hold least often (of simulated worlds,
where a method is a new one on each board: of the worst true place; ``method`` at the end of a line is the worst of them
by number, though they are all alike), ``±`` its standard error over the boards drawn.
``plain`` is what percentiles of the replicates' ranks alone would give, ``scores`` what the t-test of mean scores
would, each pair by itself. Ranks: the mean number of them in an interval.

``P(first)``: what it says of the method that is first on a board, and on how many boards that one truly is the best.

The rule was chosen with ``--seed 7``. Another seed draws other boards, by which it can be confirmed.

``--pairs`` prints another table: how often a board tells any two *equal* methods apart (level), and which share of the
pairs that differ it tells apart in the right order (power). "Scores" is the rule of boards, a t-test of mean scores
with Holm's p-values; "Q" is the one that it replaced, a bootstrap of weighted Q judged by the largest difference.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import stdtr

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import intervals
from neuco_core.boards.cells import from_records, pool
from neuco_core.boards.kinds.neuco import task_scores
from neuco_core.boards.published import read_published
from neuco_core.boards.stats.rank_intervals import (
    Intervals,
    error_of_differences,
    meeting,
    percentiles,
    share_behind,
)
from neuco_core.boards.stats.ranking import DIGITS, Rule, rank
from neuco_core.boards.stats.uncertainty import (
    LEVEL,
    TaskScores,
    assess,
    differences,
    judged,
    observed_q,
    replicate_board,
)
from neuco_core.boards.store import Current, current
from tests.boards.helpers import RHO, simulate
from tests.boards.test_uncertainty import NOISE, expected_q

REGISTRY = Path(__file__).parents[1] / "registry"
REPLICATES = 300
# The true final ranks of a board, and what is seen of it.
Drawn = tuple[np.ndarray, list[TaskScores]]


@dataclass(frozen=True)
class World:
    """``draw`` makes one board; ``fixed`` if the truth is the same on all of them."""

    name: str
    draw: Callable[[np.random.Generator], Drawn]
    fixed: bool = True


def redrawn(tasks: list[TaskScores], resample: bool = True) -> Callable[[np.random.Generator], Drawn]:
    """Boards around the means of these tasks: real deviations if ``resample``, else normal ones of the same size."""
    final = rank(np.stack([observed_q(task) for task in tasks])).final

    def draw(rng: np.random.Generator) -> Drawn:
        seeds: dict[str, int] = {}
        boards = []
        for t, task in enumerate(tasks):
            own = np.random.default_rng(seeds.setdefault(task.dataset or str(t), int(rng.integers(2**60))))
            boards.append(replace(task, splits=_again(task, own, resample)))
        return final, boards

    return draw


def _again(task: TaskScores, rng: np.random.Generator, resample: bool) -> np.ndarray:
    mean, k = np.nanmean(task.splits, axis=1, keepdims=True), task.splits.shape[1]
    deviation = np.nan_to_num(task.splits - mean) * np.sqrt(k / (k - 1))
    if resample:
        own = deviation[:, rng.integers(k, size=k)]
        shared = deviation @ rng.standard_normal((k, 1)) / np.sqrt(k)
    else:  # too few of them to tell how methods depend on each other
        spread = deviation.std(axis=1, keepdims=True)
        own, shared = spread * rng.standard_normal((len(mean), k)), spread * rng.standard_normal((len(mean), 1))
    found: np.ndarray = mean + own + shared * np.sqrt(np.reshape(task.overlap, (-1, 1)))
    return found


@cache
def registry() -> Current:
    return current(REGISTRY)


def shipped(suite: str, *, folded: bool = True, pulled: float = 0.0) -> list[TaskScores]:
    """The scores behind a board of the registry, without ends, which deviations would cross."""
    now = registry()
    chosen = pool(from_records(now.records, now.suites[suite], now.why_stale))
    tasks = [replace(task_scores(chosen, task), lower=None, upper=None) for task in chosen.tasks]
    if folded:
        whole = np.nan_to_num(np.concatenate([task.splits for task in tasks], axis=1))
        kept = np.sort(np.unique(whole, axis=0, return_index=True)[1])
        tasks = [replace(t, splits=t.splits[kept], factors=_of(t.factors, kept), trials=1.0) for t in tasks]
    return [replace(task, splits=task.splits + pulled * _to_median(task.splits)) for task in tasks]


def _of(values: np.ndarray | float, kept: np.ndarray) -> np.ndarray | float:
    return values[kept] if isinstance(values, np.ndarray) else values


def _to_median(splits: np.ndarray) -> np.ndarray:
    means = np.nanmean(splits, axis=1, keepdims=True)
    distance: np.ndarray = np.median(means) - means
    return distance


def table_4() -> Callable[[np.random.Generator], Drawn]:
    """The printed means; the table has no spread over splits, so it is that of the simulated worlds."""
    truth = read_published(REGISTRY / "published/neuco-paper-table-4.json").cells().numbers("mean")
    final = rank(expected_q(truth, 50)).final

    def draw(rng: np.random.Generator) -> Drawn:
        _, noise = simulate(rng, truth.shape[1], truth.shape[0], 50, 0.0, NOISE)  # around 0.4
        around = [mean[:, None] - 0.4 for mean in truth]
        return final, [replace(own, splits=own.splits + lift) for own, lift in zip(noise, around, strict=True)]

    return draw


def geobench(folder: Path) -> list[TaskScores]:
    """The first complete board of a submission: backbones × datasets, with five seeds as splits."""
    with (folder / "results_and_parameters.csv").open(encoding="utf-8") as file:
        lines = [row for row in csv.DictReader(file) if row["test metric"]]
    cells: dict[tuple[str, str], list[float]] = {}
    for row in lines:
        cells.setdefault((row["dataset"], row["backbone"]), []).append(float(row["test metric"]))
    datasets, backbones = (sorted({key[i] for key in cells}) for i in (0, 1))
    whole = [b for b in backbones if all(len(cells.get((d, b), ())) >= 5 for d in datasets)]
    lower = {row["dataset"] for row in lines if "rmse" in row["Metric"].lower()}
    return [
        TaskScores(np.array([cells[d, b][:5] for b in whole]), greater_is_better=d not in lower, dataset=d)
        for d in datasets
    ]


def simulated(
    methods: int, tasks: int, splits: int, gap: float, shape: str = "", *, related: bool = True
) -> Callable[[np.random.Generator], Drawn]:
    lift = np.zeros(methods)
    if shape == "outliers":
        lift[:2] = -12 * gap, -6 * gap
    elif shape == "clusters":
        lift[::2] = 3 * gap
    elif shape == "weak":
        lift[0] = -1.0

    def draw(rng: np.random.Generator) -> Drawn:
        truth, scores = simulate(rng, methods, tasks, splits, gap if related else 0.0, NOISE)
        moved = lift + (0.0 if related else gap * rng.standard_normal((tasks, methods)))
        around = np.broadcast_to(moved, truth.shape)
        wider = np.exp((0.3 if shape == "spreads" else 0.0) * rng.standard_normal(truth.shape))
        scores = [
            replace(task, splits=mean[:, None] + by[:, None] * (task.splits - mean[:, None]) + own[:, None])
            for task, mean, own, by in zip(scores, truth, around, wider, strict=True)
        ]
        return rank(expected_q(truth + around, splits, NOISE * wider)).final, scores

    return draw


def worlds(submission: Path | None) -> Iterator[World]:
    yield World("olinda-blocks, copies ranked", redrawn(shipped("olinda-blocks", folded=False)))
    yield World("olinda-blocks, folded", redrawn(shipped("olinda-blocks")))
    yield World("olinda, folded", redrawn(shipped("olinda")))
    yield World("mini", redrawn(shipped("mini")))
    yield World("embedded", redrawn(shipped("embedded")))
    yield World("embedded, pulled 30 %", redrawn(shipped("embedded", pulled=0.3)))
    yield World("Table 4", table_4())
    if submission:
        yield World("GEO-Bench-2", redrawn(geobench(submission), resample=False))
    yield World("unrelated tasks", simulated(12, 8, 40, 0.03, related=False), False)
    yield World("… and a weak method", simulated(13, 8, 40, 0.03, "weak", related=False), False)
    yield World("noise decides", simulated(20, 6, 40, 0.003), False)
    for methods, tasks, splits, gap, shape in (
        (12, 6, 40, 0.01, ""),
        (12, 11, 40, 0.02, ""),
        (30, 11, 40, 0.02, ""),
        (8, 4, 40, 0.05, ""),
        (12, 11, 40, 0.5, ""),
        (12, 11, 10, 0.03, ""),
        (4, 4, 40, 0.02, ""),
        (12, 11, 40, 0.02, "outliers"),
        (30, 8, 40, 0.01, "outliers"),
        (30, 8, 40, 0.01, "clusters"),
        (30, 3, 40, 0.02, ""),
        (30, 3, 40, 0.02, "spreads"),
    ):
        name = f"{methods} × {tasks}, {splits} splits, {gap} {shape}".rstrip()
        yield World(name, simulated(methods, tasks, splits, gap, shape), False)


def measure_first(world: World, count: int, seed: int) -> tuple[float, float]:
    """What P(first) says of the method that is first on a board, and how often that one truly is; both in percent."""
    rng, said, true = np.random.default_rng(seed), [], []
    for board in range(count):
        truth, scores = world.draw(rng)
        sure = assess(scores, Rule(), seed=board, replicates=REPLICATES)
        first = int(np.argmin(rank(np.stack([observed_q(task) for task in scores])).weighted))
        if sure is not None:
            said.append(100 * sure.best[first])
            true.append(100.0 * (truth[first] == 1))
    return float(np.mean(said)), float(np.mean(true))


@dataclass(frozen=True)
class Alike:
    """Boards of methods of which some are equal: ``skill`` has what each adds to the mean score."""

    name: str
    skill: np.ndarray
    draw: Callable[[np.random.Generator], list[TaskScores]]


def alike(
    methods: int,
    tasks: int,
    splits: int,
    gap: float = 0.0,
    *,
    mean: float = 0.5,
    related: float = 0.0,
    tails: float = 0.0,
) -> tuple[np.ndarray, Callable[[np.random.Generator], list[TaskScores]]]:
    """Methods in three steps of ``gap``. ``related``: the share of the error's variance that is common to all tasks,
    which are then of one dataset; ``tails``: how much heavier than normal the errors' are."""
    skill = gap * (np.arange(methods) % 3)

    def error(rng: np.random.Generator, size: int) -> np.ndarray:
        common, own = (
            np.sqrt(0.5) * (rng.standard_normal((count, 1, size)) + rng.standard_normal((count, methods, size)))
            for count in (1, tasks)
        )
        return np.sqrt(related) * common + np.sqrt(1 - related) * own

    def draw(rng: np.random.Generator) -> list[TaskScores]:
        noise = np.sqrt(RHO) * error(rng, 1) + np.sqrt(1 - RHO) * error(rng, splits)
        noise = np.sinh(tails * noise) / tails if tails else noise
        dataset = "one" if related else ""
        return [TaskScores(mean + skill[:, None] + NOISE * own, RHO / (1 - RHO), dataset=dataset) for own in noise]

    return skill, draw


def drawn_alike(
    kind: str, samples: int, gap: float = 0.0, scenes: int = 0
) -> tuple[np.ndarray, Callable[[np.random.Generator], list[TaskScores]]]:
    """Data sets that are really drawn and probed: the same embedding eight times, half of them with more noise."""
    world = intervals.World(samples, samples, scenes)
    world.mixing = [world.mixing[3]] * len(world.mixing)
    skill = -gap * (np.arange(len(world.mixing)) % 2)
    world.noises = tuple(0.5 - skill)
    return skill, lambda rng: world.scores((kind,))[kind]


def worlds_of_equals() -> Iterator[Alike]:
    for text, made in {
        "15 × 5": alike(15, 5, 40),
        "15 × 5, 10 splits": alike(15, 5, 10),
        "15 × 1": alike(15, 1, 40),
        "15 × 1, 10 splits": alike(15, 1, 10),
        "15 × 1, 5 splits": alike(15, 1, 5),
        "2 × 3": alike(2, 3, 40),
        "40 × 3": alike(40, 3, 40),
        "related tasks, 60 %": alike(15, 5, 40, related=0.6),
        "related tasks, 90 %": alike(15, 5, 40, related=0.9),
        "faint": alike(15, 5, 40, mean=0.03),
        "heavy tails": alike(15, 5, 40, tails=1.0),
        "three steps of 0.02": alike(15, 5, 40, 0.02),
        "three steps of 0.04, 10 splits": alike(15, 5, 10, 0.04),
        "three steps of 0.04, 1 task": alike(15, 1, 40, 0.04),
        "three steps of 0.03, related": alike(15, 5, 40, 0.03, related=0.6),
        "40 × 3, three steps of 0.04": alike(40, 3, 40, 0.04),
        "drawn, R²": drawn_alike("R², normal errors", 300, 0.2),
        "drawn, R², t(3)": drawn_alike("R², Student's t(3)", 300, 0.4),
        "drawn, F1, 1/3": drawn_alike("F1, 1/3", 300, 0.6),
        "drawn, F1, 1/10": drawn_alike("F1, 1/10", 300, 0.6),
        "drawn, R², scenes, random splits": drawn_alike("R², normal errors", 300, 0.2, scenes=30),
    }.items():
        yield Alike(text, *made)


def power(world: Alike, count: int, seed: int) -> dict[str, tuple[float, float]]:
    """By rule: the share of boards that tell equal methods apart, and of pairs that differ told apart rightly."""
    rng = np.random.default_rng(seed)
    better = world.skill[:, None] > world.skill
    same = ~better & ~better.T
    wrong: dict[str, list[bool]] = {"scores": [], "Q": []}
    right: dict[str, list[float]] = {"scores": [], "Q": []}
    for board in range(count):
        scores = world.draw(rng)
        q = replicate_board(scores, seed=board, replicates=REPLICATES)
        shown, again, pairs = judged(
            scores, np.round(np.stack([observed_q(task) for task in scores]), DIGITS), q, Rule()
        )
        ahead = shown.weighted[:, None] < shown.weighted
        for name, apart in (("scores", pairs.apart), ("Q", _apart_by_q(scores, q, again.weighted))):
            wrong[name].append(bool((apart & same).any()))
            right[name].append(float((apart & ahead)[better].mean()) if better.any() else np.nan)
    return {name: (100 * float(np.mean(wrong[name])), 100 * float(np.mean(right[name]))) for name in wrong}


def _apart_by_q(scores: list[TaskScores], q: np.ndarray, weighted: np.ndarray) -> np.ndarray:
    """The rule before: the weighted mean of standardised Q in replicates, by its largest studentised difference."""
    observed = np.stack([observed_q(task) for task in scores])
    spread = observed.std(axis=1)
    scale = rank(observed).weights / np.where(spread > 0, spread, 1.0)
    smooth = -(scale[:, None] * q).sum(axis=1)
    mean, error = smooth.mean(axis=0), error_of_differences(np.cov(smooth, rowvar=False))
    largest = [float((np.abs(np.subtract.outer(row, row)) / error).max()) for row in smooth - mean]
    nearly_all = (1 + LEVEL) / 2
    worse = (share_behind(smooth) >= nearly_all) & (share_behind(weighted) >= nearly_all)
    worse &= (mean[:, None] - mean) / error > np.quantile(largest, LEVEL)
    apart: np.ndarray = worse | worse.T
    return apart


def print_pairs(boards: int, seed: int) -> None:
    print("| world | level: scores | Q | power: scores | Q |\n|---|---|---|---|---|")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for world in worlds_of_equals():
            (level, found), (level_q, found_q) = power(world, boards, seed).values()
            told = [f"{share:.0f} %" if np.isfinite(share) else "" for share in (found, found_q)]
            print(f"| {world.name} | {level:.1f} % | {level_q:.1f} % | {told[0]} | {told[1]} |", flush=True)


def measure(world: World, count: int, seed: int) -> dict[str, tuple[float, float, float, float]]:
    """By way of making intervals: how often they hold, the worst method or place, the mean number of ranks in them, and
    the worst method if a method is whoever has the same number on each board."""
    rng = np.random.default_rng(seed)
    held: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    width: dict[str, list[float]] = {}
    for board in range(count):
        truth, scores = world.draw(rng)
        order = np.arange(len(truth)) if world.fixed else np.argsort(truth, kind="stable")
        for name, ends in _ways(scores, board):
            inside = (ends.low <= truth) & (truth <= ends.high)
            held.setdefault(name, []).append((inside[order], inside))
            width.setdefault(name, []).append(float((ends.high - ends.low + 1).mean()))
    shares = {name: 100 * np.mean(own, axis=0) for name, own in held.items()}
    return {
        name: (float(by.mean()), float(by[0].min()), float(np.mean(width[name])), float(by[1].min()))
        for name, by in shares.items()
    }


def _ways(scores: list[TaskScores], seed: int) -> Iterator[tuple[str, Intervals]]:
    """The intervals of a board, and others from the same replicates."""
    sure = assess(scores, Rule(), seed=seed, replicates=REPLICATES)
    if sure is None:  # cannot be: every task has its splits
        raise RuntimeError("no uncertainty")
    q = replicate_board(scores, seed=seed, replicates=REPLICATES)
    yield "held", sure.rank
    observed = np.round(np.stack([observed_q(task) for task in scores]), DIGITS)
    shown, again, pairs = judged(scores, observed, q, Rule())
    plain = percentiles(again.final, LEVEL, "inverted_cdf")
    yield "plain", plain
    found = differences(scores, np.ones(len(scores)))
    behind = stdtr(found.freedom, -found.better / found.error)
    np.fill_diagonal(behind, 0.0)
    low = np.minimum(shown.final, 1 + (behind >= (1 + LEVEL) / 2).sum(axis=1))
    high = np.maximum(shown.final, 1 + (behind > (1 - LEVEL) / 2).sum(axis=1))
    yield "scores", meeting(low, high, pairs.apart)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boards", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--geobench", type=Path, help="the folder of a GEO-Bench-2 submission")
    parser.add_argument("--world", default="", help="only worlds with this in their name")
    parser.add_argument("--first", action="store_true", help="only P(first), which takes a third of the time")
    parser.add_argument("--pairs", action="store_true", help="only pairs of equal methods")
    args = parser.parse_args()
    if args.pairs:
        print_pairs(args.boards, args.seed)
        return
    if args.first:
        print(f"{'world':34} P(first)   true")
        for world in worlds(args.geobench):
            said, true = measure_first(world, args.boards, args.seed)
            print(f"{world.name:34}   {said:6.1f} {true:6.1f}", flush=True)
        return
    heads = "".join(f" {name:>8}   worst    ±  ranks" for name in ("held", "plain", "scores"))
    print(f"{'world':34}{heads}    method")
    for world in (world for world in worlds(args.geobench) if args.world in world.name):
        found = measure(world, args.boards, args.seed)
        figures = ""
        for held, worst, ranks, _ in found.values():
            error = (worst * (100 - worst) / args.boards) ** 0.5
            figures += f"   {held:6.1f}  {worst:6.1f} {error:4.1f} {ranks:6.1f}"
        print(f"{world.name:34}{figures}    {found['held'][-1]:6.1f}", flush=True)


if __name__ == "__main__":
    main()
