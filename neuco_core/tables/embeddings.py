"""Embeddings: one float32 row per id, from CSV, Parquet, NPZ or NPY."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neuco_core.errors import DataError
from neuco_core.tables import csv as _csv
from neuco_core.text import Brief

if TYPE_CHECKING:
    import pandas

FORMATS = (".csv", ".parquet", ".npz", ".npy")
MAGIC = {b"PAR1": ".parquet", b"PK\x03\x04": ".npz", b"\x93NUMPY": ".npy"}
# What is often tried, and cannot be read: how to bring it into a form that can.
ELSEWHERE = (
    (
        (".pkl", ".pickle", ".joblib"),
        "A pickle runs code when it is opened; write the array with numpy.savez(FILE.npz, ids=ids, values=values)",
    ),
    (
        (".pt", ".pth", ".ckpt", ".safetensors"),
        "Write the tensor with numpy.savez(FILE.npz, ids=ids, values=tensor.cpu().numpy())",
    ),
    (
        (".h5", ".hdf5", ".feather", ".xlsx", ".xls", ".mat", ".json", ".jsonl"),
        "Write a table with the column id, e.g. with pandas: frame.to_parquet(FILE.parquet)",
    ),
    ((".tif", ".tiff", ".png", ".jpg", ".jpeg"), "That is an image; embeddings are one row of numbers for each image"),
)


@dataclass(frozen=True)
class Embeddings(Brief):
    """One float32 row per id; ``sha256`` is of ids and values; ``replaced`` counts values that became 0, by reason.

    ``first_replaced`` says where the first of them was, if that is known.

    ``columns`` are the columns of the file that hold the values, ``ignored`` those that do not; both are empty where
    the values had no names.
    """

    ids: tuple[str, ...]
    values: np.ndarray
    sha256: str
    replaced: Mapping[str, int] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    first_replaced: str = ""
    _moments: dict[tuple[object, int], tuple[float, float]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def dim(self) -> int:
        return int(self.values.shape[1])

    def only(self, ids: Collection[str]) -> Embeddings:
        """The rows with these ids, in the order that they have here."""
        wanted = set(ids)
        rows = [row for row, name in enumerate(self.ids) if name in wanted]
        if len(rows) == len(self.ids):
            return self
        kept = tuple(self.ids[row] for row in rows)
        values = self.values[rows]
        return replace(self, ids=kept, values=values, sha256=content_hash(kept, values))

    def moments(self, ids: Collection[str] | None = None, dim: int | None = None) -> tuple[float, float]:
        """One mean and one population standard deviation over all values of these ids, or of all.

        Rows count as padded with zeros to ``dim``. Ids without a row are left out. Both are kept, since many tasks are
        standardised over the same rows.
        """
        width = dim or self.dim
        key = None if ids is None else tuple(ids), width
        if key in self._moments:
            return self._moments[key]
        rows = np.arange(len(self.ids))
        if ids is not None:
            row_of = {name: row for row, name in enumerate(self.ids)}
            rows = np.array([row_of[name] for name in ids if name in row_of], np.int64)
        if not rows.size:
            raise DataError("none of the ids to standardise over has an embedding")
        # In float64, a few rows at a time so that they stay in the processor's cache, and about the mean of the first
        # rows, so that little is lost where the mean is far from 0.
        count, block = len(rows) * width, 32
        with np.errstate(all="ignore"):
            about = float(self.values[rows[:block]].mean(dtype=np.float64))
            padding = len(rows) * (width - self.dim)
            total, squares = -about * padding, about * about * padding
            for start in range(0, len(rows), block):
                moved = np.subtract(self.values[rows[start : start + block]], about, dtype=np.float64).reshape(-1)
                total += float(moved.sum())
                squares += float(np.einsum("i,i->", moved, moved))
            offset = total / count
            spread = float(np.sqrt(max(squares / count - offset * offset, 0.0)))
        # Below the rounding of float32 it is noise about a constant, which counts as no spread at all.
        self._moments[key] = about + offset, spread if spread > 1e-7 * abs(about + offset) else 1.0
        return self._moments[key]

    def frame(self) -> pandas.DataFrame:
        """A table indexed by id, a column for each dimension."""
        import pandas as pd

        names = list(self.columns) or [str(number) for number in range(self.dim)]
        return pd.DataFrame(self.values, index=pd.Index(self.ids, name="id"), columns=names)


def make_embeddings(
    ids: Sequence[str],
    values: np.ndarray,
    *,
    replaced: Mapping[str, int] | None = None,
    ignored: Sequence[str] = (),
    columns: Sequence[str] = (),
    where: object = "embeddings",
) -> Embeddings:
    """Check ids and values and compute the content's hash. Ids lose ``.zarr.zip``; values must be finite."""
    ids = _csv.clean_ids(ids, where)
    values = np.asarray(values)
    if values.ndim != 2 or len(values) != len(ids) or 0 in values.shape:
        expected = f"one row of values for each of {len(ids)} ids"
        raise DataError("values of the wrong shape", where=where, expected=expected, got=f"shape {values.shape}")
    if values.dtype.kind not in "fiu":
        raise DataError("values are not numbers", where=where, got=f"type {values.dtype}")
    values = to_float32(values)
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        at = f"{where}, id {_csv.shown([ids[row]])}, dimension {column}"
        raise DataError("value is not finite as float32", where=at, got=f"{values[row, column]:g}")
    return Embeddings(ids, values, content_hash(ids, values), dict(replaced or {}), tuple(ignored), tuple(columns))


