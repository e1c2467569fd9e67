"""The scores behind a board by capabilities, and how sure their ranks are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from neuco_core.boards.cells import BoardMethod, Cells
from neuco_core.boards.model import RANDOM, Interval, number
from neuco_core.boards.stats.rank_intervals import Pairs, error_of_differences, groups, rank_ranges, share_behind
from neuco_core.boards.stats.ranking import DIGITS, positions
from neuco_core.boards.stats.uncertainty import LEVEL, chance_of_first
from neuco_extensions.geobench.iqm import Normaliser, PooledScore, score


@dataclass(frozen=True)
class CapabilityScores:
    """Scores by capability and method; ``others`` are those of the other aggregation, which is not ranked by.

    ``intervals`` are of single cells, by method and task, where there are runs to tell them.
    """

    methods: Sequence[BoardMethod]
    capabilities: Mapping[str, tuple[str, ...]]
    normaliser: Normaliser | None
    values: Mapping[tuple[str, str], np.ndarray]
    intervals: Mapping[tuple[str, str], Interval]
    scores: Mapping[str, Mapping[str, PooledScore]]
    others: Mapping[str, Mapping[str, PooledScore]]
    aggregation: str


def compute(
    cells: Cells,
    methods: Sequence[BoardMethod],
    capabilities: Mapping[str, tuple[str, ...]],
    normaliser: Normaliser | None,
    replicates: int,
    aggregation: str,
) -> CapabilityScores:
    values: dict[tuple[str, str], np.ndarray] = {}
    for method, task in product(methods, cells.tasks):
        if not cells.scored(method, task):
            continue
        cell, sign = cells.cell(method.id, task.id), 1 if task.greater_is_better else -1
        runs = [value for value in cell.splits if value is not None and np.isfinite(value)] or [cell.mean or 0.0]
        if normaliser is None:
            values[method.id, task.id] = sign * np.array(runs, dtype=np.float64)
        else:
            scaled = normaliser(task.id, runs)
            values[method.id, task.id] = scaled if sign > 0 else 1 - scaled  # of an error the least is the best
    both: dict[str, dict[str, dict[str, PooledScore]]] = {
        name: {key: {} for key in capabilities} for name in ("pooled", "mean")
    }
    intervals: dict[tuple[str, str], Interval] = {}
    for method in methods:
        # One method after the other: the draws of its tasks are cached, and all these scores are made of them.
        for name in (task.id for task in cells.tasks if (method.id, task.id) in values):
            cell = cells.cell(method.id, name)
            if sum(value is not None for value in cell.splits) > 1:
                own, overlaps = [values[method.id, name].tolist()], [cell.test_to_train]
                if interval := interval_of(score(own, names=[name], overlaps=overlaps, replicates=replicates)):
                    intervals[method.id, name] = interval
        for key, tasks in capabilities.items():
            if not tasks or any((method.id, name) not in values for name in tasks):
                continue
            pooled_runs = [values[method.id, name].tolist() for name in tasks]
            overlaps = [cells.cell(method.id, name).test_to_train for name in tasks]
            for how, scores in both.items():
                scores[key][method.id] = score(
                    pooled_runs, names=tasks, overlaps=overlaps, replicates=replicates, pooled=how == "pooled"
                )
    scores = both.pop(aggregation)
    (others,) = both.values()
    return CapabilityScores(methods, capabilities, normaliser, values, intervals, scores, others, aggregation)


def interval_of(pooled: PooledScore) -> Interval | None:
    """The interval of a score; ``None`` where nothing varies."""
    return Interval(number(pooled.low, RANDOM), number(pooled.high, RANDOM)) if pooled.error > 0 else None


@dataclass(frozen=True)
class CapabilityRanks:
    """Methods by their scores, the best first: places, and where they vary the ranks that are plausible, the chance of
    being first, and who cannot be told apart. Of one whose runs do not vary nothing but the place is known."""

    places: Mapping[str, int]
    ranks: Mapping[str, tuple[int, int]]
    best: Mapping[str, float]
    groups: tuple[tuple[str, ...], ...] | None


def places(scores: Mapping[str, PooledScore]) -> dict[str, int]:
    """By method its place, in the order of places; ties share the better one."""
    if not scores:
        return {}
    ranks = positions(-np.round(np.array([pooled.value for pooled in scores.values()]), DIGITS))
    return dict(sorted(zip(scores, map(int, ranks), strict=True), key=lambda item: (item[1], item[0])))


def rank(scores: Mapping[str, PooledScore]) -> CapabilityRanks:
    """One whose runs do not vary stands where it is: nobody loses an interval because of that."""
    placed = places(scores)
    order = list(placed)
    if all(scores[name].error <= 0 for name in order):
        return CapabilityRanks(placed, {}, {}, None)
    observed = np.array([scores[name].value for name in order])
    replicates = np.stack([scores[name].replicates for name in order], axis=1)
    drawn_ranks = positions(-np.round(replicates, DIGITS))
    pairs = _judged(replicates)
    low, high = rank_ranges(positions(-np.round(observed, DIGITS)), drawn_ranks, pairs, LEVEL)
    best = chance_of_first(drawn_ranks)
    varying = [m for m, name in enumerate(order) if scores[name].error > 0]
    return CapabilityRanks(
        placed,
        ranks={order[m]: (int(low[m]), int(high[m])) for m in varying},
        best={order[m]: float(best[m]) for m in varying},
        groups=tuple(tuple(order[m] for m in group) for group in groups(range(len(order)), pairs.apart)),
    )


def _judged(replicates: np.ndarray) -> Pairs:
    """All pairs at once, by a quantile of the largest studentised difference: that replicates of few runs have wide
    tails is in it, and is not in Student's t."""
    mean, error = replicates.mean(axis=0), error_of_differences(np.atleast_2d(np.cov(replicates, rowvar=False)))
    largest = [float((np.abs(np.subtract.outer(row, row)) / error).max()) for row in replicates - mean]
    behind = share_behind(-replicates)
    worse = (behind >= (1 + LEVEL) / 2) & ((mean - mean[:, None]) / error > np.quantile(largest, LEVEL))
    return Pairs(behind, worse | worse.T)
