"""Labels: from a verified file to a typed value, or an error that names the file, the row or the column."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from neuco_core.errors import DataError, NeucoError, UsageError
from neuco_core.fetch.fetch import fetch, find_pin
from neuco_core.fetch.links import linked_file
from neuco_core.plugins.loading import say
from neuco_core.plugins.running import Interrupted, plugin_code
from neuco_core.specs import KINDS, PARTS
from neuco_core.tables import csv as _csv
from neuco_core.text import Brief

if TYPE_CHECKING:
    import pandas
    import xarray

    from neuco_core.specs import Task


EARTH_COLUMNS, YEAR = ("lon", "lat"), "year"


@dataclass(frozen=True)
class Labels(Brief):
    """Labels in the order of their file. ``values`` is float64, (n,) or (n, outputs); ``sha256`` is of the content.

    ``dropped`` counts rows left out, by reason. ``classes`` names the classes 0, 1, … of a classification. ``split``
    says ``train`` or ``test`` of each row if the task names a split; ``splitter`` is the task's own, if it has one.
    ``verified`` tells whether the bytes were compared with a pinned sha256. ``places`` are the columns ``lon``, ``lat``
    and ``year`` of a file that has them, as they are written; ``dataset`` may know where its samples are, too.
    """

    task: str
    kind: str
    ids: tuple[str, ...]
    values: np.ndarray
    sha256: str
    dropped: Mapping[str, int] = field(default_factory=dict)
    groups: np.ndarray | None = None
    split: np.ndarray | None = None
    splitter: str = ""
    columns: tuple[str, ...] = ("label",)
    classes: tuple[str, ...] = ()
    verified: bool = False
    dataset: str = ""
    places: Mapping[str, Sequence[Any]] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.ids)

    def only(self, ids: Collection[str]) -> Labels:
        """The labels of these samples, in the order of the file."""
        wanted = set(ids)
        rows = [row for row, name in enumerate(self.ids) if name in wanted]
        if len(rows) == len(self.ids):
            return self
        kept, values = tuple(self.ids[row] for row in rows), self.values[rows]
        groups, split = (None if part is None else part[rows] for part in (self.groups, self.split))
        sha256 = content_hash(kept, values, groups, split)
        places = self.places and {name: [cells[row] for row in rows] for name, cells in self.places.items()}
        return replace(self, ids=kept, values=values, groups=groups, split=split, sha256=sha256, places=places)

    def frame(self) -> pandas.DataFrame:
        """A table indexed by id, with the label columns and, if there are any, ``group`` and ``split``."""
        import pandas as pd

        values, index = self.values.reshape(len(self), -1), pd.Index(self.ids, name="id")
        return pd.DataFrame(values, index=index, columns=list(self.columns)).assign(**self.parts())

    def parts(self) -> dict[str, np.ndarray]:
        """Groups and split, if there are any, by the names of their columns."""
        return {name: part for name, part in (("group", self.groups), ("split", self.split)) if part is not None}

    def xarray(self) -> xarray.DataArray:
        """An array over ``id`` (and ``output``, if there are several label columns)."""
        import xarray as xr

        coords: dict[str, Any] = {"id": np.array(self.ids, dtype=str)}
        coords |= {name: ("id", part) for name, part in self.parts().items()}
        dims = ["id"]
        if self.values.ndim == 2:
            dims.append("output")
            coords["output"] = list(self.columns)
        attrs = {"kind": self.kind, "sha256": self.sha256}
        return xr.DataArray(self.values, coords=coords, dims=dims, name=self.task, attrs=attrs)


class LabelOptions(TypedDict, total=False):
    """What labels are read with, beside their kind: see ``labels_from_table``."""

    task: str
    columns: Sequence[str]
    group_column: str | None
    split_column: str | None
    splitter: str
    verified: bool
    dataset: str


def load_labels(task: Task) -> Labels:
    """The labels of a task: from a linked local copy if there is one, otherwise fetched and verified."""
    path = linked_file(task.dataset, task.source)
    options = LabelOptions(
        task=task.id,
        columns=task.columns,
        group_column=task.group_column,
        split_column=task.split_column,
        splitter=task.splitter,
        verified=path is None or find_pin(task.source) is not None,
        dataset=task.dataset,
    )
    path = fetch(task.source) if path is None else path
    if task.loader is None:
        return read_labels(path, task.kind, **options)
    where = f"{path}, as read by the loader of {task.id}"
    return labels_from_table(_call_loader(task.loader, task.id, path), task.kind, where=where, **options)


def _call_loader(loader: Callable[..., Any], task: str, path: Path) -> dict[str, list[Any]]:
    """A loader returns a mapping of columns, such as a DataFrame; what is in them is checked like a file's rows."""
    import pandas as pd

    try:
        with plugin_code():
            table = loader(path)
            return {str(name): [None if cell is pd.NA else cell for cell in table[name]] for name in table.keys()}  # noqa: SIM118
    except (NeucoError, Interrupted):
        raise
    except BaseException as error:
        what = f"the loader of task {task!r} failed: {say(error)}"
        raise DataError(what, where=path, expected="a mapping of columns, such as a DataFrame") from error


