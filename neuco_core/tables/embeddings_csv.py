"""Embeddings in CSV: compiled code for large files, plain Python for small ones and for all that is odd.

Both read a number as float64 and round it to float32, as NeuCo-Bench does, and give the same bits. A large file that
compiled code cannot read is read again row by row, which also finds the place of an error.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuco_core.errors import DataError
from neuco_core.files import replacing
from neuco_core.tables import csv as _csv
from neuco_core.tables import csv_quick
from neuco_core.tables.embeddings import Embeddings, make_embeddings, to_float32
from neuco_core.tables.limits import check_columns

# pandas reads a column of these as 1 and 0.
BOOLEANS = {"true": 1.0, "false": 0.0}
CELLS = 3 << 19  # in a block of rows that is written


@dataclass(frozen=True)
class CsvColumns:
    """Which columns of a file hold values, in the order of the dimensions."""

    header: tuple[str, ...]
    places: tuple[int, ...]

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """The columns that hold values, and those that are not used."""
        used = {*self.places, self.header.index("id")}
        ignored = tuple(name for place, name in enumerate(self.header) if place not in used)
        return {"columns": tuple(self.header[place] for place in self.places), "ignored": ignored}


def value_columns(names: Sequence[str], where: object, dim: int | None, *, gaps: bool = False) -> list[str]:
    """Columns named 0 … N-1 or 1 … N in that order; if none is a number, all but ``id`` in file order."""
    digits = sorted((name for name in names if re.fullmatch("[0-9]+", name)), key=int)
    if digits and not gaps:
        numbers = [int(name) for name in digits]
        start = min(numbers[0], 1)
        wrong = next((n for n, number in enumerate(numbers, start) if n != number), None)
        if wrong is not None:
            expected = f"columns numbered from {start} on"
            raise DataError("column numbers have a gap", where=where, expected=expected, got=f"no column {wrong}")
    columns = digits or [name for name in names if name != "id"]
    if not columns:
        raise DataError("no value columns", where=where, expected="columns 0, 1, … next to id")
    if "" in columns:
        where = f"{where}, column {list(names).index('') + 1}"
        raise DataError("a column has no name", where=where, hint="Write the file without its row index")
    if dim is not None:
        check_columns(len(columns), where, dim, "value columns")
    return columns


def read_csv(path: Path, strict: bool, dim: int | None, *, gaps: bool = False) -> Embeddings:
    if path.stat().st_size < csv_quick.LARGE:
        _csv.scan(path)
        columns = _columns(path, dim, gaps)
        ids, values, replaced = _read_carefully(path, columns, strict)
    else:
        blocks = csv_quick.cut(path)
        columns = _columns(path, dim, gaps)
        try:
            ids, values, replaced = csv_quick.read_blocks(blocks, columns.header, columns.places, strict, _number)
        except csv_quick.OddError:
            ids, values, replaced = _read_carefully(path, columns, strict)
    return make_embeddings(ids, values, replaced=replaced, **columns.names, where=path)


def _columns(path: Path, dim: int | None, gaps: bool) -> CsvColumns:
    rows = _csv.read_rows(path)
    _, names = next(rows)
    columns = value_columns(names, path, dim, gaps=gaps)
    if next(rows, None) is None:  # also sees to it that the first row has the header's width
        raise DataError("no rows below the header", where=path)
    return CsvColumns(tuple(names), tuple(names.index(name) for name in columns))


def _read_carefully(path: Path, columns: CsvColumns, strict: bool) -> tuple[list[str], np.ndarray, Mapping[str, int]]:
    # No more rows than lines, and a row has a separator for each column; pages that stay unused cost nothing.
    most = min(_csv.scan(path), path.stat().st_size // len(columns.header) + 1)
    values = np.empty((most, len(columns.places)), dtype=np.float32)
    id_place = columns.header.index("id")
    lines: dict[str, int] = {}
    replaced: Counter[str] = Counter()
    rows = _csv.read_rows(path)
    next(rows)
    for line, row in rows:
        name = _csv.clean_id(row[id_place])
        if not name:
            raise DataError("no id", where=f"{path}, row {line}")
        if name in lines:
            raise DataError(f"duplicate id {_csv.shown([name])}", where=f"{path}, rows {lines[name]} and {line}")
        cells = [row[place] for place in columns.places]
        numbers = to_float32(np.array(_numbers(cells)))
        _refuse(cells, numbers, columns, f"{path}, row {line}", strict)
        for column in np.flatnonzero(np.isnan(numbers)):
            replaced["missing" if cells[column].strip() in _csv.MISSING else "not_a_number"] += 1
            numbers[column] = 0
        values[len(lines)] = numbers
        lines[name] = line
    if replaced.total() == len(lines) * len(columns.places):
        raise DataError("no value is numeric", where=path, got=f"{len(lines)} rows, {len(columns.places)} columns")
    return list(lines), values[: len(lines)], replaced


def _numbers(cells: Sequence[str]) -> list[float]:
    joined = "".join(cells)
    if joined.isascii() and "_" not in joined:  # Python also takes 1_0 and digits of other scripts for numbers
        try:
            return list(map(float, cells))
        except ValueError:
            pass
    return [_number(cell) for cell in cells]


def _number(cell: str) -> float:
    if "_" in cell or not cell.isascii():
        return math.nan
    try:
        return float(cell)
    except ValueError:
        return BOOLEANS.get(cell.strip().lower(), math.nan)


def _refuse(cells: Sequence[str], numbers: np.ndarray, columns: CsvColumns, where: str, strict: bool) -> None:
    """Infinite values are always refused; other non-numbers only with ``strict``."""
    bad = ~np.isfinite(numbers) if strict else np.isinf(numbers)
    if bad.any():
        column = int(np.flatnonzero(bad)[0])
        where = f"{where}, column {columns.header[columns.places[column]]!r}"
        got = _csv.shown([cells[column]])
        if np.isinf(numbers[column]):
            raise DataError("value is not finite as float32", where=where, got=got)
        raise DataError(
            "value is not a number", where=where, got=got, hint="Without strict it becomes 0 and is counted"
        )


def write_csv(embeddings: Embeddings, path: Path) -> None:
    """Columns ``id``, 0, 1, …; each number in the fewest digits that give the same float32 again."""
    import pyarrow as pa
    import pyarrow.csv

    names = ["id", *map(str, range(embeddings.dim))]
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed")
    rows = max(CELLS // embeddings.dim, 1)
    with replacing(path) as target, target.open("wb") as file:
        file.write((",".join(names) + "\n").encode())
        for start in range(0, len(embeddings), rows):
            block = embeddings.values[start : start + rows]
            columns = [pa.array(embeddings.ids[start : start + rows]), *map(pa.array, block.T)]
            pyarrow.csv.write_csv(pa.table(columns, names=names), file, options)
