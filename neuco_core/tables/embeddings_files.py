"""Embeddings in Parquet, NPZ and NPY."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from neuco_core.errors import DataError, NeucoError
from neuco_core.files import replacing
from neuco_core.tables import rows as _csv
from neuco_core.tables.embeddings import Embeddings, make_embeddings, to_float32
from neuco_core.tables.embeddings_csv import value_columns

ROWS = 1024  # at a time, in Parquet: the whole file at once would need several times the memory


@contextmanager
def _whole(path: Path, kind: str) -> Iterator[None]:
    """Turn any failure into one line: on damaged files the libraries raise whatever their parts raise."""
    try:
        yield
    except NeucoError:
        raise
    except Exception as error:
        words = str(error).strip().splitlines() or [type(error).__name__]
        raise DataError(f"damaged {kind} file: {words[0][:200]}", where=path) from error


def read_npz(path: Path, strict: bool, dim: int | None) -> Embeddings:
    """The arrays ``ids`` (text) and ``values`` (one row per id)."""
    # Opened here, because np.load leaves a file open that turns out to be broken.
    with _whole(path, "NPZ"), path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        if not isinstance(arrays, np.lib.npyio.NpzFile) or not {"ids", "values"} <= set(arrays.files):
            got = _csv.shown(getattr(arrays, "files", ["a single array"]))
            raise DataError("not embeddings", where=path, expected="arrays named 'ids' and 'values'", got=got)
        return _from_arrays(arrays["ids"], arrays["values"], path, strict, dim)


def read_npy(path: Path, strict: bool, dim: int | None) -> Embeddings:
    """The values; the ids are in ``NAME.ids.txt`` next to ``NAME.npy``, one per line."""
    side = ids_file(path)
    if not side.is_file():
        hint = f"Write the ids, one per line, to {side.name}, or use NPZ with arrays ids and values"
        raise DataError("an NPY file has no ids", where=path, expected=f"a file {side}", hint=hint)
    with _whole(path, "NPY"), path.open("rb") as file:
        values = np.lib.format.read_array(file, allow_pickle=False)
    with _whole(side, "text"):
        ids = np.array(side.read_text(encoding="utf-8").splitlines(), dtype=str)
    return _from_arrays(ids, values, path, strict, dim)


def ids_file(path: Path) -> Path:
    return path.with_name(path.stem + ".ids.txt")


def read_parquet(path: Path, strict: bool, dim: int | None) -> Embeddings:
    """A text column ``id``, and numbered columns or a single column of lists."""
    import pyarrow.parquet as pq

    ids: list[str | None] = []
    values = np.empty((0, 0), dtype=np.float32)
    with _whole(path, "Parquet"), pq.ParquetFile(path, pre_buffer=False) as file:
        names = _csv.check_header(file.schema_arrow.names, path)
        columns = value_columns(names, path, dim)
        _check_text(file.schema_arrow.field("id").type, path)
        for batch in file.iter_batches(batch_size=ROWS, columns=["id", *columns]):
            block = _block(batch, columns, path)
            if not ids:
                values = np.empty((file.metadata.num_rows, block.shape[1]), dtype=np.float32)
            if block.shape[1] != values.shape[1]:
                raise _lengths({block.shape[1], values.shape[1]}, path)
            values[len(ids) : len(ids) + len(block)] = block
            ids += batch["id"].to_pylist()
    ignored = tuple(name for name in names if name not in {"id", *columns})
    return _from_arrays(np.array(ids, dtype=object), values, path, strict, dim, ignored)


def _check_text(kind: Any, path: Path) -> None:
    import pyarrow as pa

    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise DataError("ids are not strings", where=f"{path}, column 'id'", expected="strings", got=kind)


def _block(batch: Any, columns: list[str], path: Path) -> np.ndarray:
    import pyarrow as pa

    kind = batch[columns[0]].type
    if len(columns) == 1 and (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    ):
        return _lists(batch[columns[0]], f"{path}, column {columns[0]!r}")
    values = np.empty((batch.num_rows, len(columns)), dtype=np.float32)
    for place, name in enumerate(columns):
        values[:, place] = to_float32(_numeric(batch[name].to_numpy(zero_copy_only=False), f"{path}, column {name!r}"))
    return values


def _lists(column: Any, where: object) -> np.ndarray:
    import pyarrow.compute as pc

    lengths = set(pc.unique(pc.list_value_length(column)).to_pylist())
    if len(lengths) != 1 or None in lengths:
        raise _lengths(lengths, where)
    flat = pc.list_flatten(column).to_numpy(zero_copy_only=False)
    return to_float32(_numeric(flat, where)).reshape(len(column), lengths.pop())


def _lengths(lengths: set[int | None], where: object) -> DataError:
    got = ", ".join(sorted(map(str, lengths)))
    return DataError("rows of different lengths", where=where, expected="one length", got=f"lengths {got}")


def _numeric(values: np.ndarray, where: object) -> np.ndarray:
    if values.dtype.kind not in "fiu":
        raise DataError("values are not numbers", where=where, got=f"type {values.dtype}")
    return values


def _from_arrays(
    ids: np.ndarray, values: np.ndarray, path: Path, strict: bool, dim: int | None, ignored: tuple[str, ...] = ()
) -> Embeddings:
    if ids.dtype.kind not in "UO" or ids.ndim != 1:
        raise DataError(
            "ids are not strings",
            where=path,
            expected="a one-dimensional array of text",
            got=f"{ids.dtype}, shape {ids.shape}",
        )
    if dim is not None and values.ndim == 2 and values.shape[1] > dim:
        raise DataError("too many value columns", where=path, expected=f"at most {dim}", got=values.shape[1])
    values = to_float32(_numeric(values, path))
    missing = int(np.isnan(values).sum())
    if missing and strict:
        raise DataError(
            "values are not numbers",
            where=path,
            got=f"NaN in {missing} places",
            hint="Without strict they become 0 and are counted",
        )
    if missing:
        values = np.where(np.isnan(values), np.float32(0), values)
    return make_embeddings(
        ids.tolist(), values, replaced={"missing": missing} if missing else {}, ignored=ignored, where=path
    )


def write_npz(embeddings: Embeddings, path: Path) -> None:
    with replacing(path) as target, target.open("wb") as file:
        np.savez(file, ids=np.array(embeddings.ids, dtype=str), values=embeddings.values)


def write_npy(embeddings: Embeddings, path: Path) -> None:
    lines = [name for name in embeddings.ids if name.splitlines() == [name]]
    if len(lines) != len(embeddings.ids):
        raise DataError("an id with a line break cannot go beside an NPY file", where=path, hint="Write NPZ")
    with replacing(ids_file(path)) as target:
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with replacing(path) as target, target.open("wb") as file:
        np.save(file, embeddings.values)


def write_parquet(embeddings: Embeddings, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    flat = pa.array(embeddings.values.reshape(-1))
    lists = pa.FixedSizeListArray.from_arrays(flat, embeddings.dim)
    table = pa.table({"id": pa.array(embeddings.ids, pa.string()), "embedding": lists})
    with replacing(path) as target:
        pq.write_table(table, target, row_group_size=ROWS)