def content_hash(ids: Sequence[str], values: np.ndarray) -> str:
    """The hash of the ids and the float32 values in their order, independent of the file format."""
    head = {"format": "neuco-embeddings-1", "ids": list(ids), "shape": values.shape}
    digest = hashlib.sha256(json.dumps(head, separators=(",", ":")).encode())
    for start in range(0, len(values), 1024):  # in parts, to need no second copy of it all
        block = values[start : start + 1024] + np.float32(0)  # which makes one zero of -0 and 0
        digest.update(block.astype("<f4", copy=False).tobytes())
    return digest.hexdigest()


def to_float32(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # what is too large becomes inf, and inf is refused with its place
        return np.ascontiguousarray(values, dtype=np.float32)


def read_embeddings(
    path: str | Path, *, strict: bool = False, dim: int | None = None, gaps: bool = False
) -> Embeddings:
    """Read a CSV, Parquet, NPZ or NPY file; its suffix says which, and its first bytes if it has none of these.

    A folder is one that TerraTorch has written.

    Values that are missing (also NaN) or no numbers become 0 and are counted in ``replaced``; with
    ``strict`` they are an error. Infinite values are always an error, and so are more than ``dim`` dimensions.
    Numbered columns of a CSV file may lack numbers only with ``gaps``: a lost column is rarely meant.
    """
    from neuco_core.tables import embeddings_csv, embeddings_files

    path = Path(path)
    if path.is_dir():
        return embeddings_files.read_folder(path, strict=strict, dim=dim)
    if not path.is_file():
        raise DataError("not a regular file" if path.exists() else "no such file", where=path)
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        for suffixes, hint in ELSEWHERE:
            if suffix in suffixes:
                expected = "a .csv, .parquet, .npz or .npy file"
                raise DataError("not a format of embeddings", where=path, expected=expected, got=suffix, hint=hint)
        try:
            with path.open("rb") as file:
                start = file.read(8)
        except OSError as error:
            raise _csv.unreadable(path, error) from error
        suffix = next((form for mark, form in MAGIC.items() if start.startswith(mark)), ".csv")
    most = min(dim or _csv.MAX_COLUMNS, _csv.MAX_COLUMNS)
    if suffix == ".csv":
        return embeddings_csv.read_csv(path, strict, most, gaps=gaps)
    return embeddings_files.READERS[suffix](path, strict, most)


def write_embeddings(embeddings: Embeddings, path: str | Path) -> None:
    """Write a ``.csv``, ``.parquet``, ``.npz`` or ``.npy`` file; reading it gives the same content hash."""
    from neuco_core.tables.embeddings_files import WRITERS

    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in WRITERS:
        expected = "one of " + ", ".join(WRITERS)
        raise DataError("unknown file format", where=path, expected=expected, got=path.suffix or "none")
    WRITERS[suffix](embeddings, path)
