"""The two files of a submission as they lie there: rows of text and a dictionary, and the faults found on the way.

The table is read with Python's csv module. What a column holds is then a matter of its own text: pandas 2 and pandas 3
give the same column different types, by which the leaderboard's own validator refuses under one what it takes under
the other.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from neuco_core.errors import DataError
from neuco_core.files import read_limited
from neuco_core.text import join_names, shorten
from neuco_extensions.geobench.facts import COLUMNS, INFO, SEEDS, TABLE

LARGEST_TABLE, LARGEST_INFO = 50_000_000, 1_000_000
# 100 backbones on 19 datasets are 9,500 rows; real tables have 16 to 25 columns.
MOST_ROWS, MOST_COLUMNS, MOST_FILES = 20_000, 200, 20
# Left behind by file managers; the leaderboard overlooks the first one, too.
OVERLOOKED = {".DS_Store"}
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
# What readers of tables take for "no value".
EMPTY = {"", "nan", "n/a", "na", "null", "none", "<na>", "#n/a", "-nan"}
MOST_SHOWN = 3  # lines of a fault


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong. ``rows`` are lines of the file as an editor counts them; the header is line 1.

    ``official`` is a rule that the leaderboard's own validator has; the others are ours.
    """

    rule: str
    what: str
    cure: str
    file: str = ""
    rows: tuple[int, ...] = ()
    column: str = ""
    value: str | None = None
    official: bool = False

    @property
    def where(self) -> str:
        lines = f"line {self.rows[0]}" if self.rows else ""
        if len(self.rows) > 2 and self.rows[-1] - self.rows[0] == len(self.rows) - 1:
            lines = f"lines {self.rows[0]}–{self.rows[-1]}"
        elif len(self.rows) > 1:
            lines = f"lines {join_names([*map(str, self.rows)], MOST_SHOWN)}"
        column = f"column {shorten(self.column)}" if self.column else ""
        return ", ".join(filter(None, (self.file, column, lines)))

    def __str__(self) -> str:
        value = "" if self.value is None else f" (found {shorten(self.value)})"
        return f"{self.where}: {self.what}{value}. {self.cure}"


def merged(faults: Iterable[Fault]) -> list[Fault]:
    """Faults that differ only by row become one with all rows; the order is that of the first."""
    together: dict[Fault, list[int]] = {}
    for fault in faults:
        together.setdefault(replace(fault, rows=()), []).extend(fault.rows)
    return [replace(fault, rows=tuple(sorted(set(rows)))) for fault, rows in together.items()]


@dataclass(frozen=True)
class RunRow:
    line: int
    cells: dict[str, str]

    def text(self, column: str) -> str:
        """The cell without spaces around it, "" if it has no value."""
        text = self.cells.get(column, "").strip()
        return "" if text.lower() in EMPTY else text


@dataclass(frozen=True)
class SubmissionFolder:
    """What was read. ``table`` and ``info`` are ``None`` if they could not be; ``faults`` say why."""

    path: Path
    columns: tuple[str, ...] = ()
    table: tuple[RunRow, ...] | None = None
    info: dict[str, Any] | None = None
    faults: tuple[Fault, ...] = field(default=())

    @property
    def further(self) -> tuple[str, ...]:
        """Columns that the leaderboard allows and does not read."""
        return tuple(column for column in self.columns if column not in COLUMNS)


def grouped(rows: Iterable[RunRow]) -> dict[tuple[str, str], list[RunRow]]:
    """The rows of each backbone and dataset; those that lack one of the two are left out."""
    cells: dict[tuple[str, str], list[RunRow]] = {}
    for row in rows:
        if row.text("backbone") and row.text("dataset"):
            cells.setdefault((row.text("backbone"), row.text("dataset")), []).append(row)
    return cells


def read_folder(path: Path) -> SubmissionFolder:
    """Read a submission as it is; only a path that is no folder is an error."""
    if not path.is_dir():
        raise DataError("no such folder", where=path, expected=f"a folder with {TABLE} and {INFO}")
    faults = list(_files(path))
    columns, table = _part(path / TABLE, faults, _table, ((), None))
    info = _part(path / INFO, faults, _info, None)
    return SubmissionFolder(path, columns, table, info, tuple(faults))


