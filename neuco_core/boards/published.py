"""Boards that others have published: imported with their source, ranked or shown as printed, never mixed with ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuco_core._validate import ID
from neuco_core.boards.build import Board, rank_table
from neuco_core.boards.stats.ranking import Rule
from neuco_core.boards.table import Cell, Entrant, Event, Table
from neuco_core.errors import DataError, UnknownIdError

SCHEMA = 1
LARGEST = 1e100
Check = tuple[Callable[[Any], bool], str]


def _is_text(value: Any) -> bool:
    """Text that can be written: JSON may hold half of a surrogate pair, UTF-8 may not."""
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and bool(ID.fullmatch(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST < value < LARGEST


def _is_place(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < LARGEST


def _are_ids(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_id, value)) and len(set(value)) == len(value)


TEXT: Check = (_is_text, "text")
ID_TEXT: Check = (_is_id, "1 to 64 of a-z, 0-9, _ and -, starting with a letter or digit")
NUMBER: Check = (lambda value: value is None or _is_number(value), "a finite number or null")
FIELDS: Mapping[str, Check] = {
    "schema": (lambda value: type(value) is int and value == SCHEMA, str(SCHEMA)),
    "id": ID_TEXT,
    **dict.fromkeys(("title", "kind", "description", "citation", "source"), TEXT),
    "rows": (lambda value: isinstance(value, list), "a list of rows"),
}
ROW: Mapping[str, Check] = {
    "method": ID_TEXT,
    "title": TEXT,
    "name": TEXT,
    "baseline": (lambda value: isinstance(value, bool), "true or false"),
}
SCORES: Mapping[str, Check] = {"tasks": (_are_ids, "a list of ids, each once"), "dataset": TEXT, "metric": TEXT}
VALUES: Check = (lambda value: isinstance(value, list) and all(map(_is_number, value)), "a list of finite numbers")
PLACE: Check = (_is_place, "a whole number of at least 1")
KINDS: Mapping[str, tuple[Mapping[str, Check], Mapping[str, Check]]] = {
    "scores": ({**FIELDS, **SCORES}, {**ROW, "values": VALUES}),
    "standings": (FIELDS, {**ROW, "rank": PLACE, "mean_q": NUMBER, "weighted_rank": NUMBER}),
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
    """Read one published board strictly: every field must be there, be known, and be of its type."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        fields, row_fields = KINDS[values["kind"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"not a published board: {type(error).__name__}: {error}", where=path) from error
    _check(values, fields, path)
    if values["id"] != path.stem:
        raise DataError("bad id", where=path, expected="the name of the file", got=_shown(values["id"]))
    for number, row in enumerate(values["rows"], 1):
        _check(row, row_fields, f"{path}, row {number}")
        if "values" in row and len(row["values"]) != len(values["tasks"]):
            expected = f"{len(values['tasks'])}, one for each task"
            got = len(row["values"])
            raise DataError("wrong number of values", where=f"{path}, row {number}", expected=expected, got=got)
    methods = [row["method"] for row in values["rows"]]
    if len(set(methods)) != len(methods):
        raise DataError("a method that is there twice", where=path)
    lists = {name: tuple(values[name]) for name in ("rows", "tasks") if name in values}
    return Published(**{name: value for name, value in (values | lists).items() if name != "schema"})


def _check(values: Any, fields: Mapping[str, Check], where: object) -> None:
    if not isinstance(values, dict) or set(values) != set(fields):
        got = ", ".join(sorted(values)) if isinstance(values, dict) else _shown(values)
        raise DataError("not the fields of this schema", where=where, expected=", ".join(sorted(fields)), got=got[:200])
    for name, (holds, expected) in fields.items():
        if not holds(values[name]):
            raise DataError(f"bad {name}", where=where, expected=expected, got=_shown(values[name]))


def _shown(value: Any) -> str:
    return ascii(value)[:80]


def list_published(registry: Path) -> list[Published]:
    return [read_published(path) for path in sorted((registry / "published").glob("*.json"))]


def load_published(registry: Path, name: str) -> Published:
    found = {path.stem: path for path in (registry / "published").glob("*.json")}
    if name not in found:
        raise UnknownIdError("published board", name, found, "See `neuco leaderboard list`")
    return read_published(found[name])
