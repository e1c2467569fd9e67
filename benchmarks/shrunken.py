"""The intervals of ranks that boards had before: ``rank_intervals.py`` compares those they have with them.

Replicates were drawn together by as much as noise had spread the board, with one covariance between tasks for all
methods. A weak method makes tasks look alike, and then what a method is good at on one of them was taken for noise.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from neuco_core.boards.stats.rank_intervals import Intervals
from neuco_core.boards.stats.ranking import DIGITS, rank
from neuco_core.boards.stats.uncertainty import TaskScores, observed_q

# How much less than the level a single interval may hold, so that the board as a whole is at the level.
SLACK = 0.03
# Noise is never taken for all there is, else every plausible board would be one great tie.
LEAST_SIGNAL = 0.01
TINY = 1e-12
# What differs by less is not told apart by a board: its numbers are rounded there.
LEVEL_BELOW = 10.0**-DIGITS


def plausible(observed: np.ndarray, replicates: np.ndarray, splits: np.ndarray) -> np.ndarray:
    """True Q that may lie behind a board: (replicates, tasks, methods), like ``replicates``.

    ``observed`` is (tasks, methods), ``splits`` the number of splits of each task. True Q, in units of the task's
    spread, is taken as normal with one variance for all tasks and one covariance between them (a method that is good
    in one is good in others); both are what the board shows beyond its noise. In the directions where noise and
    signal are independent, with the share λ of signal, the position of a method is pulled in by λ and the deviation
    of a replicate by √λ. Methods with the same scores on a task stay level there.
    """
    from scipy.linalg import eigh

    methods = observed.shape[1]
    if methods < 2:
        return replicates
    centre, spread = observed.mean(axis=1, keepdims=True), observed.std(axis=1, ddof=1, keepdims=True)
    spread = np.where(spread > LEVEL_BELOW, spread, 1.0)
    position = (observed - centre) / spread
    deviation = (replicates - replicates.mean(axis=0)) / spread
    deviation -= deviation.mean(axis=2, keepdims=True)
    noise = _noise(deviation, splits)
    signal = _signal(position * _bulk(position), noise)
    ratio, basis = eigh(signal, noise)
    ratio = np.maximum(ratio, LEAST_SIGNAL)
    share = ratio / (1 + ratio)
    back = noise @ basis  # the inverse of the transposed basis, since basisᵀ · noise · basis = 1
    pulled = (back * share) @ basis.T @ position + (back * np.sqrt(share)) @ basis.T @ deviation
    found: np.ndarray = np.round(_level(centre + spread * pulled, replicates), DIGITS)
    return found


def shrunken(tasks: list[TaskScores], replicates: np.ndarray, level: float) -> Intervals:
    """Lowest and highest rank of each method, from replicates (replicates, tasks, methods)."""
    observed = np.round(np.stack([observed_q(task) for task in tasks]), DIGITS)
    shown = rank(observed).final
    drawn = plausible(observed, replicates, np.array([task.splits.shape[1] for task in tasks]))
    low, high = rank_ranges(rank(drawn).final, level)
    return Intervals(np.minimum(low, shown), np.maximum(high, shown))


def rank_ranges(final: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest rank of each method, from final ranks (replicates, methods).

    The shortest run of ranks that holds a set share of the replicates: the least share, from ``level - SLACK`` up,
    with which the intervals of the whole board hold ``level`` of them on average.
    """
    replicates, methods = final.shape
    cells = (final - 1) * methods + np.arange(methods)
    counts = np.bincount(cells.ravel(), minlength=methods * methods).reshape(methods, methods)
    held = np.concatenate([np.zeros((1, methods), dtype=np.int64), counts.cumsum(axis=0)])

    def inside(needed: int) -> float:
        low, high = _shortest(held, needed)
        found = np.take_along_axis(held, high[None], 0) - np.take_along_axis(held, low[None] - 1, 0)
        return float(found.mean())

    shares = range(int(np.ceil((level - SLACK) * replicates)), int(np.ceil(level * replicates)))
    return _shortest(held, shares.start + bisect_left(shares, level * replicates, key=inside))


def _shortest(held: np.ndarray, needed: int) -> tuple[np.ndarray, np.ndarray]:
    """The shortest run of ranks with ``needed`` replicates, the fullest of equally short ones, for each method."""
    methods = held.shape[1]
    low, high = np.empty(methods, dtype=np.int64), np.empty(methods, dtype=np.int64)
    for m in range(methods):
        end = np.searchsorted(held[:, m], held[:-1, m] + needed)
        start = np.flatnonzero(end <= methods)
        end = end[start]
        best = np.lexsort((held[start, m] - held[end, m], end - start))[0]
        low[m], high[m] = start[best] + 1, end[best]
    return low, high


def _level(values: np.ndarray, replicates: np.ndarray) -> np.ndarray:
    """Methods with the same replicates on a task get the same values there: what they borrowed elsewhere differs."""
    for t in range(values.shape[1]):
        _, group, size = np.unique(replicates[:, t], axis=1, return_inverse=True, return_counts=True)
        for shared in np.flatnonzero(size > 1):
            same = group.ravel() == shared
            values[:, t, same] = values[:, t, same].mean(axis=1, keepdims=True)
    return values


def _noise(deviation: np.ndarray, splits: np.ndarray) -> np.ndarray:
    """The covariance between tasks of the error of Q, an average over methods."""
    replicates, tasks, methods = deviation.shape
    flat = deviation.transpose(1, 0, 2).reshape(tasks, -1)
    found = flat @ flat.T / (replicates * (methods - 1))
    # Replicates have the tails of Student's t with k - 1 degrees of freedom, whose variance is (k - 1)/(k - 3). With
    # three splits or fewer it has none, and nothing is calibrated.
    factor = np.sqrt(np.maximum(splits - 3, 1) / (splits - 1))
    found *= np.outer(factor, factor)
    covariance: np.ndarray = found + np.diag(np.maximum(1e-6 * np.diag(found), TINY))
    return covariance


def _signal(position: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The covariance between tasks of true Q: what is left of the observed one, the same for all (pairs of) tasks.

    A task that is mostly noise tells little of it, so it counts little: its noise, in units of its spread, is large.
    """
    tasks, methods = position.shape
    left = position @ position.T / (methods - 1) - noise
    clear = 1 / (1 + np.diag(noise))
    weights = np.outer(clear, clear)
    own = np.eye(tasks, dtype=bool)
    between = (weights * left)[~own].sum() / max(weights[~own].sum(), TINY)
    # Methods that stand in one order on every task show a signal, however noisy each task; chance seldom gives more
    # than two standard errors of the mean covariance.
    surely = between - 2 * np.sqrt(2 / (max(tasks * (tasks - 1), 1) * (methods - 1)))
    variance = max((weights * left)[own].sum() / weights[own].sum(), surely, 0.0)
    found: np.ndarray = np.where(own, variance, np.clip(between, 0.0, variance))
    return found


def _bulk(position: np.ndarray) -> float:
    """The spread of most methods relative to that of all: a weak baseline must not make the others look far apart."""
    methods = position.shape[1]
    low, high = np.quantile(position - np.median(position, axis=1, keepdims=True), (0.25, 0.75))
    # 1.349 is the interquartile range of a normal distribution; positions are relative to a centre that fits them.
    return float(np.clip((high - low) / 1.349 * np.sqrt(methods / (methods - 1)), 0.1, 1.0))
