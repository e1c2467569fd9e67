"""The columns of a label file: cells become ids, labels and groups, or an error that names the row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuco_core.errors import DataError
from neuco_core.specs import PARTS
from neuco_core.tables import rows as _csv


@dataclass(frozen=True)
class Column:
    """The cells of one column, and the numbers by which errors name its rows."""

    name: str
    cells: Sequence[Any]
    rows: Sequence[int]
    where: object

    def __post_init__(self) -> None:
        if len(self.cells) != len(self.rows):
            got = f"{len(self.cells)} in {self.name!r}"
            raise DataError(
                "columns of different lengths", where=self.where, expected=f"{len(self.rows)} rows", got=got
            )

    def error(self, what: str, n: int | None = None, **parts: Any) -> DataError:
        row = f", row {self.rows[n]}" if n is not None else ""
        return DataError(what, where=f"{self.where}{row}, column {self.name!r}", **parts)

    def ids(self) -> list[str]:
        ids = []
        for cell, row in zip(self.cells, self.rows, strict=True):
            if not isinstance(cell, str) or not _csv.clean_id(cell):
                what = "no id" if isinstance(cell, str) or is_empty(cell) else "id is not a string"
                raise DataError(what, where=f"{self.where}, row {row}", got=repr(cell))
            ids.append(_csv.clean_id(cell))
        double = _csv.first_double(ids)
        if double is not None:
            where = f"{self.where}, rows {self.rows[double[0]]} and {self.rows[double[1]]}"
            raise DataError(f"duplicate id {_csv.shown([ids[double[0]]])}", where=where)
        return ids

    def groups(self, kept: Sequence[int]) -> np.ndarray:
        for n in kept:
            if is_empty(self.cells[n]):
                raise self.error("no group", n)
        return np.array([str(self.cells[n]).strip() for n in kept], dtype=str)

    def split(self, kept: Sequence[int]) -> np.ndarray:
        words = [str(self.cells[n]).strip().lower() for n in kept]
        for n, word in zip(kept, words, strict=True):
            if word not in PARTS:
                hint = "A validation part is given to train, or its rows are left out: probes validate for themselves"
                got = _csv.shown([str(self.cells[n])])
                raise self.error("not a part of a split", n, expected=" or ".join(PARTS), got=got, hint=hint)
        for part in PARTS:
            if part not in words:
                raise self.error(f"no row is in the part {part!r}", got=f"{len(words)} rows")
        return np.array(words, dtype=str)

    def labels(self, kept: Sequence[int], kind: str) -> tuple[np.ndarray, tuple[str, ...]]:
        """The values and, for a classification, the names of the classes 0, 1, …"""
        numbers = [_number(self.cells[n]) for n in kept]
        if kind == "classification" and all(number is None for number in numbers):
            values, classes = self._named_classes(kept)
        else:
            values, classes = self._finite(numbers, kept), ()
        if np.all(values == values[0]):
            got = f"{_csv.shown([str(self.cells[kept[0]])])} in all {len(kept)} rows"
            raise self.error("constant labels: there is nothing to predict", got=got)
        if kind == "multilabel":
            odd = np.flatnonzero((values != 0) & (values != 1))
            if odd.size:
                raise self.error("a label is there or not", kept[odd[0]], expected="1 or 0", got=f"{values[odd[0]]:g}")
        if kind == "classification" and not classes:
            classes = self._numbered_classes(values, kept)
            values = values - values.min()
        return values, classes

    def _finite(self, numbers: Sequence[float | None], kept: Sequence[int]) -> np.ndarray:
        for number, n in zip(numbers, kept, strict=True):
            if number is None or not math.isfinite(number):
                what = "label is not a number" if number is None else "label is not finite"
                hint = "Leave the cell empty where there is no label: such rows are dropped and counted"
                raise self.error(what, n, got=_csv.shown([str(self.cells[n])]), hint=hint)
        return np.array(numbers, dtype=np.float64)

    def _named_classes(self, kept: Sequence[int]) -> tuple[np.ndarray, tuple[str, ...]]:
        """Names are numbered in alphabetical order."""
        names = [str(self.cells[n]).strip() for n in kept]
        classes = tuple(sorted(set(names)))
        number = {name: place for place, name in enumerate(classes)}
        return np.array([number[name] for name in names], dtype=np.float64), classes

    def _numbered_classes(self, values: np.ndarray, kept: Sequence[int]) -> tuple[str, ...]:
        odd = np.flatnonzero((values != np.floor(values)) | (values < 0))
        if odd.size:
            expected = "the whole numbers 0, 1, … or 1, 2, …, or names"
            raise self.error("not a class", kept[odd[0]], expected=expected, got=f"{values[odd[0]]:g}")
        present = np.unique(values)
        first = min(present[0], 1)  # they are counted from 0, or from 1
        absent = np.flatnonzero(present != first + np.arange(len(present)))
        if absent.size:
            expected = f"every class from {first:.0f} to {present[-1]:.0f}"
            raise self.error(
                "class numbers have a gap", expected=expected, got=f"none of class {first + absent[0]:.0f}"
            )
        return tuple(f"{number:.0f}" for number in present)


def is_empty(cell: Any) -> bool:
    # NaN is how pandas says "missing" and can only come from a loader; the word nan in a CSV is not empty.
    if isinstance(cell, str):
        return not cell.strip()
    return cell is None or (isinstance(cell, float | np.floating) and math.isnan(cell))


def _number(cell: Any) -> float | None:
    if isinstance(cell, str) and ("_" in cell or not cell.isascii()):
        return None  # Python reads 1_0 as ten and understands digits of many scripts; a CSV does not mean that
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
