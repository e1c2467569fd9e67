"""Small tables beside the board of NeuCo-Bench: how robust its ranking is, and how its tasks depend on each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from neuco_core.boards.model import RANDOM, Column, Interval, Section, Value, number
from neuco_core.boards.stats.diagnostics import (
    Moves,
    correlations,
    furthest,
    redundant,
    without_each_method,
    without_each_task,
)
from neuco_core.boards.stats.rank_intervals import Intervals
from neuco_core.boards.stats.ranking import DIGITS, Ranking, Rule, positions, rank
from neuco_core.boards.stats.uncertainty import assess_tasks
from neuco_core.text import counted

if TYPE_CHECKING:
    from neuco_core.boards.kinds.neuco import Computed

METHOD, TASK = Column("method", "Method", format="method"), Column("task", "Task", format="task")
VARIANTS = {
    "No baselines": Rule(weights="no-baselines"),
    "Robust": Rule(spread="robust"),
    "Equal weights": Rule(weights="equal"),
}
HELP = {
    "This board": "The ranks of this board",
    "No baselines": "Weights from the spread of Q over the methods that are no baselines",
    "Robust": "Weights from the interquartile range of Q",
    "Equal weights": "The mean rank over the tasks",
    "Mean Q": "By mean Q over the tasks",
    "Borda": "By a point for each method beaten on a task, half a point for a tie",
    "Without a method": "The furthest that leaving out one other method moves it; to move up by the gap does not count",
    "Without a task": "The furthest that leaving out one task moves it",
}
RESAMPLED = Column("tasks", "Resampled tasks", "The ranks if other tasks of this kind were chosen", format="range")


def whole(ends: Intervals, m: int) -> Interval:
    return Interval(int(ends.low[m]), int(ends.high[m]))


def sections(board: Computed) -> tuple[Section, ...]:
    rankings = {"This board": board.ranking} | {
        name: rank(board.q, rule, board.baselines)
        for name, rule in VARIANTS.items()
        if rule != board.rule and (rule.weights != "no-baselines" or board.baselines.any())
    }
    columns = (TASK, *(Column(f"w{i}", name) for i, name in enumerate(rankings)))
    rows = tuple((name, *(own.weights[t] for own in rankings.values())) for t, name in enumerate(board.tasks))
    weights = Section("Weights by other rules", columns, rows, about="tasks")
    return (*(() if len(board.names) < 2 else (_robustness(board, rankings),)), weights, *_correlations(board))


def _robustness(board: Computed, rankings: Mapping[str, Ranking]) -> Section:
    """The ranks of every method by other rules, and without the method or the task that matters most to it."""
    final = board.ranking.final
    ranks = {name: other.final for name, other in rankings.items()}
    ranks |= {
        label: positions(-np.round(board.others[key], DIGITS))
        for key, label in (("mean_q", "Mean Q"), ("borda", "Borda"))
    }
    left_out = {
        noun: (names, without_each(board.q, board.rule, board.baselines))
        for noun, names, without_each in (
            ("method", board.names, without_each_method),
            ("task", board.tasks, without_each_task),
        )
    }
    ranks |= {
        f"Without a {noun}": furthest(final, moves) for noun, (names, moves) in left_out.items() if len(names) > 1
    }
    columns = [METHOD, *(Column(f"r{i}", name, HELP[name], format="rank") for i, name in enumerate(ranks))]
    rows: list[tuple[Value, ...]] = [(board.names[m], *(int(own[m]) for own in ranks.values())) for m in board.order]
    if len(board.tasks) > 1:
        columns.append(RESAMPLED)
        others = assess_tasks(board.ranking)
        rows = [(*row, whole(others, m)) for row, m in zip(rows, board.order, strict=True)]
    lead = _lead(board, np.stack([*ranks.values()]), left_out)
    return Section("How robust is this ranking?", tuple(columns), tuple(rows), lead=lead, about="robustness")


def _lead(board: Computed, ranks: np.ndarray, left_out: Mapping[str, tuple[Sequence[str], Moves]]) -> str:
    """The ranks (rankings, methods) in a sentence: who is first, who moves most, and whose absence moves most."""
    first = board.order[0]
    times = int((ranks[:, first] == 1).sum())
    words = [
        f"{board.names[first]} is first in {'all' if times == len(ranks) else f'{times} of'} {len(ranks)} rankings"
    ]
    moved = np.abs(ranks - board.ranking.final).max(axis=0)
    if moved.max() > 0:
        most = max(board.order, key=lambda m: moved[m])
        low, high = ranks[:, most].min(), ranks[:, most].max()
        words.append(f"{board.names[most]} moves most, between ranks {low} and {high}")
    for noun, (names, moves) in left_out.items():
        if len(names) < 2:
            continue
        if moves:
            out = max(moves, key=lambda one: len(moves[one]))
            words.append(f"leaving out {noun} {names[out]} moves {counted(len(moves[out]), 'method')}")
        else:
            words.append(f"leaving out any one {noun} moves nobody")
    return "; ".join(words) + "."


def _correlations(board: Computed) -> Iterable[Section]:
    matrix, names = correlations(board.q), board.tasks
    alike = tuple((names[a], names[b], number(value, RANDOM)) for a, b, value in redundant(matrix, len(board.names)))
    if alike:
        columns = (TASK, replace(TASK, key="other"), Column("value", "Correlation", digits=2))
        yield Section("Tasks that order methods almost alike", columns, alike, about="tasks")
    if len(names) > 1 and len(board.names) > 2:
        heads = (TASK, *(Column(name, name, digits=2) for name in names))
        rows = tuple((name, *(number(v, RANDOM) for v in own)) for name, own in zip(names, matrix, strict=True))
        yield Section("Spearman's correlation of Q between tasks", heads, rows, about="tasks", matrix=True)
