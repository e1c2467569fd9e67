"""Boards that others have published: imported with their source, of a kind like any board, never mixed with ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, field
from msgspec.structs import replace

from neuco_core.boards.build import rank_cells
from neuco_core.boards.cells import BoardMethod, Cell, Cells
from neuco_core.boards.model import Board, BoardTask, Column, Id, Number, Part, Publication, read_part, unique
from neuco_core.errors import DataError
from neuco_core.paths import layers

METRICS = {"r2": "R²"}
Q = re.compile(r"\bQ\b")
Finite = Annotated[float, Meta(gt=-1e100, lt=1e100)]


class PublishedRow(Part, frozen=True, kw_only=True):
    """A method as printed: its ``name``, a shorter ``title``, a score for each task, or values by column."""

    method: Id
    title: str
    name: str
    baseline: bool
    scores: tuple[Finite, ...] = ()
    values: dict[str, Number] = field(default_factory=dict)


class Published(Part, frozen=True, kw_only=True):
    """A published board. Its ``kind`` makes the ranking of the printed scores or values."""

    schema: Literal[2]
    id: Id
    title: str
    kind: Id
    description: str
    citation: str
    source: str
    rows: tuple[PublishedRow, ...]
    tasks: tuple[Id, ...] = ()
    dataset: str = ""
    metric: str = ""
    columns: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        unique("method", [row.method for row in self.rows])
        unique("task", list(self.tasks))
        for number, row in enumerate(self.rows, 1):
            if len(row.scores) != len(self.tasks):
                raise ValueError(f"row {number} has {len(row.scores)} scores for {len(self.tasks)} tasks")

    def cells(self) -> Cells:
        """The printed means as cells. Without the spread over splits, Q is 100 times the mean."""
        return Cells(
            tuple(BoardTask(task, dataset=self.dataset, metric=self.metric) for task in self.tasks),
            tuple(BoardMethod(r.method, baseline=r.baseline, title=r.title, values=r.values) for r in self.rows),
            {
                (row.method, task): Cell(q=100 * score, mean=score)
                for row in self.rows
                for task, score in zip(self.tasks, row.scores, strict=True)
            },
            self.columns,
        )

    def board(self, options: Mapping[str, Any] | None = None) -> Board:
        """A board like a computed one, marked as published."""
        about = Publication(self.id, self.title, self.description, self.citation, self.source)
        board = rank_cells(self.cells(), self.kind, options, published=about)
        return _without_q(board, METRICS.get(self.metric, self.metric)) if self.tasks else board


def _without_q(board: Board, metric: str) -> Board:
    """The board with what would be called Q called what it is: 100 times the printed mean."""

    def named(columns: tuple[Column, ...]) -> tuple[Column, ...]:
        return tuple(
            replace(c, label=Q.sub(f"100 · {metric}", c.label), help=Q.sub(f"100 · {metric}", c.help)) for c in columns
        )

    sections = tuple(
        replace(part, title=Q.sub(f"100 · {metric}", part.title), columns=named(part.columns))
        for part in board.sections
    )
    task_columns = named(board.task_columns)
    return replace(
        board,
        columns=named(board.columns),
        cell_columns=named(board.cell_columns),
        task_columns=task_columns,
        sections=sections,
    )


def read_published(path: Path) -> Published:
    """Read one published board strictly: every field must be known and of its type."""
    published = read_part(path, Published, "a published board")
    if published.id != path.stem:
        raise DataError("bad id", where=path, expected="the name of the file", got=repr(published.id))
    return published


def list_published(registry: Path) -> list[Published]:
    files = {path.name: path for layer in reversed(layers(registry)) for path in (layer / "published").glob("*.json")}
    return [read_published(files[name]) for name in sorted(files)]
