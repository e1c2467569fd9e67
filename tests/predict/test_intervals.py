"""Intervals hold on tables of many kinds, also on small ones and near the ends of a metric."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone

from neuco_core.errors import DataError, UsageError
from neuco_extensions.predict import Predictor, ScoreTable
from neuco_extensions.predict.evaluate import folds

Random = np.random.Generator


def skills(random: Random, methods: int, tasks: int) -> np.ndarray:
    noise = 0.3 * random.normal(size=(methods, tasks))
    return np.asarray(random.normal(size=(methods, 2)) @ random.normal(size=(2, tasks)) + noise)


def nearly_perfect(random: Random, methods: int, tasks: int) -> np.ndarray:
    return np.asarray(1 - 10.0 ** -(3 + 0.4 * skills(random, methods, tasks)).clip(1, 8))


def nearly_nothing(random: Random, methods: int, tasks: int) -> np.ndarray:
    return np.asarray(expit(0.8 * skills(random, methods, tasks) - 5))


def shares_and_percentages(random: Random, methods: int, tasks: int) -> np.ndarray:
    return np.asarray(expit(skills(random, methods, tasks)) * np.where(np.arange(tasks) % 2, 1, 100))


def table(values: np.ndarray) -> ScoreTable:
    methods, tasks = (tuple(f"{side}{i}" for i in range(size)) for side, size in zip("mt", values.shape, strict=True))
    return ScoreTable(methods, tasks, values)


@pytest.mark.parametrize(
    ("kind", "size", "known", "tries"),
    [
        (nearly_perfect, (20, 12), 0.8, 2),
        pytest.param(nearly_perfect, (20, 12), 0.8, 4, marks=pytest.mark.slow),
        pytest.param(nearly_nothing, (20, 12), 0.8, 4, marks=pytest.mark.slow),
        pytest.param(shares_and_percentages, (20, 12), 0.8, 4, marks=pytest.mark.slow),
        pytest.param(skills, (15, 10), 0.15, 6, marks=pytest.mark.slow),
        pytest.param(skills, (5, 4), 0.85, 25, marks=pytest.mark.slow),
    ],
)
def test_they_hold(kind: Callable[..., np.ndarray], size: tuple[int, int], known: float, tries: int) -> None:
    inside: list[bool] = []
    for seed in range(tries):
        random = np.random.default_rng(seed)
        truth, hidden = kind(random, *size), random.random(size) > known
        predictor = Predictor().fit(table(np.where(hidden, np.nan, truth)))
        low, high = predictor.interval()
        assert (low <= predictor.scores).all()
        assert (predictor.scores <= high).all()
        inside += ((low <= truth) & (truth <= high))[hidden].tolist()
    assert len(inside) > 50
    assert np.mean(inside) > 0.88  # 95 %, less three errors of a draw this small


def test_few_results_that_look_like_shares_are_none() -> None:
    values = np.random.default_rng(0).normal(size=(12, 6))
    values[:, 0] = [0.2, 0.7, *[np.nan] * 10]
    low, high = Predictor().fit(table(values)).interval()
    assert low[2:, 0].min() < 0
    assert high[2:, 0].max() > 1


def test_equal_scores_are_hidden_together_where_that_is_asked() -> None:
    values = np.random.default_rng(0).normal(size=(10, 6))
    values[5:] = values[:5]
    values[:, 5] = np.round(values[:, 5])
    plain, apart = (folds(table(values), equal=equal) for equal in (False, True))
    assert all(set(fold.hidden) == set(fold.asked) for fold in plain)
    for before, fold in zip(plain, apart, strict=True):
        assert np.array_equal(before.asked, fold.asked)
        left = table(values).without(fold.hidden).values
        rows, columns = (place[fold.asked] for place in table(values).cells)
        assert not any(
            (left[:, column] == values[row, column]).any() for row, column in zip(rows, columns, strict=True)
        )
        assert len(fold.hidden) > len(fold.asked)


def test_what_cannot_be_fitted_is_told() -> None:
    with pytest.raises(UsageError, match="fit"):
        Predictor().predict()
    with pytest.raises(UsageError, match="expected a ScoreTable, got ndarray"):
        Predictor().fit(np.eye(4))  # type: ignore[arg-type]
    with pytest.raises(DataError, match="too large; expected numbers up to 1e\\+50"):
        table(np.array([[1e300, 1.0], [2.0, 3.0]]))
    assert clone(Predictor(3)).seed == 3
