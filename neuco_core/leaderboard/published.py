"""Boards that others have published: imported with their source, ranked or shown as printed, never mixed with ours."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuco_core._validate import ID
from neuco_core.errors import DataError, UnknownIdError
from neuco_core.leaderboard.build import Board, rank_table
from neuco_core.leaderboard.ranking import Rule
from neuco_core.leaderboard.table import Cell, Entrant, Event, Table

SCHEMA = 1
FIELDS = {"schema", "id", "title", "kind", "description", "citation", "source", "rows"}
ROW = {"method", "title", "name", "baseline"}
KINDS = {
    "scores": (FIELDS | {"tasks", "dataset", "metric"}, ROW | {"values"}),
    "standings": (FIELDS, ROW | {"rank", "mean_q", "weighted_rank"}),
}


@dataclass(frozen=True)
class Published:
    """A published board. Of ``scores`` the ranking is computed from the printed means; ``standings`` are as printed."""

    id: str
    title: str
    kind: str
    description: str
    citation: str
    source: str
    rows: tuple[Mapping[str, Any], ...]
    tasks: tuple[str, ...] = ()
    dataset: str = ""
    metric: str = ""

    @property
    def titles(self) -> dict[str, str]:
        return {row["method"]: row["title"] for row in self.rows}

    def table(self) -> Table:
        """The printed means as cells. Without the spread over splits, Q is 100 times the mean."""
        events = tuple(Event(task, dataset=self.dataset, metric=self.metric) for task in self.tasks)
        entrants = tuple(Entrant(row["method"], baseline=row["baseline"]) for row in self.rows)
        cells = {
            (row["method"], task): Cell(q=100 * value, mean=value)
            for row in self.rows
            for task, value in zip(self.tasks, row["values"], strict=True)
        }
        return Table(events, entrants, cells)

    def board(self, rule: Rule | None = None) -> Board:
        """A board like a computed one, marked as published."""
        board = rank_table(self.table(), rule or Rule()) if self.kind == "scores" else self._standings()
        mark = {name: getattr(self, name) for name in ("id", "title", "kind", "description", "citation", "source")}
        return board | {"published": mark}

    def _standings(self) -> Board:
        names = ("method", "baseline", "rank", "mean_q", "weighted_rank")
        return {"schema": SCHEMA, "tasks": [], "rows": [{name: row[name] for name in names} for row in self.rows]}


def read_published(path: Path) -> Published:
    """Read one published board strictly."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        kind = values["kind"]
        fields, row_fields = KINDS[kind]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"not a published board: {error}", where=path) from error
    if set(values) != fields or values["schema"] != SCHEMA or values["id"] != path.stem or not ID.fullmatch(path.stem):
        raise DataError("not a published board of this schema", where=path, expected=", ".join(sorted(fields)))
    for row in values["rows"]:
        _check_row(row, row_fields, len(values.get("tasks", ())), path)
    methods = [row["method"] for row in values["rows"]]
    if len(set(methods)) != len(methods):
        raise DataError("a method that is there twice", where=path)
    lists = {name: tuple(values[name]) for name in ("rows", "tasks") if name in values}
    return Published(**{name: value for name, value in (values | lists).items() if name != "schema"})


def _check_row(row: Any, fields: set[str], tasks: int, path: Path) -> None:
    if not isinstance(row, dict) or set(row) != fields or not ID.fullmatch(str(row["method"])):
        raise DataError("bad row", where=path, expected=", ".join(sorted(fields)), got=str(row)[:80])
    numbers = row.get("values", [])
    if len(numbers) != tasks or not all(isinstance(n, int | float) and math.isfinite(n) for n in numbers):
        raise DataError("bad values", where=f"{path}, {row['method']}", expected=f"{tasks} finite numbers")


def list_published(registry: Path) -> list[Published]:
    return [read_published(path) for path in sorted((registry / "published").glob("*.json"))]


def load_published(registry: Path, name: str) -> Published:
    found = {path.stem: path for path in (registry / "published").glob("*.json")}
    if name not in found:
        raise UnknownIdError("published board", name, found, "See `neuco leaderboard list`")
    return read_published(found[name])
