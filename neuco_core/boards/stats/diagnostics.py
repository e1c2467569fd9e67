"""Diagnostics of a board. Its tasks: does one separate methods, how noisy is it, does another one say the same? Its
ranking: which order changes if one method or one task is left out?
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from neuco_core.boards.stats.ranking import Rule, positions, rank

REDUNDANT = 0.95
ENOUGH_METHODS = 5
# By number: the one that is left out → the methods that move → their ranks before and after.
Moves = dict[int, dict[int, tuple[int, int]]]


def diagnose(
    q: np.ndarray, mean: np.ndarray, std: np.ndarray | None, final: np.ndarray, greater_is_better: bool = True
) -> dict[str, float | None]:
    """One task: Q, mean and std over the splits, each (methods,), and the board's final ranks.

    ``noise`` is the standard deviation over splits relative to the spread between methods (medians): above 1 a
    single split says little. ``agreement`` is Spearman's correlation of its ranks with the final ones. ``negative``
    counts methods with a negative Q; where lower is better, all have one and it is ``None``.
    """
    low, high = np.quantile(mean, (0.25, 0.75))
    # The interquartile range of a normal distribution is 1.349 standard deviations.
    noise = float(np.median(std) / ((high - low) / 1.349)) if std is not None and high > low else None
    negative = int((q < 0).sum()) if greater_is_better else None
    return {"spread": float(q.std()), "noise": noise, "agreement": spearman(-q, final), "negative": negative}


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
    a, b = ((positions(side) + len(side) + 1 - positions(-side)) / 2 for side in (first, second))
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum() / size) if size > 0 else None


def without_each(noun: Literal["method", "task"], q: np.ndarray, rule: Rule, baselines: np.ndarray) -> Moves:
    """The methods, or the tasks, whose absence reorders other methods. ``q`` is (tasks, methods)."""
    full = rank(q, rule, baselines).final
    axis = 1 if noun == "method" else 0
    moves: Moves = {}
    for out in range(q.shape[axis] if q.shape[axis] > 1 else 0):
        rest = np.delete(np.arange(q.shape[1]), out) if noun == "method" else np.arange(q.shape[1])
        after = rank(np.delete(q, out, axis), rule, baselines[rest]).final
        # Ranked anew among the rest: that those below a method move up by one is no change of order.
        before = positions(full[rest])
        moved = {int(rest[i]): (int(before[i]), int(after[i])) for i in np.flatnonzero(before != after)}
        if moved:
            moves[out] = moved
    return moves


def furthest(final: np.ndarray, moves: Moves) -> np.ndarray:
    """The ranks with which each method moves furthest from its own; of two as far, the worse."""
    shift = np.zeros_like(final)
    for moved in moves.values():
        for m, (before, after) in moved.items():
            shift[m] = max(shift[m], after - before, key=lambda places: (abs(places), places))
    moved_to: np.ndarray = final + shift
    return moved_to
