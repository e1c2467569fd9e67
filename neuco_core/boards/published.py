"""Boards that others have published: imported with their source, of a kind like any board, never mixed with ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean, pstdev
from typing import Annotated, Any, Literal

from msgspec import Meta, convert, field

from neuco_core.boards.build import rank_cells
from neuco_core.boards.cells import BoardMethod, Cell, Cells
from neuco_core.boards.model import (
    Board,
    BoardTask,
    Column,
    Id,
    Number,
    Part,
    Publication,
    Ranked,
    plain,
    read_part,
    unique,
)
from neuco_core.env import layers
from neuco_core.errors import DataError
from neuco_core.plugins.catalog import catalog
from neuco_core.specs import PublishedSource, resolve

Q = re.compile(r"\bQ\b")
Finite = Annotated[float, Meta(gt=-1e100, lt=1e100)]


class PublishedRow(Part, frozen=True, kw_only=True):
    """A method as printed: its ``name``, a shorter ``title``, a score for each task, or values by column.

    ``runs`` are, for each task, the scores that were published of single runs; none where the method lacks the task.
    """

    method: Id
    title: str
    name: str
    baseline: bool
    scores: tuple[Finite, ...] = ()
    values: dict[str, Number] = field(default_factory=dict)
    runs: tuple[tuple[Finite, ...], ...] = ()
    facts: dict[str, str | Number] = field(default_factory=dict)

    def cell(self, t: int) -> Cell | None:
        """The cell of a task. Without the spread over splits, Q is 100 times the mean; runs are seeds, not splits."""
        if not self.runs:
            return Cell(q=100 * self.scores[t], mean=self.scores[t], trust="copied")
        runs = self.runs[t]
        mean = fmean(runs) if runs else 0.0
        if not runs:
            return None
        return Cell(q=100 * mean, mean=mean, std=pstdev(runs), splits=runs, test_to_train=0.0, trust="copied")


class Published(Part, frozen=True, kw_only=True):
    """A published board. Its ``kind`` makes the ranking of the printed scores or values.

    With the ``protocol`` of its scores, and tasks that are registered, a file can be scored and placed among them.
    """

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
    protocol: str = ""
    columns: tuple[Column, ...] = ()
    fact_columns: tuple[Column, ...] = ()
    metrics: dict[Id, str] = field(default_factory=dict)
    kinds: dict[Id, str] = field(default_factory=dict)
    options: dict[str, str | int | float | bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unique("method", [row.method for row in self.rows])
        unique("task", list(self.tasks))
        for number, row in enumerate(self.rows, 1):
            count = len(row.runs or row.scores)
            if count != len(self.tasks):
                raise ValueError(f"row {number} has {count} scores for {len(self.tasks)} tasks")

    def cells(self) -> Cells:
        tasks = []
        for task in self.tasks:
            kind, metric = self.kinds.get(task, "regression"), self.metrics.get(task, self.metric)
            tasks.append(BoardTask(task, dataset=self.dataset or task, kind=kind, metric=metric))
        methods = [
            BoardMethod(r.method, baseline=r.baseline, title=r.title, values=r.values, facts=r.facts) for r in self.rows
        ]
        cells = {(row.method, task): row.cell(t) for row in self.rows for t, task in enumerate(self.tasks)}
        printed = {key: cell for key, cell in cells.items() if cell is not None}
        return Cells(tuple(tasks), tuple(methods), printed, self.columns)

    def board(
        self, options: Mapping[str, Any] | None = None, uncounted: Mapping[tuple[str, str], str] | None = None
    ) -> Board:
        """The ranking of the table. ``uncounted`` says of scores, by method and task, why they do not count."""
        about = Publication(self.id, self.title, self.description, self.citation, self.source)
        chosen = {**self.options, **(options or {})}
        cells = self.cells()
        stale = {key: replace(cells.cell(*key), status="stale", reason=why) for key, why in (uncounted or {}).items()}
        cells = replace(cells, cells={**cells.cells, **stale})
        board = rank_cells(cells, self.kind, chosen, published=about, fact_columns=self.fact_columns)
        printed = self.tasks and self.kind == "neuco"
        return _without_q(board, "R²" if self.metric == "r2" else self.metric) if printed else board


def _without_q(board: Board, metric: str) -> Board:
    """The board with what would be called Q called what it is: 100 times the printed mean."""

    def renamed(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: renamed(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [renamed(item) for item in value]
        return Q.sub(f"100 · {metric}", value) if key in ("label", "help", "title") else value

    parts = plain(board)
    parts |= {key: renamed(parts[key]) for key in ("columns", "cell_columns", "task_columns", "sections")}
    return convert(parts, Board)


def read_published(path: Path) -> Published:
    """Read one published board strictly: every field must be known and of its type."""
    published = read_part(path, Published, "a published board")
    if published.id != path.stem:
        raise DataError("bad id", where=path, expected="the name of the file", got=repr(published.id))
    return published


def list_published(registry: Path) -> list[Published]:
    """Boards that were printed, and those that extensions make of what others have published."""
    files = {path.name: path for layer in reversed(layers(registry)) for path in (layer / "published").glob("*.json")}
    boards = [read_published(files[name]) for name in sorted(files)]
    for source in catalog().all(PublishedSource).values():
        boards += resolve(source.boards)(registry)
    return boards


def rank_as_printed(cells: Cells) -> Ranked:
    """The kind ``standings``: the printed column ``rank`` is the ranking; methods without a place come last."""
    printed = {method.id: method.values.get("rank") for method in cells.methods}
    ranks = {method: int(rank) if rank else None for method, rank in printed.items()}
    rows = []
    for m in sorted(cells.methods, key=lambda m: ranks[m.id] or len(ranks) + 1):
        values = {key: value for key, value in m.values.items() if key != "rank"}
        rows.append(m.row(ranks[m.id], cells.shown(m), values=values))
    return Ranked(columns=cells.columns, rows=tuple(rows), rule="ranks as published")
