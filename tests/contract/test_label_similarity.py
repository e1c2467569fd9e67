"""Labels of many tasks in a small space: the nearest task is the one that a comparison with each of them finds."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core.contract import label_similarity
from neuco_core.contract.checks.task import _correlation
from neuco_core.contract.label_similarity import LabelPool, label_pool
from neuco_core.errors import DataError
from neuco_core.specs import Remote, Task
from neuco_core.tables.labels import Labels, read_labels

COUNT = 60


class Fixed:
    """A catalog of tasks whose labels are in files."""

    def __init__(self, folder: Path, columns: dict[str, dict[int, float]]) -> None:
        self.folder, self.read = folder, 0
        self.tasks = {name: self._task(name, values) for name, values in columns.items()}

    def _task(self, name: str, values: dict[int, float]) -> Task:
        path = self.folder / f"{name}.csv"
        path.write_text("\n".join(["id,label", *(f"s{i},{value!r}" for i, value in values.items()), ""]))
        task = Task(id=name, dataset="any", kind="regression", source=Remote(f"file://{path}"))
        return dataclasses.replace(task, loader=None)

    def labels(self, name: str) -> Labels:
        return read_labels(self.folder / f"{name}.csv", "regression")

    def all(self, cls: object) -> dict[str, Any]:
        return {name: Counting(self, task) for name, task in self.tasks.items()}


class Counting:
    """A task that counts how often its labels are read."""

    def __init__(self, world: Fixed, task: Task) -> None:
        self.world, self.id, self.dataset = world, task.id, task.dataset

    def labels(self) -> Labels:
        self.world.read += 1
        if self.id.startswith("gone"):
            raise DataError("not here")
        if self.id.startswith("rude"):
            raise SystemExit(0)
        return self.world.labels(self.id)


def column(seed: int, samples: range, mix: float = 0.0) -> dict[int, float]:
    """Numbers that share a part with every other column; a few are far off."""
    own, common = np.random.default_rng(seed).standard_t(2, 1000), np.random.default_rng(0).standard_t(2, 1000)
    values = mix * common + (1 - mix) * own
    return {i: float(values[i]) for i in samples}


@pytest.fixture
def world(tmp_path: Path) -> Fixed:
    samples = range(COUNT)
    return Fixed(
        tmp_path,
        {
            "one": column(1, samples, 0.5),
            "two": column(2, samples, 0.8),
            "other_order": dict(sorted(column(3, samples, 0.7).items(), key=lambda item: -item[0])),
            "some": column(4, range(20, 50), 0.6),
            "few": column(5, range(COUNT - 5, COUNT + 40), 0.9),
            "elsewhere": column(6, range(500, 540), 0.9),
            "gone": column(7, samples),
            "rude": column(8, samples),
        },
    )


READABLE = ("one", "two", "other_order", "some", "few", "elsewhere")


@pytest.mark.parametrize("name", READABLE)
def test_correlations_are_those_of_each_pair(world: Fixed, name: str) -> None:
    pool = LabelPool(world, "any")  # type: ignore[arg-type]
    near = {other: value for value, other in pool.nearest(world.labels(name), but=name, most=9)}
    assert set(near) == set(READABLE) - {name}
    for other, value in near.items():
        assert value == pytest.approx(_correlation(world.labels(name), world.labels(other)), abs=1e-6)
    assert set(pool.unread) == {"gone", "rude"}


def test_each_file_is_read_once_whatever_the_number_of_tasks(world: Fixed) -> None:
    for name in READABLE:
        label_pool(world, "any").nearest(world.labels(name), but=name)  # type: ignore[arg-type]
    assert world.read == 8


def test_of_long_columns_all_tasks_keep_the_same_samples(world: Fixed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_similarity, "MOST", 30)
    pool = LabelPool(world, "any")  # type: ignore[arg-type]
    shuffled = dict(reversed(column(2, range(COUNT), 0.8).items()))
    (world.folder / "again.csv").write_text("\n".join(["id,label", *(f"s{i},{v!r}" for i, v in shuffled.items()), ""]))
    value, name = pool.nearest(world.labels("again"), but="")[0]
    assert (name, value) == ("two", pytest.approx(1))
    assert all(len(block.rows) <= 30 for block in pool._blocks.values())


def test_a_column_that_does_not_vary_where_both_have_labels_is_like_nothing(tmp_path: Path) -> None:
    half = {i: 1.0 if i < 30 else float(i) for i in range(COUNT)}
    world = Fixed(tmp_path, {"half": half, "start": column(1, range(30))})
    assert LabelPool(world, "any").nearest(world.labels("start"), but="start") == [(0.0, "half")]  # type: ignore[arg-type]
