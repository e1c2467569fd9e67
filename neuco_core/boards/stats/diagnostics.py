"""Diagnostics of tasks: does one separate methods, how noisy is it, does another one say the same?"""

from __future__ import annotations

import numpy as np

from neuco_core.boards.stats.ranking import positions

REDUNDANT = 0.95
ENOUGH_METHODS = 5


def diagnose(
    q: np.ndarray, mean: np.ndarray, std: np.ndarray | None, final: np.ndarray, greater_is_better: bool = True
) -> dict[str, float | None]:
    """One task: Q, mean and std over the splits, each (methods,), and the board's final ranks.

    ``noise`` is the standard deviation over splits relative to the spread between methods (medians): above 1 a
    single split says little. ``agreement`` is Spearman's correlation of its ranks with the final ones. ``negative``
    counts methods with a negative Q; where lower is better, all have one and it is ``None``.
    """
    low, high = np.quantile(mean, (0.25, 0.75))
    noise = float(np.median(std) / ((high - low) / 1.349)) if std is not None and high > low else None
    negative = int((q < 0).sum()) if greater_is_better else None
    return {"spread": float(q.std()), "noise": noise, "agreement": spearman(-q, final), "negative": negative}


def correlations(q: np.ndarray) -> list[list[float | None]]:
    """Spearman's correlation between the tasks over the methods, for ``q`` (tasks, methods)."""
    return [[spearman(first, second) for second in q] for first in q]


def redundant(correlation: list[list[float | None]], methods: int) -> list[tuple[int, int, float]]:
    """Pairs of tasks that order the methods almost alike; with few methods that happens by chance and says nothing."""
    if methods < ENOUGH_METHODS:
        return []
    size = len(correlation)
    pairs = [(a, b, correlation[a][b]) for a in range(size) for b in range(a + 1, size)]
    return [(a, b, value) for a, b, value in pairs if value is not None and value >= REDUNDANT]


def spearman(first: np.ndarray, second: np.ndarray) -> float | None:
    """The rank correlation, ties at their mean rank; ``None`` if one side is constant or there are fewer than 3."""
    if len(first) < 3:
        return None
    a, b = _middle_ranks(first), _middle_ranks(second)
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum() / size) if size > 0 else None


def _middle_ranks(values: np.ndarray) -> np.ndarray:
    ranks: np.ndarray = (positions(values) + len(values) + 1 - positions(-values)) / 2
    return ranks
