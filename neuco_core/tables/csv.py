"""CSV, read strictly: anything odd is either understood, or refused with its file and row."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuco_core.errors import DataError
from neuco_core.text import join_names

# What a file is not, by its first bytes; each has been handed in as a "CSV" somewhere.
_MAGIC = {
    b"\x1f\x8b": "gzip-compressed: unpack it first",
    b"PK\x03\x04": "a zip archive (or Excel workbook)",
    b"\x89PNG": "a PNG image",
    b"\xff\xfe": "UTF-16 text: save it as UTF-8",
    b"\xfe\xff": "UTF-16 text: save it as UTF-8",
    b"PAR1": "a Parquet file: give it the suffix .parquet",
    b"\x93NUMPY": "a NumPy file: give it the suffix .npy",
    b"version https://git-lfs": "a Git LFS pointer, not the file itself: run `git lfs pull`",
    b"<!DOCTYPE": "a web page",
    b"<html": "a web page",
}
# The words for a missing value; any other that is no number is counted as such.
MISSING = frozenset(["", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "None", "NULL", "null", "<NA>"])
_SUFFIX = re.compile(r"(\s*\.zarr(\.zip)?)+\Z")  # repeated, so that a clean id stays as it is
MAX_COLUMNS = 16_384  # of a table; 16 times as many as the values that an encoder may give


def clean_id(text: str) -> str:
    """An id without the spaces around it and without the suffix of the cube's file."""
    text = text.strip()
    return _SUFFIX.sub("", text) if ".zarr" in text else text


def clean_ids(cells: Sequence[Any], where: object, rows: Sequence[int] | None = None) -> tuple[str, ...]:
    """Ids, each text and each there once. ``rows`` are the numbers by which errors name their rows."""
    rows = rows if rows is not None else range(1, len(cells) + 1)
    ids = tuple(clean_id(cell) if isinstance(cell, str) else "" for cell in cells)
    if "" in ids:
        place = ids.index("")
        what = "no id" if isinstance(cells[place], str) or is_empty(cells[place]) else "id is not a string"
        raise DataError(what, where=f"{where}, row {rows[place]}", got=repr(cells[place]))
    if len(set(ids)) != len(ids) and (double := first_double(ids)):
        where = f"{where}, rows {rows[double[0]]} and {rows[double[1]]}"
        raise DataError(f"duplicate id {shown([ids[double[0]]])}", where=where)
    return ids


def is_empty(cell: Any) -> bool:
    # NaN is how pandas says "missing" and can only come from a loader; the word nan in a CSV is not empty.
    if isinstance(cell, str):
        return not cell.strip()
    return cell is None or (isinstance(cell, float | np.floating) and math.isnan(cell))


def check_magic(start: bytes, path: Path) -> None:
    """Refuse what begins as another kind of file does."""
    for magic, what in _MAGIC.items():
        if start.startswith(magic):
            raise DataError(f"not a CSV file but {what}", where=path)


def unreadable(path: Path, error: OSError) -> DataError:
    return DataError(f"cannot be read: {error.strerror or error}", where=path)


def read_rows(path: Path, id_column: str = "id") -> Iterator[tuple[int, list[str]]]:
    """The header, then every record that is not blank, of exactly the header's width; each with its last line."""
    header: list[str] = []
    try:
        with path.open("rb") as raw:
            check_magic(raw.read(64), path)
    except OSError as error:
        raise unreadable(path, error) from error
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            for row in reader:
                if not row or (len(row) == 1 and not row[0].strip()):
                    continue
                if "\0" in "".join(row):
                    where = f"{path}, row {reader.line_num}"
                    raise DataError("not CSV: it has NUL bytes", where=where, expected="text in UTF-8")
                if not header:
                    row = header = check_header(row, path, id_column)
                elif len(row) != len(header):
                    where, expected = f"{path}, row {reader.line_num}", f"{len(header)} fields"
                    raise DataError("row has the wrong length", where=where, expected=expected, got=len(row))
                yield reader.line_num, row
        except csv.Error as error:
            raise DataError(f"malformed CSV: {error}", where=f"{path}, row {reader.line_num}") from error
        except UnicodeDecodeError as error:
            where = f"{path}, after row {reader.line_num}"
            if 0 in error.object:
                raise DataError("not CSV: it has NUL bytes", where=where, expected="text in UTF-8") from error
            raise DataError("not UTF-8 text", where=where, got=f"byte 0x{error.object[error.start]:02x}") from error
    if not header:
        raise DataError("the file is empty", where=path, expected="a header row with an id column")


def check_header(header: Sequence[str], path: Path, id_column: str = "id") -> list[str]:
    """The column names without the spaces around them; each once, and the ids' among them."""
    if len(header) > MAX_COLUMNS:
        raise DataError("too many columns", where=path, expected=f"at most {MAX_COLUMNS}", got=len(header))
    names = [name.strip() for name in header]
    if id_column not in names:
        hint = f"Rename the column that holds the ids: {id_column}"
        if not names[0]:
            hint = f"The first column has no name: call it {id_column}"
        for mark, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if len(names) == 1 and mark in names[0]:
                hint = f"Separate columns with commas, not {word}"
        raise DataError(f"no column named {id_column!r}", where=path, got=shown(names), hint=hint)
    if len(set(names)) != len(names) and (double := first_double(names)):
        where = f"{path}, columns {double[0] + 1} and {double[1] + 1}"
        raise DataError(f"duplicate column {names[double[0]]!r}", where=where)
    return names


def first_double(items: Iterable[str]) -> tuple[int, int] | None:
    """The positions of the first duplicate: where the item first occurs, and where it occurs again."""
    seen: dict[str, int] = {}
    for position, item in enumerate(items):
        if item in seen:
            return seen[item], position
        seen[item] = position
    return None


def shown(names: Sequence[str], most: int = 6) -> str:
    """A list of names, cut to a length that fits in one line."""
    return join_names([repr(name if len(name) <= 40 else name[:37] + "…") for name in names], most)


def number_in(cell: Any) -> float | None:
    if isinstance(cell, str) and ("_" in cell or not cell.isascii()):
        return None  # Python reads 1_0 as ten and understands digits of many scripts; a CSV does not mean that
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