def _files(path: Path) -> Iterator[Fault]:
    names = {entry.name for entry in path.iterdir()} - OVERLOOKED
    for name in (TABLE, INFO):
        if name not in names:
            close = next((other for other in sorted(names) if other.lower() == name.lower()), None)
            cure = f"Rename {close} to {name}" if close else f"Add {name}"
            yield Fault("files", "the file is missing", cure, name, value=close, official=True)
        elif (path / name).is_symlink() or not (path / name).is_file():
            yield Fault("files", "not a regular file", "Put the file itself here", name, official=True)
    further = sorted(names - {TABLE, INFO})
    for name in further[:MOST_FILES]:
        yield Fault("files", "the folder holds exactly two files", f"Remove {name}", name, official=True)
    if len(further) > MOST_FILES:
        what = f"the folder holds {len(further)} further files"
        yield Fault("files", what, "Keep the two files only", official=True)


def _part(path: Path, faults: list[Fault], read: Any, nothing: Any) -> Any:
    if path.is_symlink() or not path.is_file():
        return nothing  # which is a fault already
    try:
        return read(path, faults)
    except UnicodeDecodeError as error:
        what = f"not UTF-8, at byte {error.start}"
        faults.append(Fault("unreadable", what, "Save it as UTF-8", path.name, official=True))
    except (csv.Error, ValueError, DataError, RecursionError) as error:
        reason = error.what if isinstance(error, DataError) else str(error)
        kind = "CSV" if path.name == TABLE else "JSON"
        faults.append(Fault("unreadable", f"not {kind}: {reason}", f"Write it as {kind}", path.name, official=True))
    return nothing


def _table(path: Path, faults: list[Fault]) -> tuple[tuple[str, ...], tuple[RunRow, ...] | None]:
    text = read_limited(path, LARGEST_TABLE).decode("utf-8-sig")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns = tuple(next(reader, ()))
    if not columns:
        faults.append(Fault("empty", "the table is empty", "Add a header and a row for each run", TABLE, official=True))
        return (), None
    for sign, word in SEPARATORS.items():
        if len(columns) == 1 and columns[0].count(sign) > 3:
            what, cure = f"the fields are separated by {word}", "Save it with commas between the fields"
            faults.append(Fault("unreadable", what, cure, TABLE, (1,), official=True))
            return (), None
    if len(columns) > MOST_COLUMNS:
        raise DataError(f"{len(columns)} columns; at most {MOST_COLUMNS} are read")
    for name in sorted(name for name, count in Counter(columns).items() if count > 1):
        cure = "Keep one column of that name"
        faults.append(Fault("columns", "the column is there twice", cure, TABLE, (1,), name))
    rows = []
    for cells in reader:
        if not cells:
            continue  # an empty line
        if reader.line_num > MOST_ROWS:
            raise DataError(f"more than {MOST_ROWS} rows; a submission has {SEEDS} for each backbone and dataset")
        if len(cells) != len(columns):
            what = f"the row has {len(cells)} fields, the header has {len(columns)}"
            official = len(cells) > len(columns)  # readers fill up a short row
            cure = "Give every row as many fields as the header; put text with commas into quotes"
            faults.append(Fault("fields", what, cure, TABLE, (reader.line_num,), official=official))
            continue
        rows.append(RunRow(reader.line_num, dict(zip(columns, cells, strict=True))))
    if not rows and not faults:
        faults.append(Fault("empty", "the table has no rows", "Add a row for each run", TABLE, official=True))
    return columns, tuple(rows)


def _info(path: Path, faults: list[Fault]) -> dict[str, Any] | None:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        for name in sorted(name for name, count in Counter(name for name, _ in pairs).items() if count > 1):
            faults.append(Fault("keys", "the key is there twice", "Keep one of them", INFO, column=name))
        return dict(pairs)

    info = json.loads(read_limited(path, LARGEST_INFO).decode("utf-8-sig"), object_pairs_hook=once)
    if isinstance(info, dict):
        return info
    faults.append(Fault("unreadable", "not a JSON object", "Write { … } with the keys asked for", INFO, official=True))
    return None
