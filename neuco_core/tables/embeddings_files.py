"""Embeddings in Parquet, NPZ and NPY, and what TerraTorch's ``EmbeddingGenerationTask`` leaves behind, read as it is.

For each layer that writes a folder ``layer_00`` with ``embeddings.csv`` (its format ``neuco_csv``), with
``embeddings.parquet`` (``parquet_joint``), or with a file ``NAME_embedding.parquet`` for each sample (``parquet``).
"""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from neuco_core.errors import DataError
from neuco_core.fetch.cache import cache_dir
from neuco_core.files import replacing
from neuco_core.tables import csv as _csv
from neuco_core.tables.embeddings import Embeddings, make_embeddings, read_embeddings, to_float32, write_embeddings
from neuco_core.tables.embeddings_csv import value_columns, write_csv
from neuco_core.tables.limits import check_array, check_members, check_unpacked, readable

ROWS = 1024  # at a time, in Parquet: the whole file at once would need several times the memory
KEY, VALUES = "file_id", "embedding"  # TerraTorch's columns; others are metadata
WHOLE = ("embeddings.csv", "embeddings.parquet")
SAMPLE = "_embedding.parquet"


def read_npz(path: Path, strict: bool, dim: int | None) -> Embeddings:
    """The arrays ``ids`` (text) and ``values`` (one row per id)."""
    with readable(path, "NPZ file"), zipfile.ZipFile(path) as archive:
        check_members(archive, path)
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        if not {"ids", "values"} <= set(names):
            expected = "arrays named 'ids' and 'values'"
            raise DataError("not embeddings", where=path, expected=expected, got=_csv.shown(names))
        arrays = {}
        for name in ("ids", "values"):
            with archive.open(f"{name}.npy") as file:
                size = archive.getinfo(f"{name}.npy").file_size
                arrays[name] = _array(file, size, path, f"{path}, {name}.npy")
        return _from_arrays(arrays["ids"], arrays["values"], path, strict, dim)


def _array(file: IO[bytes], available: int, path: Path, where: object) -> np.ndarray:
    check_unpacked(4 * check_array(file, available, where), path)  # small integers become float32
    return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def read_npy(path: Path, strict: bool, dim: int | None) -> Embeddings:
    """The values; the ids are in ``NAME.ids.txt`` next to ``NAME.npy``, one per line."""
    side = ids_file(path)
    if not side.is_file():
        hint = f"Write the ids, one per line, to {side.name}, or use NPZ with arrays ids and values"
        raise DataError("an NPY file has no ids", where=path, expected=f"a file {side}", hint=hint)
    with readable(path, "NPY file"), path.open("rb") as file:
        values = _array(file, path.stat().st_size, path, path)
    with readable(side, "text file"):
        ids = np.array(side.read_text(encoding="utf-8").splitlines(), dtype=str)
    return _from_arrays(ids, values, path, strict, dim)


def ids_file(path: Path) -> Path:
    return path.with_name(path.stem + ".ids.txt")


