"""Values of a board as text, as their columns say; and why a row or a task lacks some."""

from __future__ import annotations

from collections.abc import Callable

from neuco_core.boards.model import Board, BoardRow, BoardTask, Column, Interval, Section, Value

NONE = "–"
MANY = 100_000
LOWER = "lower is better"
MARK = "≈"  # before a value that never ranks, such as an estimate
DOUBT = "†"  # before a value that counts, and about which something must be said
RANK = Column("rank", "Rank", "Final rank, and the ranks that are plausible for it", "lower", 0, "integer")


def higher_is_better(column: Column, task: BoardTask) -> bool:
    """Of the cells under a task: as the column says, and where it says nothing, as the task does."""
    return column.direction == "higher" if column.direction else task.greater_is_better


def nobody(board: Board) -> str:
    """That no method is ranked, and what to do where nothing was scored yet."""
    if board.suite is None or any(cell.values for row in board.rows for cell in row.cells.values()):
        return "No method is ranked."
    return f"No scores yet. Score every method: `neuco score --all --suite {board.suite.id}`."


def show(column: Column, value: Value, name: Callable[[str], str] = str) -> str:
    """A value for people; ``name`` gives the title of a method or task."""
    if value is None:
        return NONE
    if isinstance(value, Interval):
        between = "–" if (value.low or 0) >= 0 else " to "
        return NONE if value.low is None else f"{show(column, value.low)}{between}{show(column, value.high)}"
    if isinstance(value, dict):
        return "; ".join(f"{name(method)} {before} → {after}" for method, (before, after) in value.items())
    if isinstance(value, str):
        return name(value)
    if column.format == "percent":
        return f"{value:.{column.digits}%}"
    whole = column.format in ("integer", "rank", "range")
    # Only long numbers need the commas: a size of 1024 is a name, too.
    return f"{value:{',' if whole and value >= MANY else ''}.{0 if whole else column.digits}f}"


def in_row(column: Column, row: BoardRow) -> str:
    """A column of a row, with its interval if it has one."""
    value, interval = row.values.get(column.key), row.intervals.get(column.key)
    if column.format == "range":
        return show(column, interval)
    return show(column, value) + (f" ({show(column, interval)})" if interval and value is not None else "")


def in_cell(column: Column, row: BoardRow, task: str) -> str:
    value = row.value(task, column.key)
    if value is None:
        return NONE
    cell = row.cells[task]
    mark = MARK if cell.status != "ok" else DOUBT if cell.reason else ""
    return mark + show(column, value)


def with_values(columns: tuple[Column, ...], rows: tuple[BoardRow, ...]) -> tuple[Column, ...]:
    """The columns of which anything is known."""
    return tuple(c for c in columns if any(row.values.get(c.key) is not None or c.key in row.intervals for row in rows))


def reasons(row: BoardRow) -> list[tuple[str, str, str]]:
    """Why a row is not ranked: the tasks, status and reason, each reason once."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for task, cell in row.lacks.items():
        by_reason.setdefault((cell.status, cell.reason), []).append(task)
    every = len(row.cells)
    lacking = [("all tasks" if len(tasks) == every else ", ".join(tasks), *why) for why, tasks in by_reason.items()]
    return ([("all tasks", "shown only", row.note)] if row.note else []) + lacking


def why_unranked(row: BoardRow) -> str:
    if row.same_as:
        return f"the same embeddings as {row.same_as}"
    return row.note or "; ".join(f"{tasks}: {status}, {reason}" for tasks, status, reason in reasons(row))


def rankings_by_column(board: Board) -> dict[str, Section]:
    """By key of a column of the board: the ranking by that column."""
    keys = {column.label: column.key for column in board.columns}
    return {keys[part.title]: part for part in board.sections if part.about == "column" and part.title in keys}


def axes(board: Board) -> tuple[Column, ...]:
    """The columns that have a ranking of their own: all of one scale, so that a profile can be drawn over them."""
    ranked_by = rankings_by_column(board)
    return tuple(column for column in board.columns if column.key in ranked_by)
