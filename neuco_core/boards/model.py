"""A board as typed data: rows, cells, intervals, and the columns that say what they are.

Whatever shows a board goes through its columns and names none, so that another kind of board may bring others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from neuco_core.errors import DataError
from neuco_core.fields import ID
from neuco_core.files import read_strictly

SCHEMA = 2
LARGEST_FILE = 64_000_000
# Sums of the same numbers may differ in the last bits between machines; what comes out of random replicates also
# depends on how a quantile falls, so a kind rounds it to what is known.
EXACT = 10
RANDOM = 4
Id = Annotated[str, Meta(pattern=rf"^(?:{ID.pattern})\Z")]
Number = int | float | None
# How a score came about, from the least to the most that is known: a mark for tables, and the words. Only what runs
# on main sets the last three: `python -m ci reconcile` the first two of them, a maintainer's list the last.
Trust = Literal["", "copied", "self-reported", "scored", "re-run", "confirmed"]
TRUST: Mapping[str, tuple[str, str]] = {
    "copied": ("c", "copied from a publication"),
    "self-reported": ("s", "self-reported"),
    "scored": ("f", "scored by CI from a file"),
    "re-run": ("r", "re-run by CI from code"),
    "confirmed": ("a", "confirmed by the model's author"),
}
Status = Literal["ok", "stale", "failed", "skipped", "not-applicable", "missing", "estimated"]
T = TypeVar("T")


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """What all parts of a board have in common."""


Format = Literal["number", "percent", "integer", "range", "text", "choice", "method", "task", "rank", "moves"]


class Column(Part, frozen=True):
    """What stands under a key. In a column of cells, no direction means the direction of the task.

    ``range`` shows the interval alone. A ``choice`` is a text of few values, by which rows are filtered. The last four
    are for sections: ``rank`` is marked where it is not the board's, ``moves`` are methods with ranks before and after.
    """

    key: Id
    label: str
    help: str = ""
    direction: Literal["higher", "lower", ""] = ""
    digits: int = 3
    format: Format = "number"


class Interval(Part, frozen=True, array_like=True):
    low: Number
    high: Number


Value = str | Number | Interval | dict[str, tuple[int, int]]

SCORE = Column("score", "Mean score", "Mean of the task's metric over the splits")
STD = Column("std", "Std", "Standard deviation over the splits", "lower")


class BoardTask(Part, frozen=True):
    """A task as a board sees it; ``values`` are by key of the board's ``task_columns``."""

    id: Id
    version: int = 1
    dataset: str = ""
    kind: str = "regression"
    metric: str = ""
    greater_is_better: bool = True
    values: dict[str, Number] = {}

    def describe(self) -> str:
        direction = "higher" if self.greater_is_better else "lower"
        return f"{self.kind} on {self.dataset}, {self.metric}, {direction} is better"


class BoardCell(Part, frozen=True):
    """A method on a task; ``values`` are by key of ``cell_columns``. What is not ``ok`` never ranks, for a reason.

    One that is ``ok`` and has a reason ranks, and is marked. ``trust`` says how the score came about.
    """

    values: dict[str, Number] = {}
    intervals: dict[str, Interval] = {}
    status: Status = "ok"
    reason: str = ""
    splits: int = 0
    fingerprint: str = ""
    trust: Trust = ""


class BoardRow(Part, frozen=True):
    """A method. Without a rank it is shown and does not compete: ``note``, or the cells that it lacks, say why.

    ``same_as`` is the method whose embeddings it shares, under which it is shown. ``facts`` are by key of the board's
    ``fact_columns``; ``overlaps`` say, by dataset, how the method's training data meets the samples.
    """

    method: Id
    rank: Annotated[int, Meta(ge=1)] | None = None
    version: int = 1
    title: str = ""
    baseline: bool = False
    values: dict[str, str | Number] = {}
    intervals: dict[str, Interval] = {}
    cells: dict[str, BoardCell] = {}
    note: str = ""
    same_as: str = ""
    facts: dict[str, str | Number] = {}
    overlaps: dict[str, str] = {}

    def value(self, task: str, key: str) -> Number:
        """What stands under a task, by key of a column of cells."""
        return self.cells[task].values.get(key) if task in self.cells else None

    @property
    def lacks(self) -> dict[str, BoardCell]:
        return {task: cell for task, cell in sorted(self.cells.items()) if cell.status != "ok"}

    @property
    def has_values(self) -> bool:
        """Whether there is anything to show in a table; on a board without tasks that is its own values."""
        shown = (cell.values for cell in self.cells.values()) if self.cells else (self.values,)
        return self.rank is not None or any(shown)


