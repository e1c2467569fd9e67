"""Diagnostics of a board. Its tasks: does one separate methods, how noisy is it, does another one say the same? Its
ranking: which order changes if one method or one task is left out?
"""

from __future__ import annotations

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


def without_each_method(q: np.ndarray, rule: Rule, baselines: np.ndarray) -> Moves:
    """The methods whose absence reorders others. ``q`` is (tasks, methods)."""
    full = rank(q, rule, baselines).final
    moves: Moves = {}
    for out in range(q.shape[1] if q.shape[1] > 1 else 0):
        rest = np.delete(np.arange(q.shape[1]), out)
        after = rank(q[:, rest], rule, baselines[rest]).final
        # Ranked anew among the rest: that those below move up by one is no change of order.
        moves[out] = _moved(rest, positions(full[rest]), after)
    return {out: moved for out, moved in moves.items() if moved}


def without_each_task(q: np.ndarray, rule: Rule, baselines: np.ndarray) -> Moves:
    """The tasks whose absence reorders methods."""
    full = rank(q, rule, baselines).final
    moves: Moves = {}
    for out in range(q.shape[0] if q.shape[0] > 1 else 0):
        moves[out] = _moved(np.arange(q.shape[1]), full, rank(np.delete(q, out, axis=0), rule, baselines).final)
    return {out: moved for out, moved in moves.items() if moved}


def _moved(methods: np.ndarray, before: np.ndarray, after: np.ndarray) -> dict[int, tuple[int, int]]:
    return {int(methods[i]): (int(before[i]), int(after[i])) for i in np.flatnonzero(before != after)}


def furthest(final: np.ndarray, moves: Moves) -> np.ndarray:
    """The ranks with which each method moves furthest from its own; of two as far, the worse."""
    shift = np.zeros_like(final)
    for moved in moves.values():
        for m, (before, after) in moved.items():
            shift[m] = max(shift[m], after - before, key=lambda places: (abs(places), places))
    moved_to: np.ndarray = final + shift
    return moved_to
