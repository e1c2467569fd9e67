"""The board of NeuCo-Bench: ranks weighted by the spread of Q, how certain they are, and what they depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace

from neuco_core.boards.cells import COVERAGE, TEST_TO_TRAIN, Cells, pool
from neuco_core.boards.formatting import RANK, show
from neuco_core.boards.kinds.neuco_sections import sections, whole
from neuco_core.boards.model import (
    RANDOM,
    SCORE,
    STD,
    BoardCell,
    BoardRow,
    BoardTask,
    Column,
    Interval,
    Ranked,
    Uncertainty,
    number,
)
from neuco_core.boards.stats.diagnostics import diagnose
from neuco_core.boards.stats.rank_intervals import Intervals, groups
from neuco_core.boards.stats.ranking import Ranking, Rule, aggregations, rank
from neuco_core.boards.stats.uncertainty import LEVEL, SEED, TaskScores, assess, mean_interval
from neuco_core.boards.stats.uncertainty import Uncertainty as Sure
from neuco_core.errors import UsageError

HOW = (
    "bootstrap over splits, the same for all methods, deviations stretched to the variance s²(1/K + test/train) of "
    "Nadeau and Bengio, for F1 with test/train multiplied by what training adds; the interval of a score is Student's, "
    f"or Wilson's if the metric has two ends; that of a rank unites the rank itself, the middle {LEVEL:.0%} of the "
    "ranks in the replicates, and the places from behind the methods that are surely better to behind those that may "
    "be, each pair judged by itself; P(first) is from the same replicates; groups judge all pairs at once, and "
    "intervals of one group overlap. "
    "Splits cannot show what would change if an encoder were trained again, or if the samples were of other scenes"
)
COLUMNS = (
    Column("best", "P(first)", "How often the method is first if splits are resampled", "higher", 0, "percent"),
    Column("weighted_rank", "Weighted rank", "Sum of weight × rank over the tasks; lower is better", "lower"),
    Column("mean_q", "Mean Q", "Mean of Q over the tasks", "higher", 2),
    Column("mean_score", "Mean score", "Mean of the mean scores over the tasks; errors count as negative", "higher"),
    Column("borda", "Borda", "A point for each method beaten on a task, half a point for a tie", "higher", 1),
    Column("dim", "Size", "Numbers in an embedding", "lower", 0, "integer"),
)
CELL_COLUMNS = (
    SCORE,
    STD,
    Column("q", "Q", "Mean score relative to its spread over splits, times 100", "higher", 2),
    Column("rank", "Rank", "Rank by Q on the task", "lower", 0, "integer"),
)
TASK_COLUMNS = (
    Column("weight", "Weight", "Share of the task in the weighted rank"),
    Column(
        "pairs_apart", "Pairs separated", "Share of pairs of methods that the task alone separates", "", 0, "percent"
    ),
    Column("noise", "Noise", "Spread over splits relative to that between methods", "", 2),
    Column("agreement", "Agrees with final", "Spearman's correlation of the task's ranks with the final ones", "", 2),
    Column("negative", "Negative Q", "Methods with a negative Q", "", 0, "integer"),
    Column("spread", "Spread of Q", "Population standard deviation of Q over the ranked methods", "", 2),
)


@dataclass(frozen=True)
class Computed:
    """The ranking of a pool by a rule, from which everything else follows."""

    cells: Cells
    rule: Rule
    q: np.ndarray
    baselines: np.ndarray
    ranking: Ranking
    others: Mapping[str, np.ndarray]
    sure: Sure | None
    order: Sequence[int]
    names: Sequence[str]
    tasks: Sequence[str]


def rank_cells(cells: Cells, *, coverage: str = "complete", replicates: int = 1000, **options: Any) -> Ranked:
    """Rank the methods that the coverage policy allows; the others follow with what they lack."""
    rule = Rule(**options)
    if rule.weights == "equal" and rule.spread != "std":
        raise UsageError("equal weights have no spread to measure", hint="Leave out spread, or weights = equal")
    if replicates < 2:
        raise UsageError("too few replicates", expected="at least 2", got=replicates)
    chosen = pool(cells, coverage)
    left_out = tuple(
        m.row(None, cells.shown(m), values={"dim": m.dim}) for m in cells.methods if m not in chosen.methods
    )
    empty = Ranked(
        columns=COLUMNS,
        cell_columns=CELL_COLUMNS,
        task_columns=TASK_COLUMNS,
        rule=f"{rule.describe()}; {COVERAGE[coverage]}",
        tasks=(*chosen.tasks, *_shown(cells, chosen, coverage)),
        rows=left_out,
        profile="rank",
        scatter=("dim", "mean_q"),
    )
    if not chosen.methods:
        return empty
    board = _compute(chosen, rule, replicates)
    sure = board.sure
    apart = groups(board.order, sure.apart) if sure else ()
    return replace(
        empty,
        rows=(*_rows(board, cells), *left_out),
        tasks=(*_tasks(board), *_shown(cells, chosen, coverage)),
        notes=tuple(_notes(board, cells)),
        groups=tuple(tuple(board.names[m] for m in group) for group in apart) if sure else None,
        uncertainty=Uncertainty(LEVEL, HOW, replicates, SEED) if sure else None,
        sections=sections(board),
    )


def _shown(cells: Cells, chosen: Cells, coverage: str) -> tuple[BoardTask, ...]:
    """Tasks that do not count yet and are shown all the same, with the scores they lack and why."""
    counted = {task.id for task in chosen.tasks}
    return tuple(task for task in cells.tasks if task.id not in counted) if coverage == "most" else ()


def _compute(cells: Cells, rule: Rule, replicates: int) -> Computed:
    q = cells.numbers("q")
    baselines = np.array([method.baseline for method in cells.methods])
    ranking = rank(q, rule, baselines)
    sign = np.array([1.0 if task.greater_is_better else -1.0 for task in cells.tasks])
    others = aggregations(q, cells.numbers("mean") * sign[:, None], ranking)
    sure = assess([task_scores(cells, task) for task in cells.tasks], rule, baselines, replicates=replicates)
    names, tasks = [method.id for method in cells.methods], [task.id for task in cells.tasks]
    order = sorted(range(len(names)), key=lambda m: (ranking.final[m], ranking.weighted[m], names[m]))
    return Computed(cells, rule, q, baselines, ranking, others, sure, order, names, tasks)


def task_scores(cells: Cells, task: BoardTask) -> TaskScores:
    """The scores of all methods on a task, split by split; no splits if the methods do not have the same ones."""
    own = [cells.cell(method.id, task.id) for method in cells.methods]
    sizes = {len(cell.splits) for cell in own}
    rows = [cell.splits for cell in own] if len(sizes) == 1 else [() for _ in own]
    splits = np.array(rows, dtype=np.float64).reshape(len(own), -1)
    share = float(np.median([cell.test_to_train for cell in own])) if own else TEST_TO_TRAIN
    samples = float(np.median([cell.samples for cell in own])) if own else np.inf
    factors, trials = np.array([cell.trained for cell in own]).reshape(-1, 2).T
    ends = {(cell.lower, cell.upper) for cell in own}
    lower, upper = ends.pop() if len(ends) == 1 else (None, None)
    return TaskScores(splits, share, task.greater_is_better, task.dataset, samples, factors, trials, lower, upper)


def _interval(ends: Intervals, *index: int) -> Interval:
    return Interval(number(ends.low[index], RANDOM), number(ends.high[index], RANDOM))


def _rows(board: Computed, cells: Cells) -> Iterable[BoardRow]:
    sure = board.sure
    scores = [task_scores(board.cells, task) for task in board.cells.tasks]
    means = [mean_interval(own) if own.resamples else None for own in scores]
    for m in board.order:
        method = board.cells.methods[m]
        own = cells.shown(method) | {name: _cell(board, means[t], t, m) for t, name in enumerate(board.tasks)}
        values = {"weighted_rank": board.ranking.weighted[m], "dim": method.dim}
        values |= {key: other[m] for key, other in board.others.items()}
        intervals = {}
        if sure:
            values["best"] = number(sure.best[m], RANDOM)
            intervals = {"rank": whole(sure.rank, m), "mean_q": _interval(sure.mean_q, m)}
        yield method.row(int(board.ranking.final[m]), own, values=values, intervals=intervals)


def _cell(board: Computed, means: Intervals | None, t: int, m: int) -> BoardCell:
    cell = board.cells.cell(board.names[m], board.tasks[t])
    intervals = {"score": _interval(means, m)} if means else {}
    if board.sure:
        intervals["q"] = _interval(board.sure.q, t, m)
    return cell.shown(values={"q": cell.q, "rank": int(board.ranking.ranks[t, m])}, intervals=intervals)


def _tasks(board: Computed) -> tuple[BoardTask, ...]:
    mean, std = board.cells.numbers("mean"), board.cells.numbers("std")
    tasks = []
    for t, task in enumerate(board.cells.tasks):
        known = std[t] if np.isfinite(std[t]).all() else None
        values = diagnose(board.q[t], mean[t], known, board.ranking.final, task.greater_is_better)
        values["weight"] = board.ranking.weights[t]
        if board.sure and len(board.names) > 1:  # alone, a method makes no pair
            values["pairs_apart"] = number(board.sure.apart_share[t], RANDOM)
        tasks.append(replace(task, values=values))
    return tuple(tasks)


def _notes(board: Computed, cells: Cells) -> Iterable[str]:
    if board.ranking.ghost:
        yield f"Weight of the ghost task: {board.ranking.ghost:.3f}."
    if not board.sure:
        yield "No intervals: they need scores of the same splits from all methods, at least two."
    yield from _first(board)
    for task in cells.tasks:
        if task.id not in board.tasks:
            lacking = ", ".join(m.id for m in cells.methods if not cells.scored(m, task))
            yield f"Not counted: task {task.id}, which {lacking} lack"


def _first(board: Computed) -> Iterable[str]:
    """Why the first is not the likeliest to be first, if it is not: P(first) is what other samples might have given."""
    if board.sure is None:
        return
    best = np.round(board.sure.best, RANDOM)
    first, likeliest = board.order[0], max(board.order, key=lambda m: best[m])
    if best[likeliest] > best[[m for m in board.order if board.ranking.final[m] == 1]].max():
        names, ranges = board.names, [show(RANK, whole(board.sure.rank, m)) for m in (first, likeliest)]
        told = " and ".join(f"{names[m]} {own}" for m, own in zip((first, likeliest), ranges, strict=True))
        apart = "" if board.sure.apart[first, likeliest] else " The splits do not tell the two apart."
        yield (
            f"{names[first]} is first by the scores as they are, but {names[likeliest]} is first in more replicates "
            f"({best[likeliest]:.0%} against {best[first]:.0%}): plausible ranks are {told}.{apart}"
        )
