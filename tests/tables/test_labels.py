"""From a task to its labels."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from neuco_core.errors import ChecksumError, DataError, UnpinnedError
from neuco_core.specs import Remote, Task
from neuco_core.tables.labels import labels_from_table, read_labels

DATA = b"id,label,tile\nb,2,x\nc,,y\na,1,y\n"


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No cache, links or pins of the person who runs the tests."""
    for name in ("CACHE", "CONFIG", "PINS"):
        monkeypatch.setenv(f"NEUCO_{name}", str(tmp_path / name.lower()))


def make_task(path: Path, data: bytes = DATA, **fields: Any) -> Task:
    path.write_bytes(data)
    source = Remote(path.as_uri(), sha256=hashlib.sha256(data).hexdigest(), size=len(data))
    return Task(**{"id": "soil", "dataset": "ground", "kind": "regression", "source": source, **fields})


def test_labels_of_a_task(tmp_path: Path) -> None:
    labels = make_task(tmp_path / "x.csv", group_column="tile").labels()
    assert labels.ids == ("b", "a"), "in the order of the file"
    assert labels.values.tolist() == [2.0, 1.0]
    assert labels.values.dtype == np.float64
    assert labels.groups is not None
    assert labels.groups.tolist() == ["x", "y"]
    assert labels.dropped == {"empty_label": 1}
    assert labels.verified
    assert read_labels(tmp_path / "x.csv", "regression").task == "x", "after the file if nobody says otherwise"
    assert (labels.task, labels.kind, len(labels)) == ("soil", "regression", 2)


def test_a_linked_copy_is_checked_against_a_pin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Remote("hf://datasets/lab/ground@main/x.csv", sha256=hashlib.sha256(DATA).hexdigest())
    task = make_task(tmp_path / "x.csv", source=source)
    unpinned = replace(task, source=Remote("hf://datasets/lab/ground@main/x.csv"))
    with pytest.raises(UnpinnedError):
        unpinned.labels()
    monkeypatch.setenv("NEUCO_DATASET_GROUND", str(tmp_path))
    assert task.labels().verified
    assert not unpinned.labels().verified, "it needs no pin, and is not called verified"
    (tmp_path / "x.csv").write_bytes(DATA + b"d,4,x\n")
    with pytest.raises(ChecksumError):
        task.labels()


def test_a_loader_gets_the_verified_file_and_its_table_is_checked(tmp_path: Path) -> None:
    def load(path: Path) -> pd.DataFrame:
        table = pd.read_csv(path, sep=";", decimal=",")
        return table.rename(columns={"name": "id", "pH": "label"})

    task = make_task(tmp_path / "x.txt", b"name;pH\na;6,5\nb;\nc;7\n", loader=load)
    labels = task.labels()
    assert labels.ids == ("a", "c")
    assert labels.values.tolist() == [6.5, 7.0]
    assert labels.dropped == {"empty_label": 1}


@pytest.mark.parametrize(
    ("table", "error"),
    [
        (None, "loader of task 'soil' failed: AttributeError.*expected a mapping of columns"),
        ({"id": ["a", "b"]}, "no column 'label'"),
        ({"id": ["a", "a"], "label": [1.0, 2.0]}, "rows 1 and 2: duplicate id 'a'"),
        ({"id": [1, 2], "label": [1.0, 2.0]}, "row 1: id is not a string; got 1"),
        ({"id": ["a", None], "label": [1.0, 2.0]}, "row 2: no id"),
        ({"id": ["a", "b"], "label": [1.0, np.inf]}, "row 2, column 'label': label is not finite"),
        ({"id": ["a", "b"], "label": [1.0, object()]}, "row 2, column 'label': label is not a number"),
        ({"id": ["a", "b"], "label": [1.0, 10**400]}, "row 2, column 'label': label is not a number"),
        ({"id": ["a", "b"], "label": [1.0]}, "columns of different lengths"),
    ],
)
def test_a_loader_is_not_trusted(tmp_path: Path, table: object, error: str) -> None:
    task = make_task(tmp_path / "x.csv", loader=lambda path: table)
    with pytest.raises(DataError, match=error) as raised:
        task.labels()
    assert "x.csv" in str(raised.value)


@pytest.mark.parametrize("end", ["raise KeyboardInterrupt", "sys.exit(0)", "os._exit(0)"])
def test_a_loader_that_ends_the_process_is_named(tmp_path: Path, end: str) -> None:
    task = make_task(tmp_path / "x.csv", loader=lambda path: exec(f"import os, sys\n{end}"))
    with pytest.raises(DataError, match=r"the loader of task 'soil' failed: (Keyboard|System|Runtime)"):
        task.labels()


def test_every_word_of_a_loader_for_missing_is_understood(tmp_path: Path) -> None:
    table = {"id": list("abcdefg"), "label": [1.0, None, float("nan"), np.float32("nan"), pd.NA, "", 2.0]}
    labels = make_task(tmp_path / "x.csv", loader=lambda path: table).labels()
    assert labels.ids == ("a", "g")
    assert labels.dropped == {"empty_label": 5}


def test_views() -> None:
    table: dict[str, list[Any]] = {"id": ["01", "b", "c"], "u": [1, 2, 3], "v": [3.0, 2.0, 1.0]}
    table["tile"] = ["x", "x", "y"]
    labels = labels_from_table(table, "regression", task="t", columns=("u", "v"), group_column="tile")
    frame = labels.frame()
    assert frame.index.tolist() == ["01", "b", "c"]
    assert frame.columns.tolist() == ["u", "v", "group"]
    assert frame.loc["01", "v"] == 3.0
    array = labels.xarray()
    assert array.dims == ("id", "output")
    assert array.sel(id="c", output="u") == 3
    assert array.coords["group"].values.tolist() == ["x", "x", "y"]
    single = labels_from_table(table, "regression", columns=("u",))
    assert single.xarray().dims == ("id",)
    assert single.frame().columns.tolist() == ["u"]


def test_the_hash_tells_content_apart() -> None:
    base: dict[str, list[Any]] = {"id": ["a", "b"], "label": [1.0, 2.0], "g": ["x", "y"]}
    variants = [
        labels_from_table(base, "regression"),
        labels_from_table(base, "regression", group_column="g"),
        labels_from_table({**base, "id": ["a", "c"]}, "regression"),
        labels_from_table({**base, "label": [1.0, np.nextafter(2.0, 3.0)]}, "regression"),
        labels_from_table({**base, "g": ["y", "x"]}, "regression", group_column="g"),
    ]
    assert len({labels.sha256 for labels in variants}) == len(variants)
    zero = [labels_from_table({**base, "label": [value, 2.0]}, "regression").sha256 for value in (0.0, -0.0)]
    assert zero[0] == zero[1]
