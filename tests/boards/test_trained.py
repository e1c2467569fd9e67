"""What training adds to the error of a mean F1: the model against data that is drawn, and what records tell of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from neuco_core.boards.stats.f1_variance import (
    LARGEST,
    UNCORRECTED,
    is_binary,
    of_f1,
    share_of_positives,
    variance_factor,
)
from neuco_core.boards.stats.uncertainty import TaskScores, mean_interval, replicate_q
from neuco_core.scoring.metrics import accuracy, f1, precision, recall

SPLITS, SAMPLES, TEST = 20, 500, 50
RATIO = TEST / (SAMPLES - TEST)


def drawn(positives: float, distance: float, sets: int = 400) -> tuple[np.ndarray, float, float]:
    """F1 of data sets and splits, of a line through two normal classes; and what the model says to its mean."""
    rng = np.random.default_rng(1)
    y = (rng.random((sets, 1, SAMPLES)) < positives).astype(float)
    x = rng.standard_normal(y.shape) + distance * y
    order = rng.permuted(np.broadcast_to(np.arange(SAMPLES), (sets, SPLITS, SAMPLES)), axis=2)
    y, x = (np.take_along_axis(np.broadcast_to(a, order.shape), order, 2) for a in (y, x))
    trained, labels = x[..., TEST:], y[..., TEST:]
    centre, share = trained.mean(axis=2, keepdims=True), labels.mean(axis=2, keepdims=True)
    slope = ((trained - centre) * (labels - share)).sum(axis=2, keepdims=True) / ((trained - centre) ** 2).sum(
        axis=2, keepdims=True
    )
    named, true = share + slope * (x[..., :TEST] - centre) > 0.5, y[..., :TEST] > 0.5
    scores = 2 * (named & true).sum(axis=2) / np.maximum(named.sum(axis=2) + true.sum(axis=2), 1)
    needed = scores.mean(axis=1).var(ddof=1) / scores.var(axis=1, ddof=1).mean() - 1 / SPLITS
    return scores, needed / RATIO, variance_factor(float(scores.mean()), positives, TEST / SAMPLES)


@pytest.mark.parametrize(("positives", "distance"), [(0.5, 2.0), (1 / 3, 2.0), (1 / 3, 1.2), (0.2, 2.5)])
def test_the_factor_is_what_data_sets_really_show(positives: float, distance: float) -> None:
    _, needed, factor = drawn(positives, distance)
    assert factor == pytest.approx(needed, rel=0.3)


@pytest.mark.parametrize("positives", [0.5, 1 / 3])
def test_intervals_of_f1_hold_the_truth_as_often_as_they_say(positives: float) -> None:
    scores, _, factor = drawn(positives, 1.2)
    task = TaskScores(scores, RATIO, samples=SAMPLES, factors=np.full(len(scores), factor), lower=0.0, upper=1.0)
    truth = scores.mean()

    def held(own: TaskScores) -> float:
        ends = mean_interval(own)
        return float(((ends.low <= truth) & (truth <= ends.high)).mean())

    assert 0.92 <= held(task) <= 0.99
    assert held(replace(task, factors=1.0, lower=None, upper=None)) < held(task)


def test_training_matters_less_the_better_the_classes_are_told_apart() -> None:
    factors = [variance_factor(score, 1 / 3, 0.1) for score in (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)]
    assert factors == sorted(factors, reverse=True)
    assert factors[0] > 2
    assert factors[-1] == pytest.approx(1, abs=0.01)
    assert (variance_factor(0.0, 0.3, 0.1), variance_factor(1.0, 0.3, 0.1)) == (LARGEST, 1.0)


def test_the_share_of_positives_follows_from_recorded_metrics() -> None:
    rng = np.random.default_rng(0)
    told: dict[str, list[float | None]] = {"f1": [], "accuracy": [], "precision": [], "recall": []}
    shares = []
    for _ in range(30):
        truth = rng.random(60) < 0.3
        guess = np.where(rng.random(60) < 0.8, truth, ~truth).astype(float)
        prediction = np.stack([1 - guess, guess], axis=1)
        for name, metric in (("f1", f1), ("accuracy", accuracy), ("precision", precision), ("recall", recall)):
            told[name].append(metric(truth.astype(int), prediction))
        shares.append(truth.mean())
    found = share_of_positives(told["accuracy"], told["precision"], told["recall"])
    assert found == pytest.approx(np.mean(shares))
    assert is_binary(told["f1"], told["precision"], told["recall"])
    factor, trials = of_f1(told, RATIO)
    assert 1 < factor < LARGEST
    assert found / 2 < trials < 2 * found
    assert share_of_positives([0.9, None], [None, 0.5], [0.0, 0.5]) == pytest.approx(0.1)
    assert share_of_positives([1.0], [1.0], [1.0]) is None


def test_what_records_do_not_tell_changes_nothing() -> None:
    several = {"f1": [0.62], "accuracy": [0.8], "precision": [0.7], "recall": [0.6]}  # a mean over classes
    assert of_f1(several, RATIO) == UNCORRECTED
    assert of_f1({"f1": [0.5]}, RATIO) == UNCORRECTED


def test_intervals_stay_between_the_ends_and_no_spread_is_not_no_doubt() -> None:
    rng = np.random.default_rng(2)
    splits = np.stack([np.zeros(40), np.ones(40), np.clip(rng.normal(0.98, 0.03, 40), 0, 1)])
    task = TaskScores(splits, samples=200, lower=0.0, upper=1.0)
    ends = mean_interval(task)
    assert ends.low[0] == 0 < ends.high[0] < 0.05
    assert 0.95 < ends.low[1] < ends.high[1] == 1
    assert 0.9 < ends.low[2] < splits[2].mean() < ends.high[2] < 1
    q = replicate_q(task, np.random.RandomState(0), 300)
    assert np.isfinite(q).all()
    assert (q >= 0).all()
    assert q[:, 0].std() > 0
