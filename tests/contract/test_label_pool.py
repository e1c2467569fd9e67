"""Labels of many tasks in a small space: the nearest task is the one that a comparison with each of them finds."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from neuco_core.contract.checks.task import LabelPool, label_pool
from neuco_core.errors import DataError
from neuco_core.tables.labels import Labels

COUNT = 60


class Fixed:
    """A catalog of tasks of one dataset, which counts how often labels are read."""

    def __init__(self, columns: dict[str, dict[int, float]]) -> None:
        self.columns, self.read = columns, 0

    def labels(self, name: str) -> Labels:
        self.read += 1
        if name == "gone":
            raise DataError("not here")
        if name == "rude":
            raise SystemExit(0)
        samples, values = zip(*self.columns[name].items(), strict=True)
        return Labels("task", "regression", tuple(f"s{i}" for i in samples), np.array(values), sha256="0" * 64)

    def all(self, cls: object) -> dict[str, Any]:
        return {n: SimpleNamespace(id=n, dataset="any", labels=partial(self.labels, n)) for n in self.columns}


def correlation(first: dict[int, float], second: dict[int, float]) -> float:
    both = first.keys() & second.keys()
    if len(both) < 10:
        return 0.0
    return abs(float(np.corrcoef([first[i] for i in both], [second[i] for i in both])[0, 1]))


def column(seed: int, samples: range, mix: float = 0.0) -> dict[int, float]:
    """Numbers that share a part with every other column; a few are far off."""
    alone, common = np.random.default_rng(seed).standard_t(2, 1000), np.random.default_rng(0).standard_t(2, 1000)
    values = mix * common + (1 - mix) * alone
    return {i: float(values[i]) for i in samples}


@pytest.fixture
def world() -> Fixed:
    samples = range(COUNT)
    return Fixed(
        {
            "one": column(1, samples, 0.5),
            "two": column(2, samples, 0.8),
            "other_order": dict(sorted(column(3, samples, 0.7).items(), key=lambda item: -item[0])),
            "some": column(4, range(20, 50), 0.6),
            "few": column(5, range(COUNT - 5, COUNT + 40), 0.9),
            "elsewhere": column(6, range(500, 540), 0.9),
            "gone": column(7, samples),
            "rude": column(8, samples),
        }
    )


READABLE = ("one", "two", "other_order", "some", "few", "elsewhere")


def test_correlations_are_those_of_each_pair_and_each_file_is_read_once(world: Fixed) -> None:
    pool = label_pool(world, "any")  # type: ignore[arg-type]
    assert set(pool.unread) == {"gone", "rude"}
    for name in READABLE:
        assert label_pool(world, "any") is pool  # type: ignore[arg-type]
        near = {other: value for value, other in pool.nearest(world.labels(name), but=name)}
        assert set(near) == set(READABLE) - {name}
        for other, value in near.items():
            assert value == pytest.approx(correlation(world.columns[name], world.columns[other]), abs=1e-6)
    assert world.read == len(world.columns) + len(READABLE)


def test_a_column_that_does_not_vary_where_both_have_labels_is_like_nothing() -> None:
    half = {i: 1.0 if i < 30 else float(i) for i in range(COUNT)}
    world = Fixed({"half": half, "start": column(1, range(30))})
    assert LabelPool(world, "any").nearest(world.labels("start"), but="start") == [(0.0, "half")]  # type: ignore[arg-type]