def read_parquet(path: Path, strict: bool, dim: int | None) -> Embeddings:
    """A text column ``id``, and numbered columns or a single column of lists; or TerraTorch's names for these two."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    ids: list[str | None] = []
    values = np.empty((0, 0), dtype=np.float32)
    characters = 0
    with readable(path, "Parquet file"):
        schema = pq.read_schema(path)
        key, names, columns = KEY, list(schema.names), [VALUES]
        if "id" in names or KEY not in names or VALUES not in names:
            key, names = "id", _csv.check_header(names, path)
            columns = value_columns(names, path, dim)
        _check_types(schema, key, columns, path)
    # As a dictionary, a long id that stands in many rows is held once.
    with readable(path, "Parquet file"), pq.ParquetFile(path, pre_buffer=False, read_dictionary=[key]) as file:
        _check_declared(file.metadata, columns, path)
        for batch in file.iter_batches(batch_size=ROWS, columns=[key, *columns]):
            block = _block(batch, columns, path)
            if not ids:
                values = np.empty((file.metadata.num_rows, block.shape[1]), dtype=np.float32)
            if block.shape[1] != values.shape[1]:
                raise _lengths({block.shape[1], values.shape[1]}, path)
            column = batch[key]
            lengths = pc.binary_length(getattr(column, "dictionary", column))
            characters += pc.sum(lengths.take(column.indices) if hasattr(column, "indices") else lengths).as_py() or 0
            check_unpacked(characters, path)
            values[len(ids) : len(ids) + len(block)] = block
            ids += column.to_pylist()
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
        names = [str(metadata.schema.column(place).path).partition(".")[0] for place in range(metadata.num_columns)]
        values = sum(group.column(names.index(columns[0])).num_values for group in groups)
    check_unpacked(max(8 * values, sum(group.total_byte_size for group in groups)), path)


def _block(batch: Any, columns: list[str], path: Path) -> np.ndarray:
    """The values of some rows: of a single column of lists, or of a column for each dimension."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column, where = batch[columns[0]], f"{path}, column {columns[0]!r}"
    if len(columns) == 1 and isinstance(column, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        lengths = set(pc.unique(pc.list_value_length(column)).to_pylist())
        if len(lengths) != 1 or None in lengths:
            raise _lengths(lengths, where)
        flat = pc.list_flatten(column).to_numpy(zero_copy_only=False)
        return to_float32(_numeric(flat, where)).reshape(len(column), lengths.pop())
    values = np.empty((batch.num_rows, len(columns)), dtype=np.float32)
    for place, name in enumerate(columns):
        values[:, place] = to_float32(_numeric(batch[name].to_numpy(zero_copy_only=False), f"{path}, column {name!r}"))
    return values


def _lengths(lengths: Collection[int | None], where: object) -> DataError:
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
        expected, got = "a one-dimensional array of text", f"{ids.dtype}, shape {ids.shape}"
        raise DataError("ids are not strings", where=path, expected=expected, got=got)
    if dim is not None and values.ndim == 2 and values.shape[1] > dim:
        raise DataError("too many value columns", where=path, expected=f"at most {dim}", got=values.shape[1])
    values = to_float32(_numeric(values, path))
    missing = int(np.isnan(values).sum())
    if missing and strict:
        hint = "Without strict they become 0 and are counted"
        raise DataError("values are not numbers", where=path, got=f"NaN in {missing} places", hint=hint)
    if not missing:
        return make_embeddings(ids.tolist(), values, replaced={}, where=path, **names)
    row, place = np.argwhere(np.isnan(values))[0] if values.ndim == 2 else (0, 0)
    values = np.where(np.isnan(values), np.float32(0), values)
    made = make_embeddings(ids.tolist(), values, replaced={"missing": missing}, where=path, **names)
    column = repr(made.columns[place]) if made.columns else place
    return replace(made, first_replaced=f"id {made.ids[row]!r}, column {column}")


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


READERS: dict[str, Callable[[Path, bool, int | None], Embeddings]] = {
    ".parquet": read_parquet,
    ".npz": read_npz,
    ".npy": read_npy,
}
WRITERS: dict[str, Callable[[Embeddings, Path], None]] = {
    ".csv": write_csv,
    ".parquet": write_parquet,
    ".npz": write_npz,
    ".npy": write_npy,
}


def read_folder(folder: Path, *, strict: bool = False, dim: int | None = None) -> Embeddings:
    """The embeddings of one layer: its folder, or one around it that has no other layer."""
    place = find_embeddings(folder)
    if place.is_file():
        return read_embeddings(place, strict=strict, dim=dim)
    parts = [read_embeddings(file, strict=strict, dim=dim) for file in samples(place)]
    lengths = {part.dim for part in parts}
    if len(lengths) != 1:
        raise _lengths(lengths, place)
    replaced: Counter[str] = Counter()
    for part in parts:
        replaced.update(part.replaced)
    ids = [name for part in parts for name in part.ids]
    return make_embeddings(ids, np.concatenate([part.values for part in parts]), replaced=replaced, where=place)


def find_embeddings(folder: Path) -> Path:
    """The file with all samples, or the folder with a file for each."""
    unfinished = "embeddings_part_*.parquet"
    if any(folder.glob(unfinished)):
        raise DataError("TerraTorch's run did not end", where=folder, got=unfinished, hint="Run it again")
    present = [folder / name for name in WHOLE if (folder / name).is_file()]
    if samples(folder):
        present.append(folder)
    if len(present) == 1:
        return present[0]
    if present:
        got = _csv.shown([path.name if path != folder else f"*{SAMPLE}" for path in present])
        raise DataError("several sets of embeddings in a folder", where=folder, expected="one", got=got)
    layers = sorted(path for path in folder.glob("layer_*") if path.is_dir())
    if len(layers) > 1:
        got = _csv.shown([path.name for path in layers])
        raise DataError("several layers", where=folder, expected="the folder of one layer", got=got)
    if not layers:
        pictures = any(folder.glob("*.tif"))
        hint = "Run TerraTorch with output_format: neuco_csv" if pictures else ""
        expected = f"{' or '.join(WHOLE)}, or files *{SAMPLE}"
        raise DataError("no embeddings in the folder", where=folder, expected=expected, hint=hint)
    return find_embeddings(layers[0])


def samples(folder: Path) -> list[Path]:
    """The files of single samples, by name, so that the order of rows is that of no file system."""
    return sorted(path for path in folder.glob(f"*{SAMPLE}") if path.is_file())


def as_file(path: Path) -> Path:
    """The path itself or, for a folder of TerraTorch's, one file with all its samples, kept in the cache.

    A missing value is refused: in the new file nobody would see any more that there was one.
    """
    if not path.is_dir():
        return path
    embeddings = read_folder(path, strict=True)
    target = cache_dir() / "gathered" / embeddings.sha256 / f"{path.resolve().name}.npz"
    if not target.is_file():
        write_embeddings(embeddings, target)
    return target