def read_labels(path: str | Path, kind: str, *, id_column: str = "id", **options: Unpack[LabelOptions]) -> Labels:
    """Labels from a CSV file with the columns ``id`` and ``columns``; others are allowed and ignored."""
    path = Path(path)
    options["task"] = options.get("task") or path.stem
    table, lines = read_columns(path, wanted_columns(options), id_column, (*EARTH_COLUMNS, YEAR))
    return labels_from_table(table, kind, where=path, rows=lines, **options)


def wanted_columns(options: LabelOptions) -> list[str]:
    further = (options.get("group_column"), options.get("split_column"))
    return ["id", *options.get("columns", ("label",)), *(name for name in further if name)]


def read_columns(
    path: Path, wanted: Sequence[str], id_column: str = "id", further: Sequence[str] = ()
) -> tuple[dict[str, Sequence[str]], list[int]]:
    """Some columns of a CSV file as they are written, and the numbers of their lines; ``id`` is the ``id_column``.

    The ``further`` ones are read if they are there.
    """
    rows = _csv.read_rows(path, id_column)
    _, header = next(rows)
    wanted = [*wanted, *(name for name in further if name in header and name not in wanted)]
    names = [id_column if name == "id" else name for name in wanted]
    _check_present(header, names, path)
    places = [header.index(name) for name in names]
    lines: list[int] = []
    cells: list[list[str]] = []
    for line, row in rows:
        lines.append(line)
        cells.append([row[place] for place in places])
    return dict(zip(wanted, zip(*cells, strict=True) if cells else [()] * len(wanted), strict=True)), lines


def _check_present(names: Sequence[str], wanted: Sequence[str], where: object) -> None:
    for name in wanted:
        if name not in names:
            raise DataError(f"no column {name!r}", where=where, got="columns " + _csv.shown(names))


def labels_from_table(
    table: Mapping[str, Sequence[Any]],
    kind: str,
    *,
    where: object = "labels",
    rows: Sequence[int] | None = None,
    **options: Unpack[LabelOptions],
) -> Labels:
    """Check a table of ids and labels. ``rows`` are the numbers by which errors name its rows."""
    columns = tuple(options.get("columns", ("label",)))
    if kind not in KINDS:
        raise UsageError("bad kind", expected="one of " + ", ".join(KINDS), got=repr(kind))
    if (kind == "classification" and len(columns) > 1) or (kind == "multilabel" and len(columns) < 2):
        what = f"wrong number of columns for {kind}"
        expected = "one column for a classification, several columns of 0 and 1 for multilabel"
        hint = "Classes in several columns are several tasks"
        raise DataError(what, where=where, expected=expected, got=len(columns), hint=hint)
    wanted = wanted_columns(options)
    _check_present(list(table), wanted, where)
    rows = rows if rows is not None else range(1, len(table["id"]) + 1)
    for name in wanted:
        if len(table[name]) != len(rows):
            expected, got = f"{len(rows)} rows", f"{len(table[name])} in {name!r}"
            raise DataError("columns of different lengths", where=where, expected=expected, got=got)
    kept = [n for n in range(len(rows)) if not any(_csv.is_empty(table[name][n]) for name in columns)]
    if not kept:
        raise DataError("no row has a label", where=where, got=f"{len(rows)} rows")
    all_ids = _csv.clean_ids(table["id"], where, rows)  # also of rows without a label
    ids = tuple(all_ids[n] for n in kept)
    kept_rows = [rows[n] for n in kept]
    cells = {name: _Column(name, [table[name][n] for n in kept], kept_rows, where) for name in wanted}
    parsed = [cells[name].labels(kind) for name in columns]
    values = np.column_stack([column for column, _ in parsed]) if len(columns) > 1 else parsed[0][0]
    group_column, split_column = options.get("group_column"), options.get("split_column")
    groups = None
    if group_column:
        for n, cell in enumerate(cells[group_column].cells):
            if _csv.is_empty(cell):
                raise cells[group_column].error("no group", n)
        groups = np.array([str(cell).strip() for cell in cells[group_column].cells], dtype=str)
    split = cells[split_column].split() if split_column else None
    places = {name: [table[name][n] for n in kept] for name in (*EARTH_COLUMNS, YEAR) if name in table}
    return Labels(
        task=options.get("task", ""),
        kind=kind,
        ids=ids,
        values=values,
        sha256=content_hash(ids, values, groups, split),
        dropped={"empty_label": len(rows) - len(kept)} if len(kept) < len(rows) else {},
        groups=groups,
        split=split,
        splitter=options.get("splitter", ""),
        columns=columns,
        classes=parsed[0][1] if len(columns) == 1 else (),
        verified=options.get("verified", False),
        dataset=options.get("dataset", ""),
        places=places if all(name in places for name in EARTH_COLUMNS) else None,
    )


