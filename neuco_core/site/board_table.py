"""The table of a board: where its columns stand, how its cells are coloured, and what each row shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from neuco_core.boards.formatting import axes, higher_is_better, with_values
from neuco_core.boards.model import Board, BoardCell, BoardRow, BoardTask, Column, Number
from neuco_core.site.figures import bounds, ends
from neuco_core.site.page_data import PageData
from neuco_core.text import common_prefix

LEVELS = 10
SHADES = "0123456789a"  # a level as one character, for the scripts
SHORTEST_HEAD, LONGEST_TAIL = 9, 30  # characters, of a name that is cut
LONG = 100  # rows
FITTING = 11  # tasks on a wide screen
LONGEST_WORD = 14  # in the head of a column
Heat = Callable[[float], int]


@dataclass(frozen=True)
class TableLayout:
    """Where the columns of a board stand: one drawn as bars before the tasks, those with rankings of their own beside
    it, a few after the tasks, the rest on demand. Where there are columns with rankings, the tasks are on demand, too.
    """

    drawn: tuple[Column, ...]
    beside: tuple[Column, ...]
    after: tuple[Column, ...]
    more: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.drawn, *self.beside, *self.after, *self.more)


def layout(page: PageData) -> TableLayout:
    """Columns that are drawn against each other, or have intervals, are always shown; without tasks all have room."""
    board, rows = page.board, page.table_rows
    filled = with_values(board.columns, rows)
    numbers = [column for column in filled if column.format in ("number", "percent", "integer")]
    pair = [column for key in board.scatter or () for column in numbers if column.key == key]
    wide = [column for column in numbers if any(column.key in row.intervals for row in rows)]
    bars = pair[-1:] or wide[:1]
    beside = [column for column in axes(board) if column in filled and column not in bars]
    rest = [column for column in filled if column not in (*bars, *beside)]
    after = [column for column in rest if column in (*pair, *wide) or not board.tasks or len(filled) <= 3]
    more = [column for column in rest if column not in after]
    return TableLayout(tuple(bars), tuple(beside), tuple(after), (*more, *board.fact_columns))


def split_title(title: str) -> tuple[str, str]:
    """A name for one line. Variants of a method mostly differ after the last comma: what is before that is cut."""
    head, _, tail = title.rpartition(", ")
    return (title, "") if len(head) < SHORTEST_HEAD or len(tail) > LONGEST_TAIL else (head, tail)


def value_of(row: BoardRow, column: Column) -> str | Number:
    return row.values.get(column.key, row.facts.get(column.key))


def short_names(tasks: Sequence[BoardTask]) -> dict[str, str]:
    """The names of tasks without the words that they all begin with."""
    prefix = common_prefix([task.id for task in tasks])
    return {task.id: task.id.removeprefix(prefix).replace("-", " ").replace("_", " ") for task in tasks}


def levels(values: Sequence[float], higher: bool) -> Heat | None:
    """A colour level by a value; none where no two differ. The highest, which is bold, is for the best alone.

    The bad end is cut, so that one very bad method does not bleach the rest.
    """
    ends = bounds(values, higher, 1.5)
    if ends is None or ends[0] == ends[1]:
        return None
    worst, best = ends if higher else ends[::-1]

    def level(value: float) -> int:
        share = (value - worst) / (best - worst)
        return LEVELS if value == best else min(max(round(share * LEVELS), 0), LEVELS - 1)

    return level


def heat(board: Board, column: Column, task: BoardTask) -> Heat | None:
    values = [row.value(task.id, column.key) for row in board.ranked]
    return levels([value for value in values if value is not None], higher_is_better(column, task))


def shades(page: PageData) -> dict[str, list[str]]:
    """By method, for each column of cells a text with one character per task: its level, or - for none."""
    board = page.board
    by_method: dict[str, list[str]] = {row.method: [] for row in page.table_rows}
    for column in board.cell_columns:
        heats = [heat(board, column, task) for task in board.tasks]
        for row in page.table_rows:
            marks = ""
            for task, level in zip(board.tasks, heats, strict=True):
                cell = row.cells.get(task.id, BoardCell())
                value = cell.values.get(column.key) if cell.status == "ok" else None
                marks += "-" if level is None or value is None else SHADES[level(value)]
            by_method[row.method].append(marks)
    return by_method


def gaps(board: Board) -> set[str]:
    """The methods above which the data draw a line: no group holds both them and the one before."""
    if board.groups is None:
        return set()
    joined = [set(group) for group in board.groups]
    pairs = pairwise(row.method for row in board.ranked)
    return {after for before, after in pairs if not any({before, after} <= group for group in joined)}


def numbers(board: Board, key: str) -> list[float]:
    return [value for row in board.ranked if isinstance(value := row.values.get(key), int | float)]


def table_view(page: PageData, colours: dict[str, list[str]]) -> dict[str, Any]:
    """What the template of the table needs besides the page."""
    board, columns = page.board, layout(page)
    first = board.task_columns[0] if board.task_columns else None
    weights = {task.id: task.values.get(first.key) for task in board.tasks} if first else {}
    reach: dict[str, tuple[float, float]] = {}
    for column in columns.drawn:
        values = numbers(board, column.key)
        values += [end for row in board.ranked for end in ends(row.intervals.get(column.key)) or ()]
        reach[column.key] = min(values, default=0.0), max(values, default=0.0)
    # How much room there is for names.
    look = []
    if not columns.beside and (len(board.tasks) <= 5 or len(board.tasks) > 9):
        look.append("roomy" if len(board.tasks) <= 5 else "dense")
    if len(board.tasks) > FITTING or columns.beside:
        look.append("wide")
    if len(page.table_rows) > LONG:  # the first rows are drawn at once, and the rest when they can be used
        look.append("long")
    if columns.beside:
        look.append("folded")
    return {
        "columns": columns,
        "look": " ".join(look),
        "weight_column": first,
        "weights": weights,
        "largest_weight": max((weight for weight in weights.values() if weight is not None), default=0),
        "ends": reach,
        "levels": {c.key: levels(numbers(board, c.key), c.direction != "lower") for c in columns.beside},
        "shades": {method: [SHADES.find(mark) for mark in marks[0]] for method, marks in colours.items() if marks},
        "gaps": gaps(board),
    }
