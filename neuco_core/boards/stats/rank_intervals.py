"""Which final ranks are plausible for each method, and which methods can be told apart, from replicates of a board.

**Intervals of ranks** unite what can be said in three ways, so that they contradict none of them:

- the rank on the board, and the ranks in the middle 95 % of the replicates;
- the places from behind the methods that are surely better (in 97.5 % of the replicates) to behind those that may be
  (in more than 2.5 %), each pair judged by itself. Where methods are close these are more: what is observed has already
  been spread by noise, each replicate spreads it further, and percentiles of ranks are too sure (Hall and Miller,
  Annals of Statistics 37, 2009);
- a rank in common with each method that is not told apart from it when all pairs are judged at once, as groups are.

**Pairs** are judged all at once, by mean scores alone: a paired t-test of each difference over the splits, with the
p-values of Holm (Scandinavian Journal of Statistics 6, 1979), so that of equal methods none is told apart on 95 % of
boards. A pair that passes it must also stand in that order on the board. Ranks follow Q, which is divided by the spread
over splits. That is known to few digits only: a test of Q or of weighted ranks holds its level less often, and finds
a third of the differences (`python benchmarks/rank_intervals.py --pairs` measures both).
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from neuco_core.scoring.compare import holm

TINY = 1e-9  # the least standard error of a difference: equal methods differ by nothing, and 0/0 tells nothing


class Intervals(NamedTuple):
    """Lower and upper ends, by method."""

    low: np.ndarray
    high: np.ndarray


class Pairs(NamedTuple):
    """Of all pairs, (methods, methods): in which share of the replicates the first is ``behind`` the second, and
    whether the two are ``apart``, all pairs judged at once."""

    behind: np.ndarray
    apart: np.ndarray


def percentiles(values: np.ndarray, level: float, method: str = "linear") -> Intervals:
    """The middle share of the replicates, the first axis."""
    tail = (1 - level) / 2
    low, high = np.quantile(values, (tail, 1 - tail), axis=0, method=method)  # type: ignore[call-overload]
    return Intervals(low, high)


def rank_ranges(shown: np.ndarray, replicates: np.ndarray, pairs: Pairs, level: float) -> Intervals:
    """Lowest and highest rank of each method, from the ranks on the board and on replicates (replicates, methods)."""
    middle = percentiles(replicates, level, "inverted_cdf")
    surely, maybe = pairs.behind >= (1 + level) / 2, pairs.behind > (1 - level) / 2
    low = np.minimum.reduce([shown, middle.low, 1 + surely.sum(axis=1)])
    high = np.maximum.reduce([shown, middle.high, 1 + maybe.sum(axis=1)])
    return meeting(low, high, pairs.apart)


def meeting(low: np.ndarray, high: np.ndarray, apart: np.ndarray) -> Intervals:
    """Intervals of methods that are not told apart meet half-way, if they do not already."""
    short = ~apart & (high[:, None] < low)
    half = (high[:, None] + low) // 2
    return Intervals(
        np.minimum(low, np.where(short, half, low).min(axis=0)),
        np.maximum(high, np.where(short, half, high[:, None]).max(axis=1)),
    )


class Contrasts(NamedTuple):
    """Of all pairs, (methods, methods): how much better the first is than the second, and the standard error of that,
    which is known with so many degrees of ``freedom``."""

    better: np.ndarray
    error: np.ndarray
    freedom: int

    def sure(self, level: float) -> np.ndarray:
        """Which of them are surely not 0, all judged at once."""
        from scipy.special import stdtr  # heavy: boards are listed without it

        first, second = np.triu_indices(len(self.better), 1)
        t = np.abs(self.better) / self.error
        adjusted = holm(2 * stdtr(self.freedom, -t)[first, second])
        apart = np.zeros(self.better.shape, dtype=bool)
        apart[first, second] = apart[second, first] = np.array(adjusted) <= 1 - level
        return apart


def share_behind(replicates: np.ndarray) -> np.ndarray:
    """In which share of the replicates (replicates, methods) the first of a pair is behind; lower is better."""
    return np.stack([(column[:, None] > replicates).mean(axis=0) for column in replicates.T])


def share_apart(observed: np.ndarray, replicates: np.ndarray, level: float) -> float:
    """The share of pairs whose difference is surely not 0, each pair judged by itself."""
    methods = replicates.shape[1]
    if methods < 2:
        return 0.0
    error = error_of_differences(np.cov(replicates, rowvar=False))
    distance = np.abs(observed[:, None] - observed) / error
    apart = distance > NormalDist().inv_cdf((1 + level) / 2)
    return float(apart.sum() / (methods * (methods - 1)))


def error_of_differences(covariance: np.ndarray) -> np.ndarray:
    """The standard error of each difference, (methods, methods); never 0."""
    variance = np.diag(covariance)
    error: np.ndarray = np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, TINY**2))
    return error


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
