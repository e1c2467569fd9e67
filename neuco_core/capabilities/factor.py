"""Scores as a sum of what method and task bring, and a few products of both: alternating ridge regressions."""

from __future__ import annotations

import numpy as np

OFFSET_RIDGE = 0.1  # of what a method or a task brings by itself
ROUNDS = 30


def factorise(values: np.ndarray, known: np.ndarray, rank: int, ridge: float, seed: int = 0) -> np.ndarray:
    """All cells of (method, task), learnt from the known ones. Rank 0 is additive: a mean and two offsets."""
    random = np.random.default_rng(seed)
    values, known = np.where(known, values, 0.0), known.astype(float)
    mean = values.sum() / known.sum()
    rows, columns = (random.normal(0, 0.1, (size, rank + 1)) for size in values.shape)
    columns[:, 0] = 0.0
    for _ in range(ROUNDS):
        rows = _side(values - mean - known * columns[:, 0], known, columns, ridge)
        columns = _side((values - mean - known * rows[:, :1]).T, known.T, rows, ridge)
    return np.asarray(mean + rows[:, :1] + columns[:, 0] + rows[:, 1:] @ columns[:, 1:].T)


def _side(rest: np.ndarray, known: np.ndarray, other: np.ndarray, ridge: float) -> np.ndarray:
    """An offset and factors of each row, given those of the columns."""
    features = np.concatenate([np.ones((len(other), 1)), other[:, 1:]], axis=1)
    penalty = np.diag([OFFSET_RIDGE, *[ridge] * (features.shape[1] - 1)])
    squares = features[:, :, None] * features[:, None, :]
    products = (known @ squares.reshape(len(other), -1)).reshape(len(rest), *penalty.shape) + penalty
    return np.asarray(np.linalg.solve(products, ((rest * known) @ features)[..., None])[..., 0])
