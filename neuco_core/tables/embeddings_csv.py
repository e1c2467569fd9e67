"""Embeddings in CSV: compiled code for large files, plain Python for small ones and for all that is odd.

Both read a number as float64 and round it to float32, as NeuCo-Bench does, and give the same bits. A large file is read
in blocks of whole lines, several side by side. If compiled code cannot read it, it is read again row by row, which also
finds the place of an error.
"""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from neuco_core.env import available_cores
from neuco_core.errors import DataError
from neuco_core.files import replacing
from neuco_core.tables import csv as _csv
from neuco_core.tables.embeddings import Embeddings, make_embeddings, to_float32

# pandas reads a column of these as 1 and 0.
BOOLEANS = {"true": 1.0, "false": 0.0}
CELLS = 3 << 19  # in a block of rows that is written
# Bytes from which on compiled code is quicker: a smaller file is read before that is even loaded.
LARGE = 4 << 20
BLOCK = 2 << 20  # bytes, to stay in the processor's cache
MOST_THREADS = 8
ODD = 4096  # cells that are no plain numbers, before they are looked at
T = TypeVar("T")
Table = tuple[list[str], np.ndarray, Mapping[str, int]]  # ids, values, and how many were replaced by 0, by reason


class OddError(Exception):
    """This file needs a closer look: plain Python reads it row by row, or says why it cannot."""


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
    if dim is not None and len(columns) > dim:
        raise DataError("too many value columns", where=where, expected=f"at most {dim}", got=len(columns))
    return columns


def read_csv(path: Path, strict: bool, dim: int | None, *, gaps: bool = False) -> Embeddings:
    blocks = cut(path) if path.stat().st_size >= LARGE else None
    rows = _csv.read_rows(path)
    _, names = next(rows)
    chosen = value_columns(names, path, dim, gaps=gaps)
    if next(rows, None) is None:  # also sees to it that the first row has the header's width
        raise DataError("no rows below the header", where=path)
    columns = CsvColumns(tuple(names), tuple(names.index(name) for name in chosen))
    read = None
    if blocks is not None:
        with suppress(OddError):
            read = _read_blocks(blocks, columns, strict)
    ids, values, replaced = read or _read_carefully(path, columns, strict, gaps=gaps)
    made = make_embeddings(ids, values, replaced=replaced, **columns.names, where=path)
    return replace(made, first_replaced=_first_replaced(path, columns)) if replaced else made


def _first_replaced(path: Path, columns: CsvColumns) -> str:
    rows = _csv.read_rows(path)
    next(rows)
    for _, row in rows:
        for place in columns.places:
            if math.isnan(_number(row[place])):
                return f"id {_csv.clean_id(row[columns.header.index('id')])!r}, column {columns.header[place]!r}"
    return ""


def _read_carefully(path: Path, columns: CsvColumns, strict: bool, *, gaps: bool = False) -> Table:
    values = bytearray()  # which grows, and holds each number once
    id_place = columns.header.index("id")
    lines: list[int] = []
    names: list[str] = []
    replaced: Counter[str] = Counter()
    texts: Counter[int] = Counter()  # cells that are no numbers, by column
    rows = _csv.read_rows(path)
    next(rows)
    for line, row in rows:
        cells = [row[place] for place in columns.places]
        numbers = to_float32(np.array(_numbers(cells)))
        bad = ~np.isfinite(numbers) if strict else np.isinf(numbers)
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            where = f"{path}, row {line}, column {columns.header[columns.places[first]]!r}"
            what, hint = "value is not finite as float32", ""
            if np.isnan(numbers[first]):
                what, hint = "value is not a number", "Without strict it becomes 0 and is counted"
            raise DataError(what, where=where, got=_csv.shown([cells[first]]), hint=hint)
        for column in np.flatnonzero(np.isnan(numbers)):
            missing = cells[column].strip() in _csv.MISSING
            replaced["missing" if missing else "not_a_number"] += 1
            texts[int(column)] += not missing
            numbers[column] = 0
        values += numbers.tobytes()
        lines.append(line)
        names.append(row[id_place])
    ids = _csv.clean_ids(names, path, lines)
    if replaced.total() == len(lines) * len(columns.places):
        raise DataError("no value is numeric", where=path, got=f"{len(lines)} rows, {len(columns.places)} columns")
    whole = [columns.header[columns.places[column]] for column in sorted(texts) if texts[column] == len(lines)]
    if whole and not gaps:
        hint = f"Leave {_csv.shown(whole)} out of the file"
        raise DataError("text in every row of a column", where=path, got=_csv.shown(whole), hint=hint)
    return list(ids), np.frombuffer(values, np.float32).reshape(len(lines), -1), replaced


def _numbers(cells: Sequence[str]) -> list[float]:
    joined = "".join(cells)
    if joined.isascii() and "_" not in joined:  # see number_in
        with suppress(ValueError):
            return list(map(float, cells))
    return [_number(cell) for cell in cells]


def _number(cell: str) -> float:
    number = _csv.number_in(cell)
    return BOOLEANS.get(cell.strip().lower(), math.nan) if number is None else number


