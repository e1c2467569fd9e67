"""Embeddings in memory, in files other than CSV, and in folders as TerraTorch's embedding task writes them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neuco_core.errors import DataError
from neuco_core.tables.embeddings import Embeddings, make_embeddings, read_embeddings, write_embeddings
from neuco_core.tables.embeddings_files import as_file

VALUES = np.array([[1, 2], [3, 4]], dtype=np.float32)
HALVES = [list(row) for row in VALUES.astype(np.float16)]  # pyarrow 16 makes no float16 of other numbers
MADE = make_embeddings(["a", "b"], VALUES)


@pytest.mark.parametrize(
    ("ids", "values", "error"),
    [
        (["a"], VALUES, r"one row of values for each of 1 ids, got shape \(2, 2\)"),
        (["a", "b"], VALUES[0], "values of the wrong shape"),
        (["a", "b"], VALUES[:, :0], "values of the wrong shape"),
        ([], VALUES[:0], "values of the wrong shape"),
        (["a", "a.zarr"], VALUES, "rows 1 and 2: duplicate id 'a'"),
        (["a", " "], VALUES, "row 2: no id"),
        (["a", 7], VALUES, "row 2: id is not a string; got 7"),
        (["a", "b"], np.array([["1", "2"], ["3", "4"]]), "values are not numbers"),
        (["a", "b"], VALUES + 0j, "values are not numbers; got type complex64"),
        (["a", "b"], np.array([[1, 2], [3, np.nan]]), "id 'b', dimension 1: value is not finite"),
        (["a", "b"], np.array([[1, 1e300], [3, 4]]), "id 'a', dimension 1: value is not finite as float32"),
    ],
)
def test_what_cannot_be_embeddings(ids: Any, values: np.ndarray, error: str) -> None:
    with pytest.raises(DataError, match=error):
        make_embeddings(ids, values)


def test_what_is_made() -> None:
    made = make_embeddings(["x.zarr.zip", "y"], np.asfortranarray(VALUES.astype(np.float64)))
    assert (made.ids, len(made), made.dim, made.replaced) == (("x", "y"), 2, 2, {})
    assert made.values.dtype == np.float32
    assert made.values.flags.c_contiguous
    assert made.sha256 == make_embeddings(("x", "y"), VALUES.astype(np.int8)).sha256
    others = [make_embeddings(["y", "x"], VALUES), make_embeddings(["x", "y"], VALUES.T), MADE]
    assert len({made.sha256, *(other.sha256 for other in others)}) == 4


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz", "npy", "CSV"])
def test_every_format_gives_the_same_hash(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "deep" / f"x.{suffix}"
    write_embeddings(MADE, path)
    assert read_embeddings(path).sha256 == MADE.sha256
    write_embeddings(MADE, path)
    written = path.read_bytes()
    assert read_embeddings(path, dim=2, strict=True).values.tolist() == VALUES.tolist()
    with pytest.raises(DataError, match=r"too many value columns; expected at most 1, got 2 \(.*x\.\w+\)"):
        read_embeddings(path, dim=1)
    write_embeddings(MADE, path)
    if suffix != "npz":  # a zip file holds the time of writing
        assert path.read_bytes() == written
    assert {file.name for file in path.parent.iterdir()} <= {path.name, "x.ids.txt"}


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"unknown file format; expected one of \.csv, .*, got \.xlsx"):
        write_embeddings(MADE, tmp_path / "x.xlsx")
    path = tmp_path / "x.npy"
    write_embeddings(MADE, path)
    with pytest.raises(DataError, match="line break"):
        write_embeddings(make_embeddings(["a\nb", "c"], VALUES), path)
    assert read_embeddings(path).sha256 == MADE.sha256
    with pytest.raises(DataError, match="cannot be written"):
        write_embeddings(MADE, path / "below-a-file.npz")


@pytest.mark.parametrize("suffix", ["parquet", "npz", "npy"])
def test_missing_values_are_counted(tmp_path: Path, suffix: str) -> None:
    values = np.array([[1, np.nan], [np.nan, 4]])
    path = tmp_path / f"x.{suffix}"
    put(path, ["a", "b"], values)
    embeddings = read_embeddings(path)
    assert embeddings.replaced == {"missing": 2}
    assert embeddings.values.tolist() == [[1, 0], [0, 4]]
    with pytest.raises(DataError, match="NaN in 2 places"):
        read_embeddings(path, strict=True)
    put(path, ["a", "b"], np.array([[1.0, np.inf], [3.0, 4.0]]))
    with pytest.raises(DataError, match=r"id 'a', dimension 1: value is not finite"):
        read_embeddings(path)


def put(path: Path, ids: list[str], values: np.ndarray) -> None:
    if path.suffix == ".npz":
        np.savez(path, ids=np.array(ids), values=values)
    elif path.suffix == ".npy":
        np.save(path, values)
        path.with_name("x.ids.txt").write_text("\r\n".join(ids))
    else:
        pq.write_table(pa.table({"id": ids, "0": values[:, 0], "1": values[:, 1]}), path)


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ({"id": ["a", "b"], "1": [2.0, 4.0], "0": [1, 3], "x": ["p", "q"]}, ""),
        ({"id": ["a", "b"], "emb": [[1, 2], [3, 4]]}, ""),
        ({"id": ["a", "b"], "u": [1, 3], "v": [2, 4]}, ""),
        ({"id": pa.array(["a", "b"], pa.large_string()), "e": pa.array(HALVES, pa.list_(pa.float16(), 2))}, ""),
        ({"0": [1, 2]}, "no column named 'id'"),
        ({"id": [1, 2], "0": [1, 2]}, "column 'id': ids are not strings; expected strings, got int64"),
        ({"id": ["a", None], "0": [1, 2]}, "row 2: no id; got None"),
        ({"id": ["a", "a"], "0": [1, 2]}, "rows 1 and 2: duplicate id 'a'"),
        ({"id": ["a", "b"], "0": ["x", "y"]}, "column '0': values are not numbers"),
        ({"id": ["a", "b"], "0": [1, 2], "2": [1, 2]}, "got no column 1"),
        ({"id": ["a", "b"], "e": [[1, 2], [3]]}, "column 'e': rows of different lengths; .* got lengths 1, 2"),
        ({"id": ["a", "b"], "e": [[1, 2], None]}, "column 'e': rows of different lengths; .* got lengths 2, None"),
        ({"id": pa.array([], pa.string()), "0": pa.array([], pa.float32())}, "values of the wrong shape"),
    ],
)
def test_parquet(tmp_path: Path, columns: dict[str, Any], error: str) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table(columns), path)
    if error:
        with pytest.raises(DataError, match=error) as raised:
            read_embeddings(path)
        assert str(path) in str(raised.value)
    else:
        assert read_embeddings(path).sha256 == MADE.sha256


def test_parquet_in_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuco_core.tables.embeddings_files.ROWS", 3)
    values = np.arange(20, dtype=np.float32).reshape(10, 2)
    made = make_embeddings(list("abcdefghij"), values)
    write_embeddings(made, tmp_path / "x.parquet")
    assert read_embeddings(tmp_path / "x.parquet").sha256 == made.sha256
    lists = [[1.0, 2.0]] * 3 + [[1.0]] * 3
    pq.write_table(pa.table({"id": list("abcdef"), "e": lists}), tmp_path / "y.parquet")
    with pytest.raises(DataError, match="rows of different lengths; expected one length, got lengths 1, 2"):
        read_embeddings(tmp_path / "y.parquet")


class Trap:
    """Opens a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    trap = np.array([Trap(sprung)], dtype=object)
    np.savez(tmp_path / "x.npz", ids=trap, values=VALUES)
    np.save(tmp_path / "x.npy", trap, allow_pickle=True)
    with pytest.raises(DataError, match=r"an NPY file has no ids; expected a file .*x\.ids\.txt"):
        read_embeddings(tmp_path / "x.npy")
    (tmp_path / "x.ids.txt").write_text("a\n")
    (tmp_path / "y.npz").write_bytes(pickle.dumps(Trap(sprung)))
    for name in ("x.npz", "x.npy", "y.npz"):
        with pytest.raises(DataError, match="damaged NP"):
            read_embeddings(tmp_path / name)
    assert not sprung.exists()


