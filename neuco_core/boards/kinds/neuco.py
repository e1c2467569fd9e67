"""The board of NeuCo-Bench: ranks weighted by the spread of Q, how sure they are, and what they depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace

from neuco_core.boards.canonical import RANDOM, number
from neuco_core.boards.cells import COVERAGE, TEST_TO_TRAIN, Cells, Pool, pool
from neuco_core.boards.model import (
    SCORE,
    STD,
    BoardCell,
    BoardRow,
    BoardTask,
    Column,
    Interval,
    Ranked,
    Section,
    Uncertainty,
    Value,
)
from neuco_core.boards.stats.diagnostics import correlations, diagnose, redundant
from neuco_core.boards.stats.ranges import SLACK
from neuco_core.boards.stats.ranking import Aggregate, Ranking, Rule, aggregations, rank
from neuco_core.boards.stats.robustness import Flip, without_each_method, without_each_task
from neuco_core.boards.stats.separation import groups
from neuco_core.boards.stats.uncertainty import (
    LEVEL,
    SEED,
    Intervals,
    TaskScores,
    assess,
    assess_tasks,
    mean_interval,
)
from neuco_core.boards.stats.uncertainty import Uncertainty as Sure
from neuco_core.errors import UsageError

HOW = (
    "bootstrap over splits, the same for all methods, deviations stretched to the variance s²(1/K + test/train) of "
    f"Nadeau and Bengio; the interval of a rank holds it on {LEVEL:.0%} of plausible boards on average over the "
    f"methods, and on at least {LEVEL - SLACK:.0%} for each (plausible boards are replicates, pulled together by as "
    "much as noise has spread the board); groups judge all pairs at once, so methods of one group may have intervals "
    "that do not overlap"
)
COLUMNS = (
    Column("best", "P(first)", "How often the method is first on a plausible board", "higher", 0, "percent"),
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
    Column("weight", "weight", "Share of the task in the weighted rank"),
    Column(
        "pairs_apart", "pairs separated", "Share of pairs of methods that the task alone separates", "", 0, "percent"
    ),
    Column("noise", "noise", "Spread over splits relative to that between methods", "", 2),
    Column("agreement", "agrees with final", "Spearman's correlation of the task's ranks with the final ones", "", 2),
    Column("negative", "negative Q", "Methods with a negative Q", "", 0, "integer"),
    Column("spread", "spread of Q", "Population standard deviation of Q over the ranked methods", "", 2),
)
METHOD, TASK = Column("method", "Method", format="method"), Column("task", "Task", format="task")
VARIANTS = {
    "weights without baselines": Rule(weights="no-baselines"),
    "robust weights": Rule(spread="robust"),
    "equal weights": Rule(weights="equal"),
}
AGGREGATIONS = {"mean_rank": "mean rank", "mean_q": "mean Q", "mean_score": "mean score", "borda": "Borda"}


@dataclass(frozen=True)
class Computed:
    """The ranking of a pool by a rule, from which everything else follows."""

    cells: Cells
    rule: Rule
    q: np.ndarray
    baselines: np.ndarray
    ranking: Ranking
    sure: Sure | None
    order: Sequence[int]

    @property
    def names(self) -> list[str]:
        return [method.id for method in self.cells.methods]

    @property
    def tasks(self) -> list[str]:
        return [task.id for task in self.cells.tasks]


def rank_cells(
    cells: Cells,
    *,
    weights: str = "all",
    spread: str = "std",
    ghost: float = 0.0,
    coverage: str = "complete",
    replicates: int = 1000,
) -> Ranked:
    """Rank the methods that the coverage policy allows; the others follow with what they lack."""
    if weights == "equal" and spread != "std":
        raise UsageError("equal weights have no spread to measure", hint="Leave out spread, or weights = equal")
    if replicates < 2:
        raise UsageError("too few replicates", expected="at least 2", got=replicates)
    rule = Rule(weights, spread, ghost)
    chosen = pool(cells, coverage)
    left_out = tuple(m.row(None, cells.shown(m), values=_size(m.dim)) for m in chosen.left_out)
    shared: dict[str, Any] = {
        "columns": COLUMNS,
        "cell_columns": CELL_COLUMNS,
        "rule": f"{rule.describe()}; {COVERAGE[coverage]}",
    }
    if not chosen.cells.methods:
        return Ranked(rows=left_out, tasks=chosen.cells.tasks, task_columns=TASK_COLUMNS, **shared)
    found = _compute(chosen.cells, rule, replicates)
    sure = found.sure
    apart = groups(found.order, sure.apart) if sure else ()
    return Ranked(
        rows=(*_rows(found, cells), *left_out),
        tasks=_tasks(found),
        task_columns=TASK_COLUMNS,
        notes=(*_notes(found), *_unused(cells, chosen)),
        groups=tuple(tuple(found.names[m] for m in group) for group in apart) if sure else None,
        uncertainty=Uncertainty(LEVEL, HOW, replicates, SEED) if sure else None,
        sections=_sections(found),
        profile="rank",
        scatter=("dim", "mean_q"),
        **shared,
    )


def _compute(cells: Cells, rule: Rule, replicates: int) -> Computed:
    q = cells.numbers("q")
    baselines = np.array([method.baseline for method in cells.methods])
    ranking = rank(q, rule, baselines)
    sure = assess([task_scores(cells, task) for task in cells.tasks], rule, baselines, replicates=replicates)
    names = [method.id for method in cells.methods]
    order = sorted(range(len(names)), key=lambda m: (ranking.final[m], ranking.weighted[m], names[m]))
    return Computed(cells, rule, q, baselines, ranking, sure, order)


def task_scores(cells: Cells, task: BoardTask) -> TaskScores:
    """The scores of all methods on a task, split by split; no splits if the methods do not have the same ones."""
    own = [cells.cell(method.id, task.id) for method in cells.methods]
    sizes = {len(cell.splits) for cell in own}
    rows = [cell.splits for cell in own] if len(sizes) == 1 else [() for _ in own]
    splits = np.array(rows, dtype=np.float64).reshape(len(own), -1)
    share = float(np.median([cell.test_to_train for cell in own])) if own else TEST_TO_TRAIN
    samples = float(np.median([cell.samples for cell in own])) if own else np.inf
    return TaskScores(splits, share, task.greater_is_better, task.dataset, samples)


def _size(dim: int | None) -> dict[str, int]:
    return {"dim": dim} if dim is not None else {}


def _interval(found: Intervals, *index: int) -> Interval:
    return Interval(number(found.low[index], RANDOM), number(found.high[index], RANDOM))


def _whole(found: Intervals, m: int) -> Interval:
    return Interval(int(found.low[m]), int(found.high[m]))


def _rows(found: Computed, cells: Cells) -> Iterable[BoardRow]:
    several, sure = _aggregations(found), found.sure
    means = [_mean_intervals(task_scores(found.cells, task)) for task in found.cells.tasks]
    for m in found.order:
        method = found.cells.methods[m]
        own = cells.shown(method) | {name: _cell(found, means[t], t, m) for t, name in enumerate(found.tasks)}
        values = {column.key: several[column.key].values[m] for column in COLUMNS if column.key in several}
        values |= _size(method.dim)
        intervals = {}
        if sure:
            values["best"] = number(sure.best[m], RANDOM)
            intervals = {"rank": _whole(sure.rank, m), "mean_q": _interval(sure.mean_q, m)}
        yield method.row(int(found.ranking.final[m]), own, values=values, intervals=intervals)


def _aggregations(found: Computed) -> Mapping[str, Aggregate]:
    sign = np.array([1.0 if task.greater_is_better else -1.0 for task in found.cells.tasks])
    return aggregations(found.q, found.cells.numbers("mean") * sign[:, None], found.ranking)


def _cell(found: Computed, means: Intervals | None, t: int, m: int) -> BoardCell:
    cell = found.cells.cell(found.names[m], found.tasks[t])
    intervals = {"score": _interval(means, m)} if means else {}
    if found.sure:
        intervals["q"] = _interval(found.sure.q, t, m)
    return cell.shown(values={"q": cell.q, "rank": int(found.ranking.ranks[t, m])}, intervals=intervals)


def _mean_intervals(scores: TaskScores) -> Intervals | None:
    return mean_interval(scores.splits, scores.test_to_train) if scores.resamples else None


def _tasks(found: Computed) -> tuple[BoardTask, ...]:
    mean, std = found.cells.numbers("mean"), found.cells.numbers("std")
    tasks = []
    for t, task in enumerate(found.cells.tasks):
        known = std[t] if np.isfinite(std[t]).all() else None
        diagnosis = diagnose(found.q[t], mean[t], known, found.ranking.final, task.greater_is_better)
        values = {"weight": found.ranking.weights[t], **asdict(diagnosis)}
        # Alone, a method makes no pair.
        if found.sure and len(found.names) > 1:
            values["pairs_apart"] = number(found.sure.apart_share[t], RANDOM)
        tasks.append(replace(task, values=values))
    return tuple(tasks)


def _notes(found: Computed) -> Iterable[str]:
    weights = [*zip(found.tasks, found.ranking.weights, strict=True)]
    weights += [("ghost task", found.ranking.ghost)] if found.ranking.ghost else []
    yield f"Weights: {', '.join(f'{name} {weight:.3f}' for name, weight in weights)}."
    if not found.sure:
        yield "No intervals: they need scores of the same splits from all methods, at least two."


def _unused(cells: Cells, chosen: Pool) -> Iterable[str]:
    for task in chosen.unused:
        lacking = ", ".join(m.id for m in cells.methods if not cells.scored(m, task))
        yield f"Not counted: task {task.id}, which {lacking} lack"


def _sections(found: Computed) -> tuple[Section, ...]:
    variants = {
        name: rank(found.q, rule, found.baselines)
        for name, rule in VARIANTS.items()
        if rule != found.rule and (rule.weights != "no-baselines" or found.baselines.any())
    }
    sections = [_ranks_by_other_rules(found, variants)] if len(found.names) > 1 else []
    sections += _moves(found) if len(found.names) > 1 else []
    weights = {"this board": found.ranking.weights} | {name: other.weights for name, other in variants.items()}
    columns = (TASK, *(Column(f"w{i}", name) for i, name in enumerate(weights)))
    rows = tuple((name, *(own[t] for own in weights.values())) for t, name in enumerate(found.tasks))
    return (*sections, Section("Weights by other rules", columns, rows, about="tasks"), *_correlations(found))


def _ranks_by_other_rules(found: Computed, variants: Mapping[str, Ranking]) -> Section:
    several = _aggregations(found)
    ranks = {"this board": found.ranking.final} | {name: other.final for name, other in variants.items()}
    ranks |= {label: several[key].ranks for key, label in AGGREGATIONS.items()}
    columns = [METHOD, *(Column(f"r{i}", name, format="rank") for i, name in enumerate(ranks))]
    rows: list[tuple[Value, ...]] = [(found.names[m], *(int(own[m]) for own in ranks.values())) for m in found.order]
    if len(found.tasks) > 1:
        columns.append(
            Column("tasks", "other tasks", "The ranks if other tasks of this kind were chosen", format="range")
        )
        others = assess_tasks(found.ranking)
        rows = [(*row, _whole(others, m)) for row, m in zip(rows, found.order, strict=True)]
    return Section("Ranks by other rules", tuple(columns), tuple(rows))


def _moves(found: Computed) -> Iterable[Section]:
    """Those who change places if one method, or one task, is left out; what moves most comes first."""
    changed = Column("moves", "Moves", "Rank among the rest, before → after", format="moves")
    q, rule, baselines = found.q, found.rule, found.baselines
    for column, names, flips in (
        (METHOD, found.names, without_each_method(q, rule, baselines)),
        (TASK, found.tasks, without_each_task(q, rule, baselines)),
    ):
        rows = sorted((_flip(flip, names, found.names) for flip in flips), key=lambda row: (-len(row[1]), row[0]))
        title = f"Moves without one {column.key}: rank among the rest, before → after"
        empty = f"Leaving out any one {column.key} changes no order."
        yield Section(title, (replace(column, label=f"Left out {column.key}"), changed), tuple(rows), empty)


def _flip(flip: Flip, left_out: Sequence[str], names: Sequence[str]) -> tuple[str, dict[str, tuple[int, int]]]:
    return left_out[flip.left_out], {names[m]: move for m, move in flip.moves.items()}


def _correlations(found: Computed) -> Iterable[Section]:
    matrix, names = correlations(found.q), found.tasks
    pairs = redundant(matrix, len(found.names))
    if pairs:
        columns: tuple[Column, ...] = (TASK, replace(TASK, key="other"), Column("value", "Correlation", digits=2))
        rows: tuple[tuple[Value, ...], ...] = tuple(
            (names[a], names[b], number(value, RANDOM)) for a, b, value in pairs
        )
        yield Section("Tasks that order methods almost alike", columns, rows, about="tasks")
    if len(names) > 1 and len(found.names) > 2:
        columns = (TASK, *(Column(name, name, digits=2) for name in names))
        rows = tuple((name, *(number(v, RANDOM) for v in own)) for name, own in zip(names, matrix, strict=True))
        yield Section("Spearman's correlation of Q between tasks", columns, rows, about="tasks", matrix=True)
