"""Tests of the dataset's eleven tasks: what each declares, and its labels without and with a copy of the dataset."""
# ruff: noqa: S101 - tests assert

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuco_core import Task, load_task
from neuco_core.errors import UnpinnedError
from neuco_core.fetch.links import variable
from neuco_tasks.ssl4eo_s12_downstream import common, fake


def contract(task_id: str, *files: str, r2: float | None, **declared: Any) -> Callable[..., None]:
    """A test function for one task: its declaration, no data at all, and each spelling of its label file."""
    declared = {"kind": "regression", "metric": "r2", "control": False, **declared}

    @pytest.mark.parametrize("case", ["declaration", "no data", *files])
    def test_contract(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        if case == "declaration":
            check_declaration(load_task(task_id), r2, declared)
        elif case == "no data":
            check_without_data(task_id, tmp_path, monkeypatch)
        else:
            check_linked_copy(task_id, case, tmp_path, monkeypatch)

    return test_contract


def check_declaration(task: Task, r2: float | None, declared: dict[str, Any]) -> None:
    """The facts of the dataset's card and of the paper's Table 4."""
    assert {name: getattr(task, name) for name in declared} == declared
    assert task.dataset == common.DATASET
    assert task.license == "CC-BY-4.0"
    assert "arXiv:2510.17914" in task.citation
    assert not task.source.pinned, "a hash must come from somebody who has read the file"
    assert (task.baseline.score if task.baseline else None) == r2
    if task.baseline:
        assert task.baseline.method == "averaging"
        assert task.baseline.protocol == "neuco-2025+k=50,lr=0.0001"
        assert 0.1 <= task.baseline.tolerance < 1


def check_without_data(task_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading works with no network; asking for labels says which command to run."""
    _isolate(tmp_path, monkeypatch)
    monkeypatch.setenv("NEUCO_OFFLINE", "1")
    task = load_task(task_id)
    with pytest.raises(UnpinnedError, match=f"neuco data pin {task_id}`"):
        task.labels()


def check_linked_copy(task_id: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a local copy the labels are read as published: extra columns ignored, order kept, nothing dropped."""
    _isolate(tmp_path, monkeypatch)
    ids = fake.sample_ids(31)
    fake.write_labels(tmp_path / "copy" / "labels" / file, ids)
    monkeypatch.setenv(variable(common.DATASET), str(tmp_path / "copy"))
    labels = load_task(task_id).labels()
    assert list(labels.ids) == ids
    assert not labels.dropped
    expected = [round(fake.truth(index), 6) for index in range(31)]
    if labels.kind == "classification":
        expected = [float(value > 0.5) for value in expected]
    assert labels.values.tolist() == expected


def _isolate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the person who runs the tests may help: no cache, no links, no pins."""
    for name in ("CACHE", "CONFIG", "PINS"):
        monkeypatch.setenv(f"NEUCO_{name}", str(tmp_path / name.lower()))
    monkeypatch.delenv(variable(common.DATASET), raising=False)
    # Pins that a user has made in this checkout are the user's; these tests ask what happens before that.
    monkeypatch.setattr("neuco_core.fetch.fetch.shipped_pins", lambda: tmp_path / "no-pins.json")
