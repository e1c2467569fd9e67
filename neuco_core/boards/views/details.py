"""What stands behind a ranking, as small tables: groups, what the kind adds, and diagnostics of the tasks."""

from __future__ import annotations

from neuco_core.boards.model import Board, Column, Section, Value
from neuco_core.boards.values import LOWER, show

TEXT = ("text", "method", "task", "moves")
GROUPED = "Methods in a group are statistically indistinguishable"


def details(board: Board) -> list[Section]:
    """All that there is to tell of a board, for a terminal; matrices are for the page."""
    groups = Section(GROUPED, (Column("methods", "Methods", format="text"),), _groups(board))
    sections = [s for s in board.sections if not s.matrix]
    ranking = [s for s in sections if s.about == "ranking"]
    tasks = [s for s in sections if s.about == "tasks"]
    found = [groups, *ranking, *([diagnostics(board)] if board.ranked else []), *tasks]
    return [section for section in found if section.rows or section.empty]


def _groups(board: Board) -> tuple[tuple[str], ...]:
    return tuple((", ".join(group),) for group in board.groups or ())


def diagnostics(board: Board) -> Section:
    """The tasks with the columns that the kind has for them."""
    known = [c for c in board.task_columns if any(task.values.get(c.key) is not None for task in board.tasks)]
    columns = (Column("task", "Task", format="task"), Column("metric", "metric", format="text"), *known)
    rows = tuple(
        (
            task.id,
            (task.metric or "–") + ("" if task.greater_is_better else f", {LOWER}"),
            *(task.values.get(column.key) for column in known),
        )
        for task in board.tasks
    )
    return Section("Task diagnostics", columns, rows)


def marked(board: Board, row: tuple[Value, ...], column: Column, value: Value) -> bool:
    """Whether a rank in a section is not the board's."""
    return column.format == "rank" and value != board.ranks.get(str(row[0]))


def lines(board: Board, section: Section) -> list[list[str]]:
    """The rows of a section as text; a * marks a rank that is not the board's."""
    return [
        [show(c, value) + "*" * marked(board, row, c, value) for c, value in zip(section.columns, row, strict=True)]
        for row in section.rows
    ]


def right(section: Section) -> set[int]:
    """The columns of numbers."""
    return {i for i, column in enumerate(section.columns) if column.format not in TEXT}
