"""What studies start from: labels loaded once, and a reason for every task that is left out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core import Remote, Task, load_protocol
from neuco_core.runs.sources import FileSource
from neuco_core.studies.compare import compare_tasks
from neuco_core.studies.labels_for import gather, grouped
from neuco_extensions.rate.ablate import Variant, ablate

IDS = [f"s{i}" for i in range(60)]
VALUES = np.random.default_rng(0).standard_normal((60, 4))


@pytest.fixture
def files(tmp_path: Path) -> tuple[FileSource, FileSource]:
    """Embeddings that hold the label, and noise."""
    for name, values in (("good", VALUES), ("noise", VALUES[::-1])):
        np.savez(tmp_path / f"{name}.npz", ids=np.array(IDS), values=values.astype("float32"))
    return FileSource(tmp_path / "good.npz"), FileSource(tmp_path / "noise.npz")


def task(folder: Path, loader: Callable[..., Any] | None = None, **fields: Any) -> Task:
    path = folder / "labels.csv"
    path.write_text("id,label\n" + "".join(f"{name},{row[0]:.6f}\n" for name, row in zip(IDS, VALUES, strict=True)))
    source = Remote(path.as_uri(), hashlib.sha256(path.read_bytes()).hexdigest())
    return Task(**{"id": "ph", "dataset": "soil", "kind": "regression", "source": source, "loader": loader, **fields})


def test_labels_are_loaded_once_for_a_whole_study(files: tuple[FileSource, FileSource], tmp_path: Path) -> None:
    calls = []

    def loader(path: Path) -> dict[str, list[Any]]:
        calls.append(path)
        return {"id": IDS, "label": VALUES[:, 0].tolist()}

    protocol = load_protocol("ridge+k=4")
    (pair,) = compare_tasks(*files, [(protocol, [task(tmp_path, loader)])])
    assert (pair.status, len(calls)) == ("ok", 1)
    (item,) = gather([task(tmp_path, loader)], files[0])
    assert item.labels is not None
    points = list(ablate(files[0].read(), [(item.task, item.labels)], protocol, [Variant("none", 4, "float32")] * 3))
    assert ([point.problem for point in points], len(calls)) == ([""] * 3, 2)


@pytest.mark.parametrize(("metric", "sign"), [("r2", 1), ("mae", -1)])
def test_the_metric_is_the_tasks_and_so_is_its_direction(
    files: tuple[FileSource, FileSource], tmp_path: Path, metric: str, sign: int
) -> None:
    (pair,) = compare_tasks(*files, [(load_protocol("ridge+k=20,test_size=0.4"), [task(tmp_path, metric=metric)])])
    assert pair.a is not None
    assert pair.test is not None
    assert (pair.a.metric, np.sign(pair.test.difference), pair.verdict(0.05)) == (metric, sign, "A is better")


def test_a_task_that_is_left_out_says_why(files: tuple[FileSource, FileSource], tmp_path: Path) -> None:
    broken = task(tmp_path, loader=lambda path: 1 / 0, id="ph_broken")
    unpinned = task(tmp_path, source=Remote("https://example.org/a.csv"), id="ph_unpinned")
    inputs = gather([unpinned, task(tmp_path), broken], *files)
    assert [(item.task.id, item.status) for item in inputs] == [
        ("ph", "ok"),
        ("ph_broken", "failed"),
        ("ph_unpinned", "skipped"),
    ]
    assert "ZeroDivisionError" in inputs[1].reason
    assert "neuco data link soil FOLDER" in inputs[2].reason


def test_equal_reasons_share_a_line() -> None:
    lines = [("skipped", "a", "x"), ("ok", "b", ""), ("skipped", "c", "x"), ("failed", "d", "x")]
    assert grouped(lines) == ["skipped a, c: x", "failed d: x"]
