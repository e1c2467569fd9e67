"""Which test parts have no R²: those whose labels are all the same, and no others because of one wild label."""

from __future__ import annotations

import math

import numpy as np
import pytest

from neuco_core import load_task
from neuco_core.plugins.catalog import list_tasks
from neuco_core.protocol import load_protocol
from neuco_core.scoring.metrics import NOTHING, constant, r2_steps, strict_r2_steps, total_sum
from neuco_core.scoring.quality import middle, odd_splits, split_count
from neuco_core.scoring.scorer import score
from neuco_core.scoring.splits import group, shuffle
from tests.scoring.make import embed, label, problem


def test_one_wild_label_leaves_out_nothing() -> None:
    """Scaled by a range of a thousand deviations, all other labels lie within a thousandth."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 6)).astype(np.float32)
    y = x[:, 0] + 0.5 * rng.standard_normal(300)
    calm = score(embed(x), label(y), "ridge")
    y[7] = 1e4
    wild = score(embed(x), label(y), "ridge")
    assert wild.splits == {"no_variance": 0, "undefined": 0}
    assert split_count(wild.per_split) == "40"
    # The rule before: a sum of squares below 1e-4 of the training range, in all parts but those of the wild label.
    span = y.max() - np.delete(y, 7).min()
    parts = [y[test] / span for _, test in shuffle(300, load_protocol("ridge"))]
    assert sum(bool(total_sum(part)[0] <= NOTHING) for part in parts) >= 30
    # What it did to the training is seen in the number, and not hidden by leaving parts out.
    assert middle(wild.per_split) < middle(calm.per_split)


def test_the_same_to_the_bit_where_no_threshold_counts() -> None:
    rng = np.random.default_rng(1)
    truth = rng.random((50, 2)).astype(np.float32)
    steps = truth + 0.3 * rng.standard_normal((4, 50, 2))
    assert (strict_r2_steps(truth, steps) == r2_steps(truth, steps)).all()


def test_labels_that_are_the_same_but_for_rounding_are_constant() -> None:
    same = np.full(9, 0.1, np.float32)
    assert constant(same).all()
    assert constant(np.nextafter(same, 1, dtype=np.float32) * np.array([1] * 8 + [1 + 1e-9])).all()
    assert not constant(np.append(same, np.float32(0.1001))).any()
    assert math.isnan(strict_r2_steps(same, same[None])[0])


@pytest.mark.parametrize("protocol", ["ridge", "ridge+splitter=group"])
def test_shipped_tasks_have_the_same_parts_left_out_as_before_the_rule(protocol: str) -> None:
    """So records from before it was a component hold as they are, and none of them is stale."""
    rules = load_protocol(protocol)
    seen = 0
    for task in list_tasks("mini_*", "olinda_*"):
        if task.kind != "regression" or (rules.splitter == "group" and not task.group_column):
            continue
        labels = load_task(task.id).labels()
        groups = None if labels.groups is None else np.asarray(labels.groups)
        for train, test in (group if rules.splitter == "group" else shuffle)(len(labels.ids), rules, groups):
            y = labels.values[train]
            part = ((labels.values[test] - y.min()) / np.ptp(y)).astype(np.float32)
            assert bool(constant(part)[0]) == bool(total_sum(part)[0] <= NOTHING), task.id
            seen += 1
    assert seen >= 80


def test_odd_parts_in_words() -> None:
    assert list(odd_splits({"no_variance": 0, "undefined": 0}, 40)) == []
    assert list(odd_splits({"one_class": 10, "undefined": 10}, 40)) == [
        "10 of 40 test parts have no score: their labels are of one class"
    ]
    assert list(odd_splits({"no_variance": 3, "undefined": 0}, 8)) == [
        "3 of 8 test parts are scored even so: their labels are all the same"
    ]
    assert list(odd_splits({"no_variance": 1, "undefined": 3}, 8)) == [
        "1 of 8 test parts have no score: their labels are all the same",
        "2 of 8 splits have no score: the metric is not defined there",
    ]
    embeddings, signal = problem(40)
    assert split_count(score(embeddings, label(signal[:, 0]), "ridge+k=3").per_split) == "3"