class Section(Part, frozen=True):
    """A small table beside the ranking; ``lead`` is a sentence on top of it, ``empty`` is said if it has no rows, a
    ``matrix`` is shaded and folded away.

    One about a ``column`` is a ranking by that column of the board, which is among its own. Such columns have one
    scale: a method's profile is drawn over them."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    empty: str = ""
    lead: str = ""
    about: Literal["ranking", "tasks", "robustness", "column"] = "ranking"
    matrix: bool = False


class ExtraCells(Part, frozen=True):
    """Values for empty cells, by method and task, all with the status ``estimated``, and a sentence about them."""

    cells: dict[tuple[str, str], BoardCell]
    about: str


class Uncertainty(Part, frozen=True):
    level: float
    how: str
    replicates: int = 0
    seed: int = 0


class BoardSuite(Part, frozen=True):
    id: Id
    title: str
    version: int
    protocol: str
    tasks: dict[Id, int]


class Publication(Part, frozen=True):
    """Where a published board was printed."""

    id: Id
    title: str
    description: str
    citation: str
    source: str


class Ranked(Part, frozen=True, kw_only=True):
    """What a kind makes of cells. The first column of cells is the score; the first of tasks stands beside their names.

    ``profile`` is the column of cells that is drawn over the tasks, ``scatter`` are two columns drawn against each
    other. ``groups`` are runs of methods whose order the data do not confirm, ``None`` if nothing is known about that.
    """

    columns: tuple[Column, ...]
    rows: tuple[BoardRow, ...]
    rule: str
    tasks: tuple[BoardTask, ...] = ()
    cell_columns: tuple[Column, ...] = (SCORE, STD)
    task_columns: tuple[Column, ...] = ()
    notes: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] | None = None
    uncertainty: Uncertainty | None = None
    sections: tuple[Section, ...] = ()
    profile: str = ""
    scatter: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        unique("column", ["method", "baseline", "rank", "reason", *(column.key for column in self.columns)])
        for columns in (self.cell_columns, self.task_columns):
            unique("column", [column.key for column in columns])
        unique("method", [row.method for row in self.rows])
        unique("task", [task.id for task in self.tasks])
        of_rows, of_cells = ({column.key for column in group} for group in (self.columns, self.cell_columns))
        drawn = {*(self.scatter or ())} - of_rows | ({self.profile} - of_cells if self.profile else set())
        strangers = {method for group in self.groups or () for method in group} - {row.method for row in self.rows}
        if drawn or strangers:
            raise ValueError(f"unknown column or method: {', '.join(sorted(drawn | strangers))}")
        _check_keys(self.columns, *(row.values for row in self.rows))
        _check_keys(self.task_columns, *(task.values for task in self.tasks))
        _check_keys(self.cell_columns, *(cell.values for row in self.rows for cell in row.cells.values()))

    @property
    def ranked(self) -> tuple[BoardRow, ...]:
        return tuple(row for row in self.rows if row.rank is not None)

    @property
    def unranked(self) -> tuple[BoardRow, ...]:
        return tuple(row for row in self.rows if row.rank is None)

    @property
    def shown(self) -> tuple[BoardRow, ...]:
        """The rows of a table; a method without any value is only named, with the reason."""
        return tuple(row for row in self.rows if row.has_values)

    @property
    def ranks(self) -> dict[str, int]:
        return {row.method: row.rank for row in self.rows if row.rank is not None}

    @property
    def copies(self) -> dict[str, list[str]]:
        """By method, those with the same embeddings."""
        copies: dict[str, list[str]] = {}
        for row in self.rows:
            if row.same_as:
                copies.setdefault(row.same_as, []).append(row.method)
        return copies

    def score(self, row: BoardRow, task: str) -> Number:
        """The first column of a cell."""
        return row.value(task, self.cell_columns[0].key) if self.cell_columns else None


class Board(Ranked, frozen=True, kw_only=True):
    """A ranking with its kind and options, and what was ranked: a suite, or a publication.

    ``cells`` is a digest of all cells, so that any change of a record is a change of the board.
    """

    kind: Id
    options: dict[str, str | int | float | bool] = {}
    cells: str = ""
    suite: BoardSuite | None = None
    published: Publication | None = None
    fact_columns: tuple[Column, ...] = ()
    schema: Literal[2] = 2

    def __repr__(self) -> str:
        first = ", ".join(sorted(self.ranks, key=self.ranks.__getitem__)[:3])
        return f"Board({self.about.id}: {len(self.ranked)} methods ranked on {len(self.tasks)} tasks; first {first})"

    def __post_init__(self) -> None:
        super().__post_init__()
        unique("column", [column.key for column in (*self.columns, *self.fact_columns)])
        _check_keys(self.fact_columns, *(row.facts for row in self.rows))

    @property
    def about(self) -> BoardSuite | Publication:
        subject = self.suite or self.published
        if subject is None:
            raise DataError("a board of neither a suite nor a publication")
        return subject


def unique(noun: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{noun} {twice!r} is there twice")


def _check_keys(columns: tuple[Column, ...], *values: Mapping[str, object]) -> None:
    for key in {key for mapping in values for key in mapping} - {column.key for column in columns}:
        raise ValueError(f"no column has the key {key!r}")


def plain(value: object) -> Any:
    """A part, or several, as JSON values."""
    return msgspec.json.decode(msgspec.json.encode(value))


def number(value: Any, digits: int = EXACT) -> float | None:
    """A float for the file: rounded, -0.0 as 0.0; undefined is ``None``."""
    return round(float(value), digits) + 0.0 if value is not None and math.isfinite(float(value)) else None


def rounded(value: Any, digits: int = EXACT) -> Any:
    """JSON values with all floats as the file holds them, so that every machine writes the same bytes."""
    if isinstance(value, float):
        return number(value, digits)
    if isinstance(value, dict):
        return {key: rounded(item, digits) for key, item in value.items()}
    return [rounded(item, digits) for item in value] if isinstance(value, list | tuple) else value


def read_part(path: Path, kind: type[T], what: str, hint: str = "") -> T:
    return read_strictly(path, kind, what, most=LARGEST_FILE, hint=hint)
