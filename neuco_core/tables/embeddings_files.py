"""Embeddings in Parquet, NPZ and NPY."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from neuco_core.errors import DataError, NeucoError
from neuco_core.files import replacing
from neuco_core.tables import csv as _csv
from neuco_core.tables.embeddings import Embeddings, make_embeddings, to_float32
from neuco_core.tables.embeddings_csv import value_columns
from neuco_core.tables.limits import check_array, check_columns, check_unpacked, check_zip

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
    with _whole(path, "NPZ"):
        check_zip(path)
        with zipfile.ZipFile(path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            if not {"ids", "values"} <= set(names):
                expected = "arrays named 'ids' and 'values'"
                raise DataError("not embeddings", where=path, expected=expected, got=_csv.shown(names))
            ids, values = (_member(archive, f"{name}.npy", path) for name in ("ids", "values"))
        return _from_arrays(ids, values, path, strict, dim)


def _member(archive: zipfile.ZipFile, name: str, path: Path) -> np.ndarray:
    with archive.open(name) as file:
        return _array(file, archive.getinfo(name).file_size, path, f"{path}, {name}")


def _array(file: IO[bytes], available: int, path: Path, where: object) -> np.ndarray:
    check_unpacked(4 * check_array(file, available, where), path)  # small integers become float32
    return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def read_npy(path: Path, strict: bool, dim: int | None) -> Embeddings:
    """The values; the ids are in ``NAME.ids.txt`` next to ``NAME.npy``, one per line."""
    side = ids_file(path)
    if not side.is_file():
        hint = f"Write the ids, one per line, to {side.name}, or use NPZ with arrays ids and values"
        raise DataError("an NPY file has no ids", where=path, expected=f"a file {side}", hint=hint)
    with _whole(path, "NPY"), path.open("rb") as file:
        values = _array(file, path.stat().st_size, path, path)
    with _whole(side, "text"):
        ids = np.array(side.read_text(encoding="utf-8").splitlines(), dtype=str)
    return _from_arrays(ids, values, path, strict, dim)


def ids_file(path: Path) -> Path:
    return path.with_name(path.stem + ".ids.txt")


def read_parquet(path: Path, strict: bool, dim: int | None) -> Embeddings:
    """A text column ``id``, and numbered columns or a single column of lists; or TerraTorch's names for these two."""
    import pyarrow.parquet as pq

    from neuco_core.tables.terratorch_files import KEY, VALUES, has_columns

    ids: list[str | None] = []
    values = np.empty((0, 0), dtype=np.float32)
    characters = 0
    with _whole(path, "Parquet"):
        schema = pq.read_schema(path)
        key, names, columns = KEY, list(schema.names), [VALUES]
        if not has_columns(names):
            key, names = "id", _csv.check_header(names, path)
            columns = value_columns(names, path, dim)
        _check_types(schema, key, columns, path)
    # As a dictionary, a long id that stands in many rows is held once.
    with _whole(path, "Parquet"), pq.ParquetFile(path, pre_buffer=False, read_dictionary=[key]) as file:
        _check_declared(file.metadata, columns, path)
        for batch in file.iter_batches(batch_size=ROWS, columns=[key, *columns]):
            block = _block(batch, columns, path)
            if not ids:
                values = np.empty((file.metadata.num_rows, block.shape[1]), dtype=np.float32)
            if block.shape[1] != values.shape[1]:
                raise _lengths({block.shape[1], values.shape[1]}, path)
            characters += _characters(batch[key])
            check_unpacked(characters, path)
            values[len(ids) : len(ids) + len(block)] = block
            ids += batch[key].to_pylist()
    ignored = tuple(name for name in names if name not in {key, *columns})
    used = tuple(columns) if len(columns) == values.shape[1] else ()  # a column of lists names no dimension
    return _from_arrays(np.array(ids, dtype=object), values, path, strict, dim, columns=used, ignored=ignored)


def _check_types(schema: Any, key: str, columns: Sequence[str], path: Path) -> None:
    """Before anything is read: text in the place of numbers may be of any length."""
    import pyarrow as pa

    kind = _content(schema.field(key).type)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        hint = f"With pandas: frame[{key!r}] = frame[{key!r}].astype(str)"
        raise DataError("ids are not strings", where=f"{path}, column {key!r}", expected="strings", got=kind, hint=hint)
    for name in columns:
        kind = schema.field(name).type
        if hasattr(kind, "value_type") and hasattr(kind.value_type, "value_type"):
            hint = "Pool the tokens first; TerraTorch does with embedding_pooling: mean"
            raise DataError("embeddings are not vectors", where=f"{path}, column {name!r}", got=kind, hint=hint)
        kind = _content(kind)
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
            raise DataError("values are not numbers", where=f"{path}, column {name!r}", got=f"type {kind}")


def _content(kind: Any) -> Any:
    """What lists and dictionaries hold."""
    return _content(kind.value_type) if hasattr(kind, "value_type") else kind


def _check_declared(metadata: Any, columns: Sequence[str], path: Path) -> None:
    """Pages of repeated values are tiny whatever their number, so values are counted beside the bytes of pages."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    rows = sum(group.num_rows for group in groups)
    if rows != metadata.num_rows:
        raise DataError("row groups do not add up", where=path, expected=f"{metadata.num_rows} rows", got=rows)
    values = rows * len(columns)
    if len(columns) == 1:  # which may be of lists
        place = next(n for n in range(metadata.num_columns) if _column(metadata, n) == columns[0])
        values = sum(group.column(place).num_values for group in groups)
    check_unpacked(max(8 * values, sum(group.total_byte_size for group in groups)), path)


def _column(metadata: Any, place: int) -> str:
    return str(metadata.schema.column(place).path).partition(".")[0]


def _characters(ids: Any) -> int:
    import pyarrow.compute as pc

    lengths = pc.binary_length(getattr(ids, "dictionary", ids))
    return pc.sum(lengths.take(ids.indices) if hasattr(ids, "indices") else lengths).as_py() or 0


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
    ids: np.ndarray, values: np.ndarray, path: Path, strict: bool, dim: int | None, **names: tuple[str, ...]
) -> Embeddings:
    if ids.dtype.kind not in "UO" or ids.ndim != 1:
        raise DataError(
            "ids are not strings",
            where=path,
            expected="a one-dimensional array of text",
            got=f"{ids.dtype}, shape {ids.shape}",
        )
    if dim is not None and values.ndim == 2:
        check_columns(values.shape[1], path, dim, "value columns")
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
    return make_embeddings(ids.tolist(), values, replaced={"missing": missing} if missing else {}, where=path, **names)


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
