"""Folders as TerraTorch's embedding task writes them; ``tests/models`` has some that it wrote itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from neuco_core.errors import DataError
from neuco_core.tables.embeddings import Embeddings, read_embeddings
from neuco_core.tables.embeddings_files import as_file

VALUES = np.random.default_rng(4).standard_normal((3, 5)).astype(np.float32)
IDS = ("a", "b", "c")


def sample(folder: Path, name: str, values: object, **more: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame([{"file_id": f"{name}.zarr", "embedding": values, **more}]).to_parquet(
        folder / f"{name}.zarr_embedding.parquet", index=False
    )


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    """A file for each sample, with metadata beside the numbers."""
    for name, row in zip(reversed(IDS), VALUES[::-1], strict=True):
        sample(tmp_path / "out" / "layer_00", name, row.tolist(), crs="EPSG:32633", center_lat=1.5, geometry=b"\x01")
    return tmp_path / "out" / "layer_00"


def same(embeddings: Embeddings) -> bool:
    return embeddings.ids == IDS and np.array_equal(embeddings.values, VALUES)


def test_a_file_for_each_sample(layer: Path) -> None:
    assert same(read_embeddings(layer))
    assert same(read_embeddings(layer.parent))
    one = read_embeddings(layer / "b.zarr_embedding.parquet")
    assert (one.ids, one.ignored) == (("b",), ("crs", "center_lat", "geometry"))
    gathered = as_file(layer.parent)
    assert (gathered.name, same(read_embeddings(gathered))) == ("out.npz", True)
    assert as_file(layer.parent) == gathered
    assert as_file(gathered) is gathered


def test_one_file_for_all(tmp_path: Path) -> None:
    (tmp_path / "layer_00").mkdir()
    frame = pd.DataFrame(VALUES, columns=[str(number) for number in range(1, 6)])
    frame.insert(0, "id", IDS)
    frame.to_csv(tmp_path / "layer_00" / "embeddings.csv", index=False)
    assert same(read_embeddings(tmp_path))
    (tmp_path / "joint").mkdir()
    joint = {"time": [1, 2, 3], "file_id": [f"{name}.zarr" for name in IDS], "embedding": VALUES.tolist()}
    pd.DataFrame(joint).to_parquet(tmp_path / "joint" / "embeddings.parquet", index=False)
    assert same(read_embeddings(tmp_path / "joint"))


def test_what_cannot_be_read_says_why(layer: Path, tmp_path: Path) -> None:
    sample(tmp_path / "tokens", "a", [[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(DataError, match=r"embeddings are not vectors.*embedding_pooling: mean"):
        read_embeddings(tmp_path / "tokens")
    sample(tmp_path / "gap", "a", [1.0, float("nan")])
    assert read_embeddings(tmp_path / "gap").replaced == {"missing": 1}
    with pytest.raises(DataError, match="not numbers"):
        as_file(tmp_path / "gap")
    sample(layer.parent / "layer_01", "a", [1.0])
    with pytest.raises(DataError, match=r"several layers.*'layer_00', 'layer_01'"):
        read_embeddings(layer.parent)
    sample(layer, "d", [1.0])
    with pytest.raises(DataError, match=r"different lengths.*lengths 1, 5"):
        read_embeddings(layer)
    (layer / "embeddings.csv").write_text("id,1\na,1\n")
    with pytest.raises(DataError, match="several sets of embeddings"):
        read_embeddings(layer)
    (layer / "embeddings_part_000000.parquet").touch()
    with pytest.raises(DataError, match="run did not end"):
        read_embeddings(layer)
    (tmp_path / "maps").mkdir()
    (tmp_path / "maps" / "a_embedding.tif").touch()
    with pytest.raises(DataError, match=r"no embeddings in the folder.*neuco_csv"):
        read_embeddings(tmp_path / "maps")
