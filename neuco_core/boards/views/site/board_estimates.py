"""Estimates for the empty cells of a board: there for who asks for them, and never taken for scores."""

from __future__ import annotations

from collections.abc import Sequence

from neuco_core.boards.formatting import MARK
from neuco_core.boards.model import BoardRow
from neuco_core.boards.views.site.html import Safe, table, tag
from neuco_core.boards.views.site.pieces import shown
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.text import counted

SWITCH = "estimated"


def estimated_switch() -> Safe:
    """Off at first."""
    return tag("label", tag("input", id=SWITCH, type="checkbox"), " Estimates in empty cells")


def estimated_said(source: BoardSource) -> Safe:
    """How many there are, and how well known scores were estimated; scripts show it with the estimates."""
    if not source.estimated:
        return Safe("")
    words = tag("b", f"{MARK} Estimated, with a 95 % interval.")
    return tag("p", words, f" {source.estimated_said}", id=f"{SWITCH}-said", class_="note", hidden=True)


def estimated_cell(source: BoardSource, row: BoardRow, task: str) -> Safe:
    """A screen reader says that it is an estimate; a title alone it may leave out."""
    if (row.method, task) not in source.estimated:
        return Safe("")
    value, interval = _told(source, row.method, task)
    words = f"estimated {value}, 95 % interval {interval}; no score, and not ranked"
    inner = (tag("span", "estimated ", class_="hidden"), f"{MARK}{value}", tag("small", interval))
    return tag("span", *inner, class_=SWITCH, title=words)


def estimated_of_method(source: BoardSource, method: str) -> Safe:
    """What is estimated of a method, by task; folded away, and nothing where all was run."""
    tasks = [task.id for task in source.board.tasks if (method, task.id) in source.estimated]
    rows = [(source.task_title(task), "task", task, *_told(source, method, task)) for task in tasks]
    return _listed(source, "Task", rows)


def estimated_of_task(source: BoardSource, task: str) -> Safe:
    """What is estimated on a task, by name of the method: in the order of estimates it would be a ranking."""
    methods = sorted((source.method_title(method), method) for method, on in source.estimated if on == task)
    rows = [(title, "method", method, *_told(source, method, task)) for title, method in methods]
    return _listed(source, "Method", rows)


def _listed(source: BoardSource, head: str, rows: Sequence[tuple[str, str, str, str, str]]) -> Safe:
    if not rows:
        return Safe("")
    summary = f"{counted(len(rows), 'score')} estimated, not run"
    heads = (head, ("Estimated", "number"), ("95 % interval", "number"))
    cells = [
        (tag("a", title, href=f"../{side}/{name}.html"), (f"{MARK}{value}", "number soft"), (interval, "number soft"))
        for title, side, name, value, interval in rows
    ]
    said = tag("p", f"On the whole board: {source.estimated_said}", class_="note")
    listed = table(heads, cells, caption="Estimates with 95 % intervals")
    return tag("details", tag("summary", summary), said, listed, id=SWITCH)


def _told(source: BoardSource, method: str, task: str) -> tuple[str, str]:
    """An estimate and its interval as text."""
    cell, column = source.estimated[method, task], source.board.cell_columns[0]
    return shown(column, cell.values[column.key]), shown(column, cell.intervals[column.key])