@pytest.mark.parametrize(
    ("arrays", "error"),
    [
        ({"values": VALUES}, "expected arrays named 'ids' and 'values', got 'values'"),
        ({"ids": np.array([1, 2]), "values": VALUES}, "ids are not strings"),
        ({"ids": np.array([["a", "b"]]), "values": VALUES}, "ids are not strings"),
        ({"ids": np.array(["a", "b"]), "values": np.array([["x"], ["y"]])}, "values are not numbers"),
    ],
)
def test_npz_with_other_things(tmp_path: Path, arrays: dict[str, Any], error: str) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(DataError, match=rf"{error}.*x\.npz"):
        read_embeddings(tmp_path / "x.npz")


@pytest.mark.parametrize("suffix", ["parquet", "npz", "npy"])
def test_broken_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    write_embeddings(MADE, path)
    whole = path.read_bytes()
    for data in (b"", b"\x89PNG\r\n", whole[: len(whole) // 2], whole[:-3], b"id,0\na,1\n"):
        path.write_bytes(data)
        with pytest.raises(DataError, match=r"damaged|not embeddings") as raised:
            read_embeddings(path)
        assert str(path) in str(raised.value)
        assert "\n" not in str(raised.value)


LAYER = np.random.default_rng(4).standard_normal((3, 5)).astype(np.float32)
LAYER_IDS = ("a", "b", "c")


def sample(folder: Path, name: str, values: object, **more: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame([{"file_id": f"{name}.zarr", "embedding": values, **more}]).to_parquet(
        folder / f"{name}.zarr_embedding.parquet", index=False
    )


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    """A file for each sample, with metadata beside the numbers."""
    for name, row in zip(reversed(LAYER_IDS), LAYER[::-1], strict=True):
        sample(tmp_path / "out" / "layer_00", name, row.tolist(), crs="EPSG:32633", center_lat=1.5, geometry=b"\x01")
    return tmp_path / "out" / "layer_00"


def same(embeddings: Embeddings) -> bool:
    return embeddings.ids == LAYER_IDS and np.array_equal(embeddings.values, LAYER)


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
    frame = pd.DataFrame(LAYER, columns=[str(number) for number in range(1, 6)])
    frame.insert(0, "id", LAYER_IDS)
    frame.to_csv(tmp_path / "layer_00" / "embeddings.csv", index=False)
    assert same(read_embeddings(tmp_path))
    (tmp_path / "joint").mkdir()
    joint = {"time": [1, 2, 3], "file_id": [f"{name}.zarr" for name in LAYER_IDS], "embedding": LAYER.tolist()}
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
