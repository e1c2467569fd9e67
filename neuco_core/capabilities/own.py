"""The tasks to run next, of a plan: those whose scores tell most about the rest, by the scores of other methods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from neuco_core.boards.facts import declared
from neuco_core.boards.model import Board
from neuco_core.capabilities.predictor import LEAST_CELLS, Predictor
from neuco_core.capabilities.read import allowed_by, method_facts
from neuco_core.capabilities.suggest import Suggestion, suggest
from neuco_core.capabilities.table import Table
from neuco_core.errors import DataError, NeucoError
from neuco_core.plugins.catalog import load_method
from neuco_core.records.model import Key, Record
from neuco_core.runs.plan import Plan
from neuco_core.specs import Task, versioned_id
from neuco_core.text import counted

Scored = tuple[Key, float, bool]  # a cell, its score, and whether greater is better


def of_records(records: Iterable[Record]) -> Iterator[Scored]:
    return ((r.key, r.mean, r.greater_is_better) for r in records if r.ok and r.mean is not None)


def of_board(board: Board) -> Iterator[Scored]:
    """The scores of a suite's board, for those who have the boards of a registry and not its records."""
    protocol = board.suite.protocol if board.suite else ""
    for row in board.rows:
        for task in board.tasks:
            score = board.score(row, task.id)
            if score is not None and row.cells[task.id].status == "ok":
                key = versioned_id(row.method, row.version), versioned_id(task.id, task.version), protocol
                yield key, float(score), task.greater_is_better


def suggested(plans: Sequence[Plan], scores: Iterable[Scored], number: int) -> tuple[list[Plan], list[Suggestion]]:
    """Plans of one method cut down to the tasks that are suggested.

    A task that the method cannot run is not suggested, nor one that failed before, nor one that nobody has run.
    Nothing at all is suggested where nothing is left to run.
    """
    cells = {(cell.task.label, plan.protocol.name): cell for plan in plans for cell in plan.cells}
    work = {cell.task.label for cell in cells.values() if cell.to_run}
    if not work:
        return [], []
    method = next(iter(cells.values())).method.label
    known, sign = {}, {}
    for (name, task, protocol), score, greater_is_better in scores:
        if (task, protocol) in cells:
            sign[task] = 1.0 if greater_is_better else -1.0
            known[name, task] = sign[task] * score
    table = _table([cell.task for cell in cells.values()], known, method, work)
    found = suggest(Predictor().fit(table), method, number)
    chosen = {suggestion.task for suggestion in found}
    cut = [replace(plan, cells=tuple(cell for cell in plan.cells if cell.task.label in chosen)) for plan in plans]
    return [plan for plan in cut if plan.cells], [_turned(suggestion, sign[suggestion.task]) for suggestion in found]


def _table(tasks: Sequence[Task], known: Mapping[tuple[str, str], float], method: str, work: set[str]) -> Table:
    """The tasks that can be run and that others have run, and those on which the method has a score."""
    others = work & {task for name, task in known if name != method}
    kept = [
        task for task in tasks if task.label in others or ((method, task.label) in known and task.label not in work)
    ]
    labels = tuple(task.label for task in kept)
    methods = tuple(dict.fromkeys([name for name, task in known if task in labels] + [method]))
    cells = {(name, task): score for (name, task), score in known.items() if name != method or task not in work}
    values = np.array([[cells.get((name, task), np.nan) for task in labels] for name in methods])
    if not others or np.isfinite(values).sum() < LEAST_CELLS:
        count = sum(name != method for name in methods)
        raise DataError(
            f"nothing to go by: too few scores of other methods on what {method!r} has yet to run",
            expected=f"at least {LEAST_CELLS}",
            got=f"{np.isfinite(values).sum()}, of {counted(count, 'other method')}",
            hint="Leave out --suggested, or score other methods first",
        )
    facts = {task.label: {"dataset": task.dataset, "kind": task.kind} for task in kept}
    allowed = {task.label: allowed_by(task.metric) for task in kept}
    return Table(methods, labels, values, {name: _declared(name) for name in methods}, facts, allowed=allowed)


def _declared(method: str) -> dict[str, str | float]:
    try:
        return method_facts(dict(declared(load_method(method))))
    except NeucoError:  # not registered here, or broken
        return {}


def _turned(suggestion: Suggestion, sign: float) -> Suggestion:
    low, high = sorted((sign * suggestion.low, sign * suggestion.high))
    return replace(suggestion, predicted=sign * suggestion.predicted, low=low, high=high)
