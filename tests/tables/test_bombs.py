"""Small files that would fill the memory or take minutes: refused by what they declare, before they are unpacked."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neuco_core.errors import DataError
from neuco_core.tables import csv, limits
from neuco_core.tables.embeddings import make_embeddings, read_embeddings, write_embeddings
from neuco_core.tables.labels import read_labels

ROWS, DIM = 20_000, 64
UNPACKED = "too many bytes when unpacked; expected at most"


@pytest.fixture(autouse=True)
def _little_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """A smaller allowance, so that the bombs of the tests need not be gigabytes."""
    monkeypatch.setattr(limits, "FREE", 1 << 20)


def npz(path: Path, method: int = zipfile.ZIP_DEFLATED, **arrays: np.ndarray) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array)
            archive.writestr(f"{name}.npy", buffer.getvalue())


def parquet(path: Path, ids: list[str], **columns: object) -> None:
    pq.write_table(pa.table({"id": pa.array(ids), **columns}), path)


ONE, ZERO = np.array(["a"]), np.zeros(ROWS, np.float32)
LISTS = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(ROWS * DIM, np.float32)), DIM)
BOMBS: dict[str, Callable[[Path], None]] = {
    "constant.npz": lambda path: npz(path, ids=np.array(["0", "1"]), values=np.zeros((ROWS, DIM), np.float32)),
    "small integers.npz": lambda path: npz(path, ids=ONE, values=np.zeros((1000, 1000), np.int8)),
    "long ids.npz": lambda path: npz(path, ids=np.array(["a" * 1_000_000, "b"]), values=np.zeros((2, 1), np.float32)),
    "third member.npz": lambda path: npz(path, ids=ONE, values=np.ones((1, 1)), other=np.zeros((ROWS, DIM))),
    # Equal ids are refused too, but only after all of them were read.
    "constant.parquet": lambda path: parquet(path, ["a"] * ROWS, **{str(n): ZERO for n in range(DIM)}),
    "lists.parquet": lambda path: parquet(path, ["a"] * ROWS, embedding=LISTS),
    "long ids.parquet": lambda path: parquet(path, ["a" * 10_000] * 500, **{"0": np.zeros(500)}),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_file_that_unpacks_to_far_more_than_it_is_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    BOMBS[name](path)
    with pytest.raises(DataError, match=UNPACKED) as caught:
        read_embeddings(path)
    assert str(path) in str(caught.value)
    assert f"from {path.stat().st_size}" in str(caught.value)


@pytest.mark.parametrize("suffix", ["npz", "npy", "parquet"])
def test_what_is_as_large_as_its_file_is_read_whatever_its_size(tmp_path: Path, suffix: str) -> None:
    """Four times the allowance: the limit is a ratio, and embeddings of a real dataset pass."""
    values = np.random.default_rng(0).normal(size=(1024, 1024)).astype(np.float32)
    write_embeddings(make_embeddings(list(map(str, range(1024))), values), tmp_path / f"x.{suffix}")
    np.testing.assert_array_equal(read_embeddings(tmp_path / f"x.{suffix}").values, values)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_compression_that_ignores_the_declared_size_is_refused(tmp_path: Path, method: int) -> None:
    npz(tmp_path / "x.npz", method, ids=np.array(["a"]), values=np.ones((1, 1), np.float32))
    with pytest.raises(DataError, match=f"bad compression of 'ids.npy'; .* got method {method}"):
        read_embeddings(tmp_path / "x.npz")


@pytest.mark.parametrize(("descr", "shape"), [("<f4", (1 << 40, 1 << 10)), ("<U0", (1 << 40,)), ("<U0", (1 << 20,))])
@pytest.mark.parametrize("suffix", ["npz", "npy"])
def test_a_header_that_declares_more_than_there_is_is_refused(
    tmp_path: Path, suffix: str, descr: str, shape: tuple[int, ...]
) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": shape})
    path = tmp_path / f"x.{suffix}"
    (tmp_path / "x.ids.txt").write_text("a\n")
    if suffix == "npy":
        path.write_bytes(header.getvalue())
    else:
        with zipfile.ZipFile(path, "w") as archive:
            for name in ("ids.npy", "values.npy"):
                archive.writestr(name, header.getvalue())
    with pytest.raises(DataError, match="array is larger than its file; expected at most 128 bytes, got shape"):
        read_embeddings(path)


def test_text_in_the_place_of_numbers_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": ["a", "b"], "0": ["x" * 5_000_000] * 2}), path)
    with pytest.raises(DataError, match="column '0': values are not numbers; got type string"):
        read_embeddings(path)


@pytest.mark.parametrize("read", [read_embeddings, lambda path: read_labels(path, "regression")])
def test_a_table_of_a_hundred_thousand_columns_is_refused(tmp_path: Path, read: Callable[[Path], object]) -> None:
    path = tmp_path / "x.csv"
    header = ",".join(["id", "label", *map(str, range(100_000))])
    path.write_text(f"{header}\na,1{',1' * 100_000}\nb,2{',2' * 100_000}\n")
    with pytest.raises(DataError, match="too many columns; expected at most 16384, got 100002"):
        read(path)


def test_arrays_have_the_same_limit(tmp_path: Path) -> None:
    npz(tmp_path / "x.npz", zipfile.ZIP_STORED, ids=ONE, values=np.ones((1, 16_385), np.float32))
    with pytest.raises(DataError, match="too many value columns; expected at most 16384, got 16385"):
        read_embeddings(tmp_path / "x.npz")


def test_as_many_columns_as_are_allowed_are_read_and_blank_lines_below_need_no_memory(tmp_path: Path) -> None:
    """Lines times columns would be 64 GB."""
    count = csv.MAX_COLUMNS - 1
    path = tmp_path / "x.csv"
    path.write_text(",".join(["id", *map(str, range(count))]) + "\n" + f"a{',1' * count}\n" + "\n" * 1_000_000)
    assert read_embeddings(path).values.shape == (1, count)
