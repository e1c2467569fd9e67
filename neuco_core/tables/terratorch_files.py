"""What TerraTorch's ``EmbeddingGenerationTask`` leaves behind, read as it is.

For each layer it writes a folder ``layer_00`` with ``embeddings.csv`` (its format ``neuco_csv``), with
``embeddings.parquet`` (``parquet_joint``), or with a file ``NAME_embedding.parquet`` for each sample (``parquet``).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from neuco_core.errors import DataError
from neuco_core.tables.csv import shown
from neuco_core.tables.embeddings import Embeddings, make_embeddings, read_embeddings, write_embeddings

KEY, VALUES = "file_id", "embedding"  # its columns; others are metadata
WHOLE = ("embeddings.csv", "embeddings.parquet")
SAMPLE = "_embedding.parquet"


def has_columns(names: Sequence[str]) -> bool:
    """Whether a Parquet file has TerraTorch's columns instead of ``id``."""
    return "id" not in names and KEY in names and VALUES in names


def read_folder(folder: Path, *, strict: bool = False, dim: int | None = None) -> Embeddings:
    """The embeddings of one layer: its folder, or one around it that has no other layer."""
    place = find_embeddings(folder)
    if place.is_file():
        return read_embeddings(place, strict=strict, dim=dim)
    files = samples(place)
    parts = [read_embeddings(file, strict=strict, dim=dim) for file in files]
    lengths = {part.dim for part in parts}
    if len(lengths) != 1:
        got = ", ".join(map(str, sorted(lengths)))
        raise DataError("samples of different lengths", where=place, expected="one length", got=f"lengths {got}")
    replaced: dict[str, int] = {}
    for part in parts:
        replaced |= {reason: replaced.get(reason, 0) + count for reason, count in part.replaced.items()}
    ids = [name for part in parts for name in part.ids]
    return make_embeddings(ids, np.concatenate([part.values for part in parts]), replaced=replaced, where=place)


def find_embeddings(folder: Path) -> Path:
    """The file with all samples, or the folder with a file for each."""
    if any(folder.glob("embeddings_part_*.parquet")):
        raise DataError(
            "TerraTorch's run did not end", where=folder, got="embeddings_part_*.parquet", hint="Run it again"
        )
    present = [folder / name for name in WHOLE if (folder / name).is_file()] + [folder][: len(samples(folder)[:1])]
    if len(present) == 1:
        return present[0]
    if present:
        names = shown([path.name if path != folder else f"*{SAMPLE}" for path in present])
        raise DataError("several sets of embeddings in a folder", where=folder, expected="one", got=names)
    layers = sorted(path for path in folder.glob("layer_*") if path.is_dir())
    if len(layers) > 1:
        got = shown([path.name for path in layers])
        raise DataError("several layers", where=folder, expected="the folder of one layer", got=got)
    if not layers:
        pictures = any(folder.glob("*.tif"))
        hint = "Run TerraTorch with output_format: neuco_csv" if pictures else ""
        expected = f"{' or '.join(WHOLE)}, or files *{SAMPLE}"
        raise DataError("no embeddings in the folder", where=folder, expected=expected, hint=hint)
    return find_embeddings(layers[0])


def samples(folder: Path) -> list[Path]:
    """The files of single samples, by name, so that the order of rows is that of no file system."""
    with os.scandir(folder) as entries:
        return sorted(Path(entry.path) for entry in entries if entry.name.endswith(SAMPLE) and entry.is_file())


def as_file(path: Path) -> Path:
    """The path itself or, for a folder of TerraTorch's, one file with all its samples, kept in the cache.

    A missing value is refused: in the new file nobody would see any more that there was one.
    """
    if not path.is_dir():
        return path
    from neuco_core.fetch.cache import cache_dir

    embeddings = read_folder(path, strict=True)
    target = cache_dir() / "gathered" / embeddings.sha256 / f"{path.resolve().name}.npz"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:  # so that nobody reads half of it
            made = Path(folder) / "made.npz"
            write_embeddings(embeddings, made)
            made.replace(target)
    return target
