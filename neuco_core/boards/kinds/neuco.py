"""The board of NeuCo-Bench: ranks weighted by the spread of Q, how certain they are, and what they depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace as replace_cells
from typing import Any

import numpy as np
from msgspec.structs import replace

from neuco_core.boards.cells import COVERAGE, TEST_TO_TRAIN, Cell, Cells, pool
from neuco_core.boards.formatting import RANK, show
from neuco_core.boards.model import (
    RANDOM,
    SCORE,
    STD,
    BoardRow,
    BoardTask,
    Column,
    Interval,
    Ranked,
    Section,
    Uncertainty,
    Value,
    number,
)
from neuco_core.boards.stats.diagnostics import Moves, diagnose, furthest, redundant, spearman, without_each
from neuco_core.boards.stats.rank_intervals import Intervals, groups
from neuco_core.boards.stats.ranking import DIGITS, Ranking, Rule, aggregations, positions, rank
from neuco_core.boards.stats.uncertainty import (
    LEVEL,
    SEED,
    Assessment,
    TaskScores,
    assess,
    assess_tasks,
    mean_interval,
    surely_differ,
)
from neuco_core.errors import UsageError
from neuco_core.text import counted

HOW = (
    "bootstrap over splits, the same for all methods, deviations stretched to the variance s²(1/K + test/train) of "
    "Nadeau and Bengio, for F1 with test/train multiplied by what training adds; the interval of a score is Student's, "
    f"or Wilson's if the metric has two ends; that of a rank unites the rank itself, the middle {LEVEL:.0%} of the "
    "ranks in the replicates, and the places from behind the methods that are surely better to behind those that may "
    "be, each pair judged by itself; P(first) is from the same replicates; groups are by t-tests of mean scores, all "
    "pairs judged at once (Holm), and intervals of one group overlap. "
    "Splits cannot show what would change if an encoder were trained again, or if the samples were of other scenes"
)
COLUMNS = (
    Column(
        "best",
        "P(first)",
        "How often the method is first if splits are resampled; among near equals that says too much",
        "higher",
        0,
        "percent",
    ),
    Column("weighted_rank", "Weighted rank", "Sum of weight × rank over the tasks; lower is better", "lower"),
    Column("mean_q", "Mean Q", "Mean of Q over the tasks", "higher", 2),
    Column("mean_score", "Mean score", "Mean of the mean scores over the tasks; errors count as negative", "higher"),
    Column("borda", "Borda", "A point for each method beaten on a task, half a point for a tie", "higher", 1),
    Column("dim", "Size", "Numbers in an embedding", "lower", 0, "integer"),
)
CELL_COLUMNS = (
    SCORE,
    STD,
    Column(
        "q",
        "Q",
        "Mean score relative to its spread over splits, times 100; grows with the number of samples, and below 0 with "
        "the spread, so that it does not compare negative scores",
        "higher",
        2,
    ),
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


NEGATIVE = "negative mean score, unreliable: Q does not compare these"
FIRST = "P(first) counts replicates: among near equals it is higher than the chance to be the best."
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


class ComputedBoard:
    """The ranking of a pool by a rule, from which everything else follows."""

    def __init__(self, cells: Cells, rule: Rule, replicates: int) -> None:
        self.cells, self.rule = cells, rule
        self.names = [method.id for method in cells.methods]
        self.tasks = [task.id for task in cells.tasks]
        self.baselines = np.array([method.baseline for method in cells.methods])
        self.q = cells.numbers("q")
        self.ranking = rank(self.q, rule, self.baselines)
        sign = np.array([1.0 if task.greater_is_better else -1.0 for task in cells.tasks])
        self.others = aggregations(self.q, cells.numbers("mean") * sign[:, None], self.ranking)
        self.scores = [task_scores(cells, task) for task in cells.tasks]
        self.sure = assess(self.scores, rule, self.baselines, replicates=replicates)
        final, weighted = self.ranking.final, self.ranking.weighted
        self.order = sorted(range(len(self.names)), key=lambda m: (final[m], weighted[m], self.names[m]))


def rank_cells(cells: Cells, *, coverage: str = "complete", replicates: int = 1000, **options: Any) -> Ranked:
    """Rank the methods that the coverage policy allows; the others follow with what they lack."""
    rule = Rule(**options)
    if rule.weights == "equal" and rule.spread != "std":
        raise UsageError("equal weights have no spread to measure", hint="Leave out spread, or weights = equal")
    if replicates < 2:
        raise UsageError("too few replicates", expected="at least 2", got=replicates)
    cells = replace_cells(cells, cells={key: _doubted(cell) for key, cell in cells.cells.items()})
    chosen = pool(cells, coverage)
    left_out = tuple(
        m.row(None, cells.shown(m), values={"dim": m.dim}) for m in cells.methods if m not in chosen.methods
    )
    # Tasks that do not count yet are shown all the same, with the scores they lack and why.
    counted_tasks = {task.id for task in chosen.tasks}
    uncounted = tuple(task for task in cells.tasks if task.id not in counted_tasks) if coverage == "most" else ()
    empty = Ranked(
        columns=COLUMNS,
        cell_columns=CELL_COLUMNS,
        task_columns=TASK_COLUMNS,
        rule=f"{rule.describe()}; {COVERAGE[coverage]}",
        tasks=(*chosen.tasks, *uncounted),
        rows=left_out,
        profile="rank",
        scatter=("dim", "mean_q"),
    )
    if not chosen.methods:
        return empty
    board = ComputedBoard(chosen, rule, replicates)
    ranked = replace(
        empty,
        rows=(*_rows(board, cells), *left_out),
        tasks=(*_tasks(board), *uncounted),
        notes=tuple(_notes(board, cells)),
        sections=tuple(_sections(board)),
    )
    if board.sure is None:
        return ranked
    alike = tuple(tuple(board.names[m] for m in group) for group in groups(board.order, board.sure.apart))
    return replace(ranked, groups=alike, uncertainty=Uncertainty(LEVEL, HOW, replicates, SEED))


def indistinguishable(cells: Cells, method: str, options: Mapping[str, Any]) -> list[str]:
    """The methods that the test of the groups does not tell from one, wherever a board with these options ranks them.

    Groups are runs of neighbours in the ranking, in which a pair that differs in the other order stays together.
    """
    rule = Rule(**{key: value for key, value in options.items() if key not in ("coverage", "replicates")})
    chosen = pool(cells, options["coverage"])
    names = [one.id for one in chosen.methods]
    scores = [task_scores(chosen, task) for task in chosen.tasks]
    differ = surely_differ(scores, rule, np.array([one.baseline for one in chosen.methods]))
    if differ is None:
        return []
    same = zip(names, differ[names.index(method)], strict=True)
    return [name for name, differs in same if not differs and name != method]


def _doubted(cell: Cell) -> Cell:
    """Below 0 more spread makes Q better. Errors, where lower is better, have a negative Q and a positive mean."""
    negative = cell.scored and (cell.mean or 0) < 0 and (cell.q or 0) < 0
    return replace_cells(cell, reason=NEGATIVE) if negative else cell


def task_scores(cells: Cells, task: BoardTask) -> TaskScores:
    """The scores of all methods on a task, split by split; no splits if the methods do not have the same ones."""
    on_task = [cells.cell(method.id, task.id) for method in cells.methods]
    sizes = {len(cell.splits) for cell in on_task}
    rows = [cell.splits for cell in on_task] if len(sizes) == 1 else [() for _ in on_task]
    factors, trials = np.array([cell.trained for cell in on_task]).reshape(-1, 2).T
    ends = {(cell.lower, cell.upper) for cell in on_task}
    lower, upper = ends.pop() if len(ends) == 1 else (None, None)
    return TaskScores(
        splits=np.array(rows, dtype=np.float64).reshape(len(on_task), -1),
        test_to_train=float(np.median([cell.test_to_train for cell in on_task])) if on_task else TEST_TO_TRAIN,
        greater_is_better=task.greater_is_better,
        dataset=task.dataset,
        samples=float(np.median([cell.samples for cell in on_task])) if on_task else np.inf,
        factors=factors,
        trials=trials,
        lower=lower,
        upper=upper,
    )


def _interval(ends: Intervals, *index: int) -> Interval:
    return Interval(number(ends.low[index], RANDOM), number(ends.high[index], RANDOM))


def _ranks(ends: Intervals, m: int) -> Interval:
    return Interval(int(ends.low[m]), int(ends.high[m]))


def _rows(board: ComputedBoard, cells: Cells) -> Iterable[BoardRow]:
    sure = board.sure
    means = [mean_interval(scores) if scores.resamples else None for scores in board.scores]
    for m in board.order:
        method = board.cells.methods[m]
        shown = cells.shown(method)
        for t, task in enumerate(board.tasks):
            cell, ends = board.cells.cell(method.id, task), means[t]
            around = {"score": _interval(ends, m)} if ends else {}
            if sure:
                around["q"] = _interval(sure.q, t, m)
            more = {"q": cell.q, "rank": int(board.ranking.ranks[t, m])}
            shown[task] = cell.shown(values=more, intervals=around)
        values = {"weighted_rank": board.ranking.weighted[m], "dim": method.dim}
        values |= {key: other[m] for key, other in board.others.items()}
        intervals = {}
        if sure:
            values["best"] = number(sure.best[m], RANDOM)
            intervals = {"rank": _ranks(sure.rank, m), "mean_q": _interval(sure.mean_q, m)}
        yield method.row(int(board.ranking.final[m]), shown, values=values, intervals=intervals)


def _tasks(board: ComputedBoard) -> Iterable[BoardTask]:
    mean, std = board.cells.numbers("mean"), board.cells.numbers("std")
    for t, task in enumerate(board.cells.tasks):
        spread = std[t] if np.isfinite(std[t]).all() else None
        values = diagnose(board.q[t], mean[t], spread, board.ranking.final, task.greater_is_better)
        values["weight"] = board.ranking.weights[t]
        if board.sure and len(board.names) > 1:  # alone, a method makes no pair
            values["pairs_apart"] = number(board.sure.apart_share[t], RANDOM)
        yield replace(task, values=values)


def _notes(board: ComputedBoard, cells: Cells) -> Iterable[str]:
    if board.ranking.ghost:
        yield f"Weight of the ghost task: {board.ranking.ghost:.3f}."
    if board.sure:
        yield FIRST
        yield from _likeliest(board, board.sure)
    else:
        yield "No intervals: they need scores of the same splits from all methods, at least two."
    for task in cells.tasks:
        if task.id not in board.tasks:
            lacking = ", ".join(m.id for m in cells.methods if not cells.scored(m, task))
            yield f"Not counted: task {task.id}, which {lacking} lack"


def _likeliest(board: ComputedBoard, sure: Assessment) -> Iterable[str]:
    """Why the first is not the likeliest to be first, if it is not: P(first) is what other samples might have given."""
    best = np.round(sure.best, RANDOM)
    first, likeliest = board.order[0], max(board.order, key=lambda m: best[m])
    if best[likeliest] <= best[[m for m in board.order if board.ranking.final[m] == 1]].max():
        return
    ranges = " and ".join(f"{board.names[m]} {show(RANK, _ranks(sure.rank, m))}" for m in (first, likeliest))
    apart = "" if sure.apart[first, likeliest] else " The splits do not tell the two apart."
    yield (
        f"{board.names[first]} is first by the scores as they are, but {board.names[likeliest]} is first in more "
        f"replicates ({best[likeliest]:.0%} against {best[first]:.0%}): plausible ranks are {ranges}.{apart}"
    )


def _sections(board: ComputedBoard) -> Iterable[Section]:
    """How robust the ranking is, and how its tasks depend on each other."""
    rankings = {"This board": board.ranking}
    for name, rule in VARIANTS.items():
        if rule != board.rule and (rule.weights != "no-baselines" or board.baselines.any()):
            rankings[name] = rank(board.q, rule, board.baselines)
    if len(board.names) > 1:
        yield _robustness(board, rankings)
    columns = (TASK, *(Column(f"w{i}", name) for i, name in enumerate(rankings)))
    rows = tuple((name, *(ranking.weights[t] for ranking in rankings.values())) for t, name in enumerate(board.tasks))
    yield Section("Weights by other rules", columns, rows, about="tasks")
    matrix, names = [[spearman(first, second) for second in board.q] for first in board.q], board.tasks
    alike = tuple((names[a], names[b], number(value, RANDOM)) for a, b, value in redundant(matrix, len(board.names)))
    if alike:
        columns = (TASK, replace(TASK, key="other"), Column("value", "Correlation", digits=2))
        yield Section("Tasks that order methods almost alike", columns, alike, about="tasks")
    if len(names) > 1 and len(board.names) > 2:
        columns = (TASK, *(Column(name, name, digits=2) for name in names))
        cells = tuple((name, *(number(v, RANDOM) for v in line)) for name, line in zip(names, matrix, strict=True))
        yield Section("Spearman's correlation of Q between tasks", columns, cells, about="tasks", matrix=True)


def _robustness(board: ComputedBoard, rankings: Mapping[str, Ranking]) -> Section:
    """The ranks of every method by other rules, and without the method or the task that matters most to it."""
    ranks = {name: other.final for name, other in rankings.items()}
    for key, label in (("mean_q", "Mean Q"), ("borda", "Borda")):
        ranks[label] = positions(-np.round(board.others[key], DIGITS))
    left_out: dict[str, tuple[Sequence[str], Moves]] = {
        "method": (board.names, without_each("method", board.q, board.rule, board.baselines)),
        "task": (board.tasks, without_each("task", board.q, board.rule, board.baselines)),
    }
    for noun, (names, moves) in left_out.items():
        if len(names) > 1:
            ranks[f"Without a {noun}"] = furthest(board.ranking.final, moves)
    columns = [METHOD, *(Column(f"r{i}", name, HELP[name], format="rank") for i, name in enumerate(ranks))]
    others = assess_tasks(board.ranking) if len(board.tasks) > 1 else None
    if others:
        columns.append(RESAMPLED)
    rows: list[tuple[Value, ...]] = []
    for m in board.order:
        line: tuple[Value, ...] = (board.names[m], *(int(final[m]) for final in ranks.values()))
        rows.append((*line, _ranks(others, m)) if others else line)
    lead = _lead(board, np.stack([*ranks.values()]), left_out)
    return Section("How robust is this ranking?", tuple(columns), tuple(rows), lead=lead, about="robustness")


def _lead(board: ComputedBoard, ranks: np.ndarray, left_out: Mapping[str, tuple[Sequence[str], Moves]]) -> str:
    """The ranks (rankings, methods) in a sentence: who is first, who moves most, and whose absence moves most."""
    first = board.order[0]
    times = int((ranks[:, first] == 1).sum())
    share = "all" if times == len(ranks) else f"{times} of"
    parts = [f"{board.names[first]} is first in {share} {len(ranks)} rankings"]
    moved = np.abs(ranks - board.ranking.final).max(axis=0)
    if moved.max() > 0:
        most = max(board.order, key=lambda m: moved[m])
        low, high = ranks[:, most].min(), ranks[:, most].max()
        parts.append(f"{board.names[most]} moves most, between ranks {low} and {high}")
    for noun, (names, moves) in left_out.items():
        if len(names) > 1 and moves:
            out = max(moves, key=lambda one: len(moves[one]))
            parts.append(f"leaving out {noun} {names[out]} moves {counted(len(moves[out]), 'method')}")
        elif len(names) > 1:
            parts.append(f"leaving out any one {noun} moves nobody")
    return "; ".join(parts) + "."
