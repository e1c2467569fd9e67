"""Scores as a sum of what method and task bring, and a few products of both: alternating ridge regressions.

``FactorModel`` is for tables too large for a Gaussian process, which inverts a matrix with a row per known score; here
each method inverts one with a row per factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from neuco_extensions.predict.table import Cells, ScoreTable

OFFSET_RIDGE = 0.1  # of what a method or a task brings by itself
RANK, RIDGE = 12, 1.0  # of a model by itself: with many factors the ridge alone decides how many count
ROUNDS = 30
ENOUGH = 1e-5  # a round that moves no prediction of a sample of cells by more ends the search
LEAST_NOISE = 1e-6


@dataclass(frozen=True)
class Factors:
    """An offset and factors of each method and of each task; ``products`` is what the methods' regressions inverted."""

    mean: float
    methods: np.ndarray
    tasks: np.ndarray
    products: np.ndarray

    @property
    def features(self) -> np.ndarray:
        """What a method's offset and factors are multiplied with, by task."""
        return np.concatenate([np.ones((len(self.tasks), 1)), self.tasks[:, 1:]], axis=1)

    def every(self) -> np.ndarray:
        return np.asarray(self.mean + self.tasks[:, 0] + self.methods @ self.features.T)


def factorise(
    values: np.ndarray, known: np.ndarray, rank: int, ridge: float, offset: float = OFFSET_RIDGE, seed: int = 0
) -> np.ndarray:
    """All cells of (method, task), learnt from the known ones. Rank 0 is additive: a mean and two offsets.

    ``offset`` is the ridge of the offsets, ``ridge`` that of the factors.
    """
    return fit_factors(values, known, rank, ridge, offset, seed).every()


def fit_factors(
    values: np.ndarray, known: np.ndarray, rank: int, ridge: float, offset: float = OFFSET_RIDGE, seed: int = 0
) -> Factors:
    random = np.random.default_rng(seed)
    values, known = np.where(known, values, 0.0), known.astype(float)
    mean = float(values.sum() / known.sum())
    methods, tasks = (random.normal(0, 0.1, (size, rank + 1)) for size in values.shape)
    tasks[:, 0] = 0.0
    before = np.inf
    penalty = np.diag([offset, *[ridge] * rank])
    for _ in range(ROUNDS):
        methods, products = _side(values - mean - known * tasks[:, 0], known, tasks, penalty)
        tasks, _ = _side((values - mean - known * methods[:, :1]).T, known.T, methods, penalty)
        factors = Factors(mean, methods, tasks, products)
        now = methods[:100] @ factors.features.T + tasks[:, 0]
        if np.abs(now - before).max() < ENOUGH:
            break
        before = now
    return factors


def _side(rest: np.ndarray, known: np.ndarray, other: np.ndarray, penalty: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An offset and factors of each row, given those of the columns; and the matrices that were inverted for it."""
    features = np.concatenate([np.ones((len(other), 1)), other[:, 1:]], axis=1)
    squares = features[:, :, None] * features[:, None, :]
    products = (known @ squares.reshape(len(other), -1)).reshape(len(rest), *penalty.shape) + penalty
    return np.linalg.solve(products, ((rest * known) @ features)[..., None])[..., 0], products


class FactorModel:
    """``predict`` and ``covariance`` are those of ``ScoreProcess``; ``misses`` are of scores that it has seen."""

    def __init__(self, table: ScoreTable) -> None:
        known, count = table.known, table.known.sum(0)
        overall = float(np.nanmean(table.values))
        self.means = np.where(count > 0, np.nansum(table.values, 0) / np.maximum(count, 1), overall)
        rest = np.where(known, table.values - self.means, 0.0)
        typical = np.sqrt((rest**2).sum() / known.sum())
        # As if each task had two more results of typical spread, so that one with two has no spread of 0.
        self.spreads = np.sqrt(((rest**2).sum(0) + 2 * typical**2) / (count + 2)) + 1e-12
        z = rest / self.spreads
        self._factors = fit_factors(z, known, RANK, RIDGE)
        self.misses = (z - self._factors.every())[known]
        self._noise = max(float((self.misses**2).mean()), LEAST_NOISE)

    def predict(self, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        columns = cells[1]
        size = self.spreads[columns]
        left = self._noise * (1 + self._unsure[cells])
        return self.means[columns] + self._every[cells] * size, np.sqrt(left) * size

    def covariance(self, cells: Cells) -> tuple[np.ndarray, float]:
        rows, columns = cells
        features, covariance = self._factors.features[columns], np.zeros((len(rows),) * 2)
        for method in np.unique(rows):
            its_rows = rows == method
            covariance[np.ix_(its_rows, its_rows)] = features[its_rows] @ self._inverses[method] @ features[its_rows].T
        return self._noise * covariance, self._noise

    @cached_property
    def _every(self) -> np.ndarray:
        return self._factors.every()

    @cached_property
    def _inverses(self) -> np.ndarray:
        return np.linalg.inv(self._factors.products)

    @cached_property
    def _unsure(self) -> np.ndarray:
        """For all cells: the variance of what the factors say, in that of noise."""
        features = self._factors.features
        squares = (features[:, :, None] * features[:, None, :]).reshape(len(features), -1)
        return np.asarray(np.maximum(self._inverses.reshape(len(self._inverses), -1) @ squares.T, 0.0))
