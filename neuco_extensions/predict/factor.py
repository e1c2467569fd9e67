"""Scores as a sum of what method and task bring, and a few products of both: alternating ridge regressions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

OFFSET_RIDGE = 0.1  # of what a method or a task brings by itself
ROUNDS = 30
ENOUGH = 1e-5  # a round that moves no prediction of a sample of cells by more ends the search


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
        found = Factors(mean, methods, tasks, products)
        now = methods[:100] @ found.features.T + tasks[:, 0]
        if np.abs(now - before).max() < ENOUGH:
            break
        before = now
    return found


def _side(rest: np.ndarray, known: np.ndarray, other: np.ndarray, penalty: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An offset and factors of each row, given those of the columns; and the matrices that were inverted for it."""
    features = np.concatenate([np.ones((len(other), 1)), other[:, 1:]], axis=1)
    squares = features[:, :, None] * features[:, None, :]
    products = (known @ squares.reshape(len(other), -1)).reshape(len(rest), *penalty.shape) + penalty
    return np.linalg.solve(products, ((rest * known) @ features)[..., None])[..., 0], products
