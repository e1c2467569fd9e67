"""Labels: from a verified file to a typed value, or an error that names the file, the row or the column."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuco_core.data import _csv
from neuco_core.errors import DataError, NeucoError

if TYPE_CHECKING:
    import pandas
    import xarray

    from neuco_core.specs import Task


@dataclass(frozen=True)
class Labels:
    """Labels in the order of their file. ``values`` is float64, (n,) or (n, outputs); ``sha256`` is of the content.

    ``dropped`` counts rows left out, by reason. ``classes`` names the classes 0, 1, … of a classification.
    ``verified`` tells whether the bytes were compared with a pinned sha256.
    """

    task: str
    kind: str
    ids: tuple[str, ...]
    values: np.ndarray
    sha256: str
    dropped: Mapping[str, int] = field(default_factory=dict)
    groups: np.ndarray | None = None
    columns: tuple[str, ...] = ("label",)
    classes: tuple[str, ...] = ()
    verified: bool = False

    def __len__(self) -> int:
        return len(self.ids)

    def frame(self) -> pandas.DataFrame:
        """A table indexed by id, with the label columns and, if there are groups, ``group``."""
        import pandas as pd

        table = pd.DataFrame(
            self.values.reshape(len(self), -1), index=pd.Index(self.ids, name="id"), columns=list(self.columns)
        )
        return table if self.groups is None else table.assign(group=self.groups)

    def xarray(self) -> xarray.DataArray:
        """An array over ``id`` (and ``output``, if there are several label columns)."""
        import xarray as xr

        coords: dict[str, Any] = {"id": np.array(self.ids, dtype=str)}
        if self.groups is not None:
            coords["group"] = ("id", self.groups)
        if self.values.ndim == 2:
            coords["output"] = list(self.columns)
        attrs = {"kind": self.kind, "sha256": self.sha256}
        return xr.DataArray(
            self.values, coords=coords, dims=("id", "output")[: self.values.ndim], name=self.task, attrs=attrs
        )


def load_labels(task: Task) -> Labels:
    """The labels of a task: from a linked local copy if there is one, otherwise fetched and verified."""
    from neuco_core.data.fetch import fetch
    from neuco_core.data.links import linked_file
    from neuco_core.data.pins import find_pin

    path = linked_file(task.dataset, task.source)
    verified = path is None or find_pin(task.source) is not None
    path = fetch(task.source) if path is None else path
    options: dict[str, Any] = {"task": task.id, "columns": task.columns, "group_column": task.group_column}
    if task.loader is None:
        return read_labels(path, task.kind, verified=verified, **options)
    where = f"{path}, as read by the loader of {task.id}"
    return labels_from_table(
        _call_loader(task.loader, task.id, path), task.kind, where=where, verified=verified, **options
    )


def _call_loader(loader: Callable[..., Any], task: str, path: Path) -> dict[str, list[Any]]:
    """A loader returns a mapping of columns, such as a DataFrame; what is in them is checked like a file's rows."""
    try:
        table = loader(path)
        return {str(name): list(table[name]) for name in table.keys()}  # noqa: SIM118
    except NeucoError:
        raise
    except Exception as error:
        what = f"the loader of task {task!r} failed: {type(error).__name__}: {error}"
        raise DataError(what, where=path, expected="a mapping of columns, such as a DataFrame") from error


def read_labels(
    path: str | Path,
    kind: str,
    *,
    task: str = "",
    columns: Sequence[str] = ("label",),
    group_column: str | None = None,
    verified: bool = False,
) -> Labels:
    """Labels from a CSV file with the columns ``id`` and ``columns``; others are allowed and ignored."""
    path = Path(path)
    _csv.scan(path)
    rows = _csv.read_rows(path)
    _, header = next(rows)
    wanted = _present(header, ("id", *columns, *([group_column] if group_column else [])), path)
    places = [header.index(name) for name in wanted]
    lines: list[int] = []
    cells: list[list[str]] = []
    for line, row in rows:
        lines.append(line)
        cells.append([row[place] for place in places])
    table = dict(zip(wanted, zip(*cells, strict=True) if cells else [()] * len(wanted), strict=True))
    return labels_from_table(
        table,
        kind,
        where=path,
        rows=lines,
        task=task or path.stem,
        columns=columns,
        group_column=group_column,
        verified=verified,
    )


def labels_from_table(
    table: Mapping[str, Sequence[Any]],
    kind: str,
    *,
    where: object = "labels",
    rows: Sequence[int] | None = None,
    task: str = "",
    columns: Sequence[str] = ("label",),
    group_column: str | None = None,
    verified: bool = False,
) -> Labels:
    """Check a table of ids and labels. ``rows`` are the numbers by which errors name its rows."""
    wanted = _present(list(table), ("id", *columns, *([group_column] if group_column else [])), where)
    rows = rows if rows is not None else range(1, len(table["id"]) + 1)
    for name in wanted:
        if len(table[name]) != len(rows):
            got = f"{len(table[name])} in {name!r}"
            raise DataError("columns of different lengths", where=where, expected=f"{len(rows)} rows", got=got)
    kept = [n for n in range(len(rows)) if not any(_empty(table[name][n]) for name in columns)]
    if not kept:
        raise DataError("no row has a label", where=where, got=f"{len(rows)} rows")
    ids = _ids(table["id"], rows, where)
    parsed = [_column(table[name], kept, rows, kind, f"column {name!r}", where) for name in columns]
    values = np.column_stack([column for column, _ in parsed]) if len(columns) > 1 else parsed[0][0]
    groups = _groups(table[group_column], kept, rows, group_column, where) if group_column else None
    kept_ids = tuple(ids[n] for n in kept)
    return Labels(
        task=task,
        kind=kind,
        ids=kept_ids,
        values=values,
        sha256=content_hash(kept_ids, values, groups),
        dropped={"empty_label": len(rows) - len(kept)} if len(kept) < len(rows) else {},
        groups=groups,
        columns=tuple(columns),
        classes=parsed[0][1] if len(columns) == 1 else (),
        verified=verified,
    )


