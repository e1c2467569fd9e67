"""Which methods can be told apart, from replicates of a board.

Percentiles of bootstrapped ranks are too narrow where many methods are close (Hall and Miller, Annals of
Statistics 37, 2009), so ranks are bounded by comparisons instead: a method's rank lies between 1 + the number of
methods that are surely better and the number of methods that are not surely worse, each pair judged by itself.
For groups all pairs are judged at once: the critical value is a quantile of the largest studentised difference.

A rank is a step function of the scores, and the bootstrap is too sure of steps: judged by weighted ranks alone, a
third of simulated boards told equal methods apart. So the test is made on the smooth counterpart of the weighted
rank, the weighted mean of standardised Q; and a pair that passes it must also stand in that order by weighted rank
in nearly all replicates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

TINY = 1e-9


@dataclass(frozen=True)
class Separation:
    """Bounds of each method's rank; which pairs are apart, right for all pairs at once."""

    low: np.ndarray
    high: np.ndarray
    apart: np.ndarray


def separate(smooth: np.ndarray, ranked: np.ndarray, level: float) -> Separation:
    """Compare all methods; both are (replicates, methods), less is better: the smooth view, and weighted ranks."""
    mean, error = smooth.mean(axis=0), _errors(smooth)
    largest = [_largest(row, error) for row in smooth - mean]
    critical = NormalDist().inv_cdf((1 + level) / 2)
    for_all = np.quantile(largest, level)
    distance = (mean[:, None] - mean) / error
    behind = np.stack([(column[:, None] > ranked).mean(axis=0) for column in ranked.T]) >= (1 + level) / 2
    # Entry (i, j): whether method j is surely better than i, and surely worse.
    better, worse = (distance > critical) & behind, (distance < -critical) & behind.T
    above = (distance > for_all) & behind
    return Separation(1 + better.sum(axis=1), len(mean) - worse.sum(axis=1), above | above.T)


def share_apart(observed: np.ndarray, replicates: np.ndarray, level: float) -> float:
    """The share of pairs whose difference is surely not 0, each pair judged by itself."""
    methods = replicates.shape[1]
    if methods < 2:
        return 0.0
    distance = np.abs(observed[:, None] - observed) / _errors(replicates)
    apart = distance > NormalDist().inv_cdf((1 + level) / 2)
    return float(apart.sum() / (methods * (methods - 1)))


def groups(order: Sequence[int], apart: np.ndarray) -> list[list[int]]:
    """Runs of neighbours in ``order`` of whom no two can be told apart; runs inside a longer run are left out."""
    return list(_runs(order, apart))


def _runs(order: Sequence[int], apart: np.ndarray) -> Iterator[list[int]]:
    end = 0
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and not apart[order[stop], order[start:stop]].any():
            stop += 1
        if stop - start > 1 and stop > end:
            yield list(order[start:stop])
            end = stop


def _errors(replicates: np.ndarray) -> np.ndarray:
    """The standard error of each difference, (methods, methods); never 0."""
    covariance = np.atleast_2d(np.cov(replicates, rowvar=False))
    variance = np.diag(covariance)
    error: np.ndarray = np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, TINY**2))
    return error


def _largest(row: np.ndarray, error: np.ndarray) -> float:
    difference = np.abs(np.subtract.outer(row, row))
    difference /= error
    return float(difference.max())