@dataclass(frozen=True)
class Blocks:
    """A file cut at the ends of lines: the byte at which each block begins and at last the end, and lines by block."""

    path: Path
    cuts: Sequence[int]
    lines: list[int] = field(default_factory=list)

    def each(self, work: Callable[[int, np.ndarray, int], T]) -> Iterator[T]:
        """The results of ``work(block, text, size)`` in their order; the text has room for one byte more."""
        count = min(available_cores(), MOST_THREADS, len(self.cuts) - 1)
        with ThreadPoolExecutor(count, thread_name_prefix="neuco-csv") as pool:
            try:
                yield from pool.map(lambda block: work(block, *self._text(block)), range(len(self.cuts) - 1))
            finally:
                pool.shutdown(cancel_futures=True)

    def _text(self, block: int) -> tuple[np.ndarray, int]:
        start, stop = self.cuts[block : block + 2]
        text = np.empty(stop - start + 1, np.uint8)
        with self.path.open("rb", buffering=0) as file:
            file.seek(start)
            if file.readinto(memoryview(text)[:-1]) < stop - start:  # type: ignore[arg-type]
                raise DataError("the file has become shorter while it was read", where=self.path)
        return text, stop - start


def cut(path: Path) -> Blocks | None:
    """Cut a file into blocks and count their lines; None for one that is no text."""
    from neuco_core.tables import csv_kernel

    size, at = path.stat().st_size, 0
    cuts = [at]
    try:
        with path.open("rb") as file:
            _csv.check_magic(file.read(64), path)
            while at + BLOCK < size:
                file.seek(at + BLOCK)
                file.readline()
                at = file.tell()
                cuts.append(at)
    except OSError as error:
        raise _csv.unreadable(path, error) from error
    blocks = Blocks(path, cuts if at == size else [*cuts, size])
    csv_kernel.warm()
    for lines, zeros in blocks.each(lambda _, text, size: csv_kernel.count_lines(text, size)):
        if zeros:  # they are found again, with their place
            return None
        blocks.lines.append(lines)
    return blocks


def _read_blocks(blocks: Blocks, columns: CsvColumns, strict: bool) -> Table:
    from neuco_core.tables import csv_kernel as kernel

    skip = _header_bytes(blocks, columns.header)
    rows = list(blocks.lines)
    rows[-1] += 1  # the last line may end without a newline
    rows[0] -= 1
    first = list(itertools.accumulate(rows, initial=0))
    if first[-1] > blocks.cuts[-1] // len(columns.header) + 1:  # a row has a separator for each column
        raise OddError
    values = np.empty((first[-1], len(columns.places)), np.float32)
    targets = np.full(len(columns.header), kernel.IGNORED)
    targets[list(columns.places)] = np.arange(len(columns.places))
    targets[columns.header.index("id")] = kernel.ID

    def read(block: int, text: np.ndarray, size: int) -> tuple[list[str], Counter[str]]:
        last = block == len(rows) - 1
        while last and size and text[size - 1] in b"\r\n":  # blank lines at the end
            size -= 1
        text[size] = kernel.NEWLINE
        part = values[first[block] : first[block + 1]]
        names, odd = np.empty((len(part), 2), np.int64), np.empty((ODD + len(targets), 4), np.int64)
        counts: Counter[str] = Counter()
        at, row, state = skip if block == 0 else 0, 0, kernel.FULL
        while state == kernel.FULL:
            state, at, row, count = kernel.read_rows(text, at, size, targets, part, row, names, odd)
            counts += _settle(text, part, odd[:count], strict)
        if state == kernel.BROKEN or (row < len(part) and not last):
            raise OddError
        return [_csv.clean_id(_text(text, place)) for place in names[:row]], counts

    ids: list[str] = []
    replaced: Counter[str] = Counter()
    for names, counts in blocks.each(read):
        ids += names
        replaced += counts
    if "" in ids or len(set(ids)) != len(ids) or replaced.total() == len(ids) * len(columns.places):
        raise OddError
    if replaced["not_a_number"] >= len(ids):  # a column may be text in every row
        raise OddError
    return ids, values[: len(ids)], replaced


def _header_bytes(blocks: Blocks, header: Sequence[str]) -> int:
    """The length of the first line, if that is the whole header."""
    with blocks.path.open("rb") as file:
        line = file.readline(blocks.cuts[1])
    try:
        names = next(csv.reader([line.decode("utf-8-sig").rstrip("\r\n")], strict=True), [])
    except (csv.Error, UnicodeDecodeError) as error:
        raise OddError from error
    if [name.strip() for name in names] != list(header):
        raise OddError
    return len(line)


def _settle(text: np.ndarray, values: np.ndarray, odd: np.ndarray, strict: bool) -> Counter[str]:
    """Read the cells that compiled code did not; a cell that is refused is left to who can say where it is."""
    replaced: Counter[str] = Counter()
    for row, column, *place in odd.tolist():
        cell = _text(text, place)
        with np.errstate(over="ignore"):
            value = np.float32(_number(cell))
        if np.isinf(value) or (np.isnan(value) and strict):
            raise OddError
        if np.isnan(value):
            replaced["missing" if cell.strip() in _csv.MISSING else "not_a_number"] += 1
            value = np.float32(0)
        values[row, column] = value
    return replaced


def _text(text: np.ndarray, place: Any) -> str:
    try:
        return text[place[0] : place[1]].tobytes().decode()
    except UnicodeDecodeError as error:
        raise OddError from error


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
