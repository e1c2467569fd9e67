"""Metrics against scikit-learn, and their edges against what NeuCo-Bench's metric library gives."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn import metrics as reference

from neuco_core.scoring import metrics as m
from neuco_core.scoring.quality import summarize
from neuco_core.scoring.scorer import choose


@settings(max_examples=60, deadline=None, derandomize=True)
@given(n=st.integers(2, 80), outputs=st.integers(1, 3), seed=st.integers(0, 10**6))
def test_regression_against_scikit_learn(n: int, outputs: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, prediction = rng.random((2, n, outputs)).astype(np.float32)
    assume((m.total_sum(truth) > m.NOTHING).all())  # below that the two differ, on purpose
    assert m.r2(truth, prediction) == pytest.approx(reference.r2_score(truth, prediction), rel=1e-4, abs=1e-4)
    assert m.mse(truth, prediction) == pytest.approx(reference.mean_squared_error(truth, prediction), rel=1e-5)
    assert m.mae(truth, prediction) == pytest.approx(reference.mean_absolute_error(truth, prediction), rel=1e-5)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(n=st.integers(1, 60), classes=st.integers(2, 5), seed=st.integers(0, 10**6), ties=st.booleans())
def test_classification_against_scikit_learn(n: int, classes: int, seed: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    truth, raw = rng.integers(0, classes, n), rng.random((n, classes))
    raw = np.round(raw, 1) + 0.05 if ties else raw
    prediction = raw / raw.sum(axis=1, keepdims=True)
    decided = m.decide(prediction)
    # scikit-learn counts an undefined share as 0; ours are left out, so it is asked only about what is defined.
    in_truth, in_decided = np.unique(truth), np.unique(decided)
    options = {"average": "macro", "zero_division": 0} if classes > 2 else {"zero_division": 0}
    assert m.f1(truth, prediction) == pytest.approx(reference.f1_score(truth, decided, **options), abs=1e-6)
    assert m.accuracy(truth, prediction) == pytest.approx(reference.accuracy_score(truth, decided))
    table = reference.confusion_matrix(truth, decided, labels=range(classes))
    np.testing.assert_array_equal(m.confusion(truth, prediction), table)
    if classes == 2:
        in_decided, in_truth = (np.intersect1d(part, [1]) for part in (in_decided, in_truth))
    for ours, theirs, labels in (
        (m.precision, reference.precision_score, in_decided),
        (m.recall, reference.recall_score, in_truth),
    ):
        got = ours(truth, prediction)
        if labels.size:
            expected = theirs(truth, decided, labels=labels, average="macro", zero_division=0)
            assert got == pytest.approx(expected)
        else:
            assert math.isnan(got)
    if len(np.unique(truth)) == classes:
        shown = prediction[:, 1] if classes == 2 else prediction
        expected = reference.roc_auc_score(truth, shown, multi_class="ovr")
        assert m.roc_auc(truth, prediction) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("truth", "prediction", "expected"),
    [
        ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5], 1.0),  # no residual
        ([0.5, 0.5, 0.5], [0.5, 0.5, 0.505], 1.0),  # a residual sum of 2.5e-5 is none
        ([0.5, 0.5, 0.5], [0.5, 0.5, 0.6], 0.0),  # a residual, and nothing to explain
        ([0.5, 0.5, 0.505], [0.5, 0.5, 0.6], 0.0),  # next to nothing to explain
        ([0.0, 1.0], [0.0, 0.0], -1.0),
    ],
)
def test_r2_at_its_edges(truth: list[float], prediction: list[float], expected: float) -> None:
    assert m.r2(np.array(truth), np.array(prediction)) == pytest.approx(expected)


def test_r2_is_not_defined_for_one_sample_or_an_infinite_prediction() -> None:
    assert math.isnan(m.r2(np.array([1.0]), np.array([1.0])))
    for bad in (np.nan, np.inf):
        assert math.isnan(m.r2(np.array([0.0, 1.0]), np.array([0.0, bad])))


def test_f1_at_its_edges() -> None:
    def f1(truth: list[int], positive: list[float]) -> float:
        share = np.array(positive)
        return m.f1(np.array(truth), np.stack([1 - share, share], axis=1))

    assert f1([0, 0], [0.1, 0.2]) == 0.0  # no positives anywhere
    assert f1([0, 0], [0.1, 0.9]) == 0.0
    assert f1([1, 1], [0.6, 0.9]) == 1.0
    assert f1([1, 0], [0.5, 0.5]) == 0.0  # one half is not above one half
    assert math.isnan(f1([1, 0], [np.nan, 0.2]))


def test_epochs_without_a_metric_are_never_the_best() -> None:
    curve = np.array([np.nan, 0.2, 0.7, 0.7, np.nan])
    assert choose(curve, "best-on-test", True) == 2
    assert choose(curve, "best-on-test", False) == 1
    assert choose(curve, "last", True) == 4
    assert choose(np.full(3, np.nan), "best-on-test", True) == 2


def test_quality() -> None:
    mean, std, q = summarize([0.7, 0.9])
    assert (mean, std) == pytest.approx((0.8, 0.1))
    assert q == pytest.approx(100 * 0.02 * 0.8 / 0.12)
    assert summarize([0.7, 0.9, math.nan]) == summarize([0.7, 0.9])
    assert summarize([0.5]).q == pytest.approx(50)
    assert summarize([-0.5]).q == pytest.approx(-50)
    assert summarize([2.0, 4.0], greater_is_better=False).q == pytest.approx(-100 * 0.02 * 3 / 1.02)
    with warnings.catch_warnings():
        assert summarize([math.nan]) is None