def content_hash(ids: Sequence[str], values: np.ndarray, groups: np.ndarray | None) -> str:
    """Of what was read, not of how it was written. The order counts: it fixes the splits."""
    head = {"format": "neuco-labels-1", "ids": list(ids), "shape": values.shape}
    if groups is not None:
        head["groups"] = [str(group) for group in groups]
    digest = hashlib.sha256(json.dumps(head, separators=(",", ":")).encode())
    digest.update((values + 0.0).astype("<f8").tobytes())  # + 0.0 makes one zero of -0.0 and 0.0
    return digest.hexdigest()


def _present(names: Sequence[str], wanted: Sequence[str], where: object) -> Sequence[str]:
    for name in wanted:
        if name not in names:
            raise DataError(f"no column {name!r}", where=where, got="columns " + _csv.shown(names))
    return wanted


def _empty(cell: Any) -> bool:
    # NaN is how pandas says "missing" and can only come from a loader; the word nan in a CSV is not empty.
    return (
        cell is None or (isinstance(cell, str) and not cell.strip()) or (isinstance(cell, float) and math.isnan(cell))
    )


def _ids(cells: Sequence[Any], rows: Sequence[int], where: object) -> list[str]:
    ids = []
    for cell, row in zip(cells, rows, strict=True):
        if not isinstance(cell, str) or not _csv.clean_id(cell):
            what = "no id" if isinstance(cell, str) or _empty(cell) else "an id that is no text"
            raise DataError(what, where=f"{where}, row {row}", got=repr(cell))
        ids.append(_csv.clean_id(cell))
    double = _csv.first_double(ids)
    if double is not None:
        where = f"{where}, rows {rows[double[0]]} and {rows[double[1]]}"
        raise DataError(f"the id {_csv.shown([ids[double[0]]])} is there twice", where=where)
    return ids


def _groups(cells: Sequence[Any], kept: Sequence[int], rows: Sequence[int], name: str, where: object) -> np.ndarray:
    for n in kept:
        if _empty(cells[n]):
            raise DataError("no group", where=f"{where}, row {rows[n]}, column {name!r}")
    return np.array([str(cells[n]).strip() for n in kept], dtype=str)


def _column(
    cells: Sequence[Any], kept: Sequence[int], rows: Sequence[int], kind: str, column: str, where: object
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The values of one label column and, for a classification, the names of its classes."""
    numbers = [_number(cells[n]) for n in kept]
    classes: tuple[str, ...] = ()
    if kind == "classification" and all(number is None for number in numbers):
        # Class names: the classes are numbered in alphabetical order.
        texts = [str(cells[n]).strip() for n in kept]
        classes = tuple(sorted(set(texts)))
        order = {name: float(index) for index, name in enumerate(classes)}
        numbers = [order[text] for text in texts]
    for number, n in zip(numbers, kept, strict=True):
        if number is None or not math.isfinite(number):
            what = "a label that is no number" if number is None else "a label that is not finite"
            raise DataError(what, where=f"{where}, row {rows[n]}, {column}", got=_csv.shown([str(cells[n])]))
    values = np.array(numbers, dtype=np.float64)
    if np.all(values == values[0]):
        raise DataError(
            "constant labels: there is nothing to predict",
            where=f"{where}, {column}",
            got=f"{values[0]:g} in all {len(kept)} rows",
        )
    if kind == "classification" and not classes:
        classes = _numbered_classes(values, [rows[n] for n in kept], column, where)
    return values, classes


def _number(cell: Any) -> float | None:
    if isinstance(cell, str) and ("_" in cell or not cell.isascii()):
        return None  # Python reads 1_0 as ten and understands digits of many scripts; a CSV does not mean that
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def _numbered_classes(values: np.ndarray, rows: Sequence[int], column: str, where: object) -> tuple[str, ...]:
    odd = np.flatnonzero((values != np.floor(values)) | (values < 0))
    if odd.size:
        row, value = rows[odd[0]], values[odd[0]]
        expected = "the whole numbers 0, 1, …, or names"
        raise DataError("not a class", where=f"{where}, row {row}, {column}", expected=expected, got=f"{value:g}")
    count = int(values.max()) + 1
    present = np.unique(values)
    if len(present) != count:
        absent = next(c for c in range(count) if c not in present)
        expected = f"every class from 0 to {count - 1}"
        raise DataError(
            "classes with a gap", where=f"{where}, {column}", expected=expected, got=f"none of class {absent}"
        )
    return tuple(str(c) for c in range(count))
