"""The gap, what methods lose from random splits to splits by place: a column of the board, a table for each task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from neuco_core.boards.cells import Cells, pool
from neuco_core.boards.facts import or_none
from neuco_core.boards.kinds.neuco import task_scores
from neuco_core.boards.model import Board, BoardTask, Column
from neuco_core.boards.stats.uncertainty import TaskScores, mean_interval
from neuco_core.plugins.catalog import catalog, for_probe, load_protocol
from neuco_core.protocol import SHUFFLE, Protocol
from neuco_core.specs import Splitter

HELP = (
    "Mean score by random splits less that by {}, with its 95 % interval: the work of neighbours, and of land that "
    "looks different. Both are taken for independent; where neighbours are alike, random splits are too sure"
)


class Gap(NamedTuple):
    """Of a method: both mean scores, their difference, and the ends of its interval, NaN if none is known."""

    by_chance: float
    by_place: float
    value: float
    low: float
    high: float


def gap_columns(
    board: Board, cells: Mapping[str, Cells]
) -> Iterator[tuple[Column, Mapping[str, float], Mapping[str, tuple[float, ...]]]]:
    """A column for each protocol on record that differs from the board's own in nothing but how splits treat places."""
    own = board.suite.protocol if board.suite and board.kind == "neuco" else ""
    for number, names in enumerate(pair for pair in pairs(cells) if own in pair):
        found = gaps(cells[names[0]], cells[names[1]], board.tasks)
        found = {row.method: found[row.method] for row in board.rows if row.method in found and not row.same_as}
        if found:
            splitter = load_protocol(names[1]).splitter
            key = f"gap_{number}" if number else "gap"
            column = Column(key, f"Gap to {splitter}", HELP.format(names[1]))
            intervals = {method: gap[3:] for method, gap in found.items() if np.isfinite(gap.low)}
            yield column, {method: gap.value for method, gap in found.items()}, intervals


def pairs(protocols: Iterable[str]) -> list[tuple[str, str]]:
    """Protocols that differ in nothing but their splits: the one at random, the other by place."""
    names = list(protocols)
    by_place = [name for name in names if keeps_apart(name)]
    by_chance = [name for name in names if (known := or_none(load_protocol, name)) and known.splitter == SHUFFLE]
    return [(a, b) for a in by_chance for b in by_place if _probing(a) == _probing(b)]


def keeps_apart(protocol: str) -> bool:
    splitter = or_none(lambda name: catalog().load(Splitter, load_protocol(name).splitter), protocol)
    return splitter is not None and (splitter.needs_groups or splitter.needs_positions)


def _probing(protocol: str) -> Protocol:
    """A protocol without all that says how samples are divided."""
    probing = for_probe(load_protocol(protocol))
    return replace(probing, name="any", splitter=SHUFFLE, k=1, test_size=0.1, seed=0)


def gaps(by_chance: Cells, by_place: Cells, tasks: Sequence[BoardTask]) -> dict[str, Gap]:
    """By method: the gap of its mean score over the tasks, if it has all scores on both sides."""
    sides = [pool(replace(side, tasks=tuple(tasks))) for side in (by_chance, by_place)]
    versions = {(m.id, m.version) for m in sides[0].methods} & {(m.id, m.version) for m in sides[1].methods}
    if not versions:
        return {}
    sides = [replace(side, methods=tuple(m for m in side.methods if (m.id, m.version) in versions)) for side in sides]
    (a, reach_of_a), (b, reach_of_b) = map(_over_tasks, sides)
    reach = np.hypot(reach_of_a, reach_of_b)
    numbers = np.stack([a, b, a - b, a - b - reach, a - b + reach], axis=1).tolist()
    return {method.id: Gap(*of_method) for method, of_method in zip(sides[0].methods, numbers, strict=True)}


def _over_tasks(cells: Cells) -> tuple[np.ndarray, np.ndarray]:
    """Mean scores over tasks, and half of their intervals. What a split does to all tasks is not independent."""
    signs = np.array([1.0 if task.greater_is_better else -1.0 for task in cells.tasks])
    scores = [task_scores(cells, task) for task in cells.tasks]
    alike = len({each.splits.shape for each in scores}) == 1
    splits = np.mean([s * each.splits for s, each in zip(signs, scores, strict=True)], axis=0) if alike else np.empty(0)
    overlap = np.max(np.broadcast_arrays(*(each.overlap for each in scores)), axis=0)
    joined = TaskScores(splits, test_to_train=1.0, factors=overlap)
    mean = signs @ cells.numbers("mean") / len(signs)
    if not joined.resamples:
        return mean, np.full(len(mean), np.nan)
    low, high = mean_interval(joined)
    return mean, (high - low) / 2
