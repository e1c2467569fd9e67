"""Which methods can be told apart, from replicates of a board.

All pairs are judged at once: the critical value is a quantile of the largest studentised difference, so that of
equal methods none is told apart on 95 % of boards.

A rank is a step function of the scores, and the bootstrap is too sure of steps: judged by weighted ranks alone, a
third of simulated boards told equal methods apart. So the test is made on the smooth counterpart of the weighted
rank, the weighted mean of standardised Q; and a pair that passes it must also stand in that order by weighted rank
in nearly all replicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

TINY = 1e-9


class Pairs(NamedTuple):
    """Of all pairs, (methods, methods): in which share of the replicates the first is ``behind`` the second, and
    whether the two are ``apart``, all pairs judged at once."""

    behind: np.ndarray
    apart: np.ndarray


def judge_pairs(smooth: np.ndarray, ranked: np.ndarray, level: float) -> Pairs:
    """From replicates (replicates, methods), lower is better: the smooth view, which is judged, and weighted ranks."""
    mean, error = smooth.mean(axis=0), _errors(smooth)
    critical = np.quantile([_largest(row, error) for row in smooth - mean], level)
    behind, nearly_all = _behind(smooth), (1 + level) / 2
    worse = (behind >= nearly_all) & (_behind(ranked) >= nearly_all) & ((mean[:, None] - mean) / error > critical)
    return Pairs(behind, worse | worse.T)


def _behind(values: np.ndarray) -> np.ndarray:
    """How often each column has more than each other one."""
    return np.stack([(column[:, None] > values).mean(axis=0) for column in values.T])


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
    runs: list[list[int]] = []
    end = 0
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and not apart[order[stop], order[start:stop]].any():
            stop += 1
        if stop - start > 1 and stop > end:
            runs.append(list(order[start:stop]))
            end = stop
    return runs


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
