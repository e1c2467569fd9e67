"""Baselines prove something about the labels: shuffled ones do not meet them."""

from __future__ import annotations

import numpy as np
import pytest

from neuco_core import Task, list_tasks, load_method, load_protocol, score
from neuco_core.contract.metric_scale import NO_HEADROOM, measure_baseline, shuffled
from neuco_core.tables.embeddings import make_embeddings
from neuco_core.tables.labels import Labels

SPLITS = 5
# Tasks whose baseline shuffled labels may meet, and why.
CHANCE = {
    "mini_random_cls": "a control: random classes",
    "mini_random_reg": "a control: random numbers",
}


def embedded() -> list[Task]:
    return list_tasks("*", tag="embedded")


def meets(task: Task, labels: Labels) -> bool:
    assert task.baseline is not None
    embeddings = load_method(task.baseline.method).embeddings(task.dataset)
    few = load_protocol(task.baseline.protocol).with_(k=SPLITS)
    reached = score(embeddings, labels, few, metric=task.metric).mean
    return abs(reached - task.baseline.score) <= task.baseline.tolerance


@pytest.mark.slow  # the contract's task-baseline warns of it, and each plugin's test.py runs that
@pytest.mark.parametrize("task", [task.id for task in embedded() if task.id not in CHANCE])
def test_shuffled_labels_do_not_meet_the_baseline(task: str) -> None:
    (spec,) = list_tasks(task)
    assert not meets(spec, shuffled(spec.labels()))


def test_only_controls_have_no_headroom() -> None:
    assert {task.id for task in embedded() if task.control} == set(CHANCE)
    assert all(task.baseline and not task.baseline.source.endswith(NO_HEADROOM) for task in embedded())


def test_shuffling_keeps_the_labels_and_the_ids() -> None:
    (task,) = list_tasks("olinda_elevation_mean")
    labels = task.labels()
    other = shuffled(labels)
    assert other.ids == labels.ids
    assert sorted(other.values.ravel()) == sorted(labels.values.ravel())
    assert not np.array_equal(other.values, labels.values)


@pytest.mark.parametrize(("signal", "headroom"), [(1.0, True), (0.0, False)])
def test_a_baseline_has_headroom_only_if_the_embeddings_know_the_labels(signal: float, headroom: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 4)).astype("float32")
    y = signal * x[:, 0] + rng.standard_normal(200)
    ids = tuple(f"s{i:03}" for i in range(200))
    labels = Labels("made", "regression", ids, y, "0" * 64)
    measured = measure_baseline(make_embeddings(ids, x), labels, load_protocol("ridge+k=8"), "r2")
    assert (measured.headroom, measured.tolerance) == (headroom, 0.01)
