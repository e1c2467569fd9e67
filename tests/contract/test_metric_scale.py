"""What a guess and a perfect answer score, asked of each metric itself."""

from __future__ import annotations

import numpy as np
import pytest

from neuco_core.contract.metric_scale import metric_scale
from neuco_core.plugins.catalog import load_metric
from neuco_core.tables.labels import Labels

VALUES = np.random.default_rng(0).lognormal(size=400)
BINARY = (np.arange(400) % 10 < 3).astype(float)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(
    ("metric", "values", "guess", "perfect", "solved"),
    [
        ("r2", VALUES, 0.0, 1.0, 0.9),
        ("mae", VALUES, np.abs(VALUES - np.median(VALUES)).mean(), 0.0, 0.1),
        ("mse", VALUES, VALUES.var(), 0.0, 0.1),
    ],
)
def test_a_regression_in_any_unit(
    metric: str, values: np.ndarray, guess: float, perfect: float, solved: float, unit: float
) -> None:
    measured = metric_scale(labels("regression", unit * values), load_metric(metric))
    scale = 1.0 if metric == "r2" else guess * unit ** (2 if metric == "mse" else 1)
    assert measured.guess == pytest.approx(guess if metric == "r2" else scale, abs=1e-6 * scale)
    assert measured.perfect == pytest.approx(perfect, abs=1e-6 * scale)
    assert measured.solved == pytest.approx(solved * scale, abs=1e-6 * scale)
    assert measured.better(measured.perfect, measured.guess)
    assert float(measured.show(measured.guess)) == pytest.approx(
        measured.guess, abs=1e-3 * scale
    )  # a few digits are enough


@pytest.mark.parametrize(
    ("metric", "values", "guess"),
    [
        ("f1", BINARY, 0.6 / 1.3),  # always yes
        ("f1", np.arange(400.0) % 10, 0.1),  # each class as often as it occurs
        ("accuracy", BINARY, 0.7),
        ("roc_auc", BINARY, 0.5),
        ("recall", BINARY, 1.0),  # always yes is perfect: no metric for a task of two classes
    ],
)
def test_a_classification(metric: str, values: np.ndarray, guess: float) -> None:
    measured = metric_scale(labels("classification", values), load_metric(metric))
    assert measured.guess == pytest.approx(guess, abs=0.05)
    assert (measured.perfect, measured.solved) == (1.0, pytest.approx(0.9))
    assert measured.better(measured.perfect, measured.guess) == (metric != "recall")


def labels(kind: str, values: np.ndarray) -> Labels:
    return Labels("task", kind, tuple(map(str, range(len(values)))), values, sha256="0" * 64)
