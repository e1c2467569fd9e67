"""Arrays and tables from a sandbox are measured before they are read or parsed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ci.extract import check_cubes
from ci.read_outputs import MOST_CELLS, MOST_TABLE_CELLS, read_array, read_table
from ci.stub_tree import LARGEST_IDS
from neuco_core.errors import DataError


def write(path: Path, shape: tuple[int, ...], size: int) -> Path:
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + size)  # zeros that take no room
    return path


def test_an_array_is_read_if_it_is_what_its_header_says(tmp_path: Path) -> None:
    path = write(tmp_path / "x.npy", (3, 5), 60)
    assert read_array(path, 3).shape == (3, 5)
    with pytest.raises(DataError, match="expected 4 rows"):
        read_array(path, 4)
    with pytest.raises(DataError, match="size does not match its header"):
        read_array(write(path, (3, 10**12), 60), 3)


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[print]] * 3, dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="not a table of floats"):
        read_array(tmp_path / "x.npy", 3)


def test_an_array_of_too_many_cells_is_not_read(tmp_path: Path) -> None:
    columns = MOST_CELLS // 3 + 1
    with pytest.raises(DataError, match="too large; expected at most 250000000 cells"):
        read_array(write(tmp_path / "x.npy", (3, columns), 12 * columns), 3)


def test_a_table_of_too_many_cells_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"id,label\na,1\n")
    assert read_table(path) == b"id,label\na,1\n"
    path.write_bytes(b"," * (MOST_TABLE_CELLS + 1))
    with pytest.raises(DataError, match="too large; expected at most 20000000 cells"):
        read_table(path)


@pytest.mark.parametrize(
    ("ids", "shape", "size", "words"),
    [
        (["a", "b"], (2, 1, 1, 4, 4), 128, ""),
        (["a", "a"], (2, 1, 1, 4, 4), 128, "not unique"),
        (["a", ""], (2, 1, 1, 4, 4), 128, "non-empty strings"),
        ([["a"], "b"], (2, 1, 1, 4, 4), 128, "non-empty strings"),
        ("ab", (2, 1, 1, 4, 4), 128, "must be a list"),
        ([], (0, 1, 1, 4, 4), 0, "none"),
        (["x" * LARGEST_IDS], (1, 1, 1, 4, 4), 64, "too large"),
        (["a", "b"], (3, 1, 1, 4, 4), 192, "not an array of cubes"),
        (["a", "b"], (2, 1, 16), 128, "not an array of cubes"),
        (["a", "b"], (2, 1, 1, 4, 10**12), 128, "does not match its header"),
    ],
)
def test_cubes_are_checked_before_anybody_reads_them(
    ids: Any, shape: tuple[int, ...], size: int, words: str, tmp_path: Path
) -> None:
    text = json.dumps({"ids": ids, "bands": ["grey/0"], "seasons": ["scene"], "version": "1"})
    (tmp_path / "cubes.json").write_text(text)
    write(tmp_path / "cubes.npy", shape, size)
    np.save(tmp_path / "plain.npy", np.zeros((shape[0], 3), np.float32))
    if not words:
        check_cubes(tmp_path)
        np.save(tmp_path / "plain.npy", np.zeros((shape[0] + 1, 3), np.float32))
        words = "not a table of floats"
    with pytest.raises(DataError, match=words):
        check_cubes(tmp_path)