def content_hash(
    ids: Sequence[str], values: np.ndarray, groups: np.ndarray | None, split: np.ndarray | None = None
) -> str:
    """The hash of the content, not of how it was written. The order counts: it fixes the splits."""
    head = {"format": "neuco-labels-1", "ids": list(ids), "shape": values.shape}
    if groups is not None:
        head["groups"] = [str(group) for group in groups]
    if split is not None:
        head["split"] = [str(part) for part in split]
    digest = hashlib.sha256(json.dumps(head, separators=(",", ":")).encode())
    digest.update((values + 0.0).astype("<f8").tobytes())  # + 0.0 makes one zero of -0.0 and 0.0
    return digest.hexdigest()


@dataclass(frozen=True)
class _Column:
    """The cells of one column in the rows with a label, and the numbers by which errors name these."""

    name: str
    cells: Sequence[Any]
    rows: Sequence[int]
    where: object

    def error(self, what: str, n: int | None = None, **parts: Any) -> DataError:
        row = f", row {self.rows[n]}" if n is not None else ""
        return DataError(what, where=f"{self.where}{row}, column {self.name!r}", **parts)

    def split(self) -> np.ndarray:
        parts = [str(cell).strip().lower() for cell in self.cells]
        for n, part in enumerate(parts):
            if part not in PARTS:
                hint = "A validation part is given to train, or its rows are left out: probes validate for themselves"
                got = _csv.shown([str(self.cells[n])])
                raise self.error("not a part of a split", n, expected=" or ".join(PARTS), got=got, hint=hint)
        for part in PARTS:
            if part not in parts:
                raise self.error(f"no row is in the part {part!r}", got=f"{len(parts)} rows")
        return np.array(parts, dtype=str)

    def labels(self, kind: str) -> tuple[np.ndarray, tuple[str, ...]]:
        """The values and, for a classification, the names of the classes 0, 1, …"""
        numbers = [_csv.number_in(cell) for cell in self.cells]
        classes: tuple[str, ...] = ()
        if kind == "classification" and all(number is None for number in numbers):
            names = [str(cell).strip() for cell in self.cells]
            classes = tuple(sorted(set(names)))  # numbered in alphabetical order
            number_of = {name: number for number, name in enumerate(classes)}
            values = np.array([number_of[name] for name in names], dtype=np.float64)
        else:
            for n, number in enumerate(numbers):
                if number is None or not math.isfinite(number):
                    what = "label is not a number" if number is None else "label is not finite"
                    hint = "Leave the cell empty where there is no label: such rows are dropped and counted"
                    raise self.error(what, n, got=_csv.shown([str(self.cells[n])]), hint=hint)
            values = np.array(numbers, dtype=np.float64)
        if np.all(values == values[0]):
            got = f"{_csv.shown([str(self.cells[0])])} in all {len(self.cells)} rows"
            raise self.error("constant labels: there is nothing to predict", got=got)
        if kind == "multilabel":
            odd = np.flatnonzero((values != 0) & (values != 1))
            if odd.size:
                raise self.error("a label is there or not", odd[0], expected="1 or 0", got=f"{values[odd[0]]:g}")
        if kind == "classification" and not classes:
            odd = np.flatnonzero((values != np.floor(values)) | (values < 0))
            if odd.size:
                expected = "the whole numbers 0, 1, … or 1, 2, …, or names"
                raise self.error("not a class", odd[0], expected=expected, got=f"{values[odd[0]]:g}")
            present = np.unique(values)
            first = min(present[0], 1)  # they are counted from 0, or from 1
            absent = np.flatnonzero(present != first + np.arange(len(present)))
            if absent.size:
                expected = f"every class from {first:.0f} to {present[-1]:.0f}"
                got = f"none of class {first + absent[0]:.0f}"
                raise self.error("class numbers have a gap", expected=expected, got=got)
            classes = tuple(f"{number:.0f}" for number in present)
            values = values - present[0]
        return values, classes
