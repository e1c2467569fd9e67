"""Which final ranks are plausible for each method, from replicates of a board.

An interval unites what can be said in three ways, so that it contradicts none of them:

- the rank on the board, and the ranks in the middle 95 % of the replicates;
- the places from behind the methods that are surely better (in 97.5 % of the replicates) to behind those that may be
  (in more than 2.5 %), each pair judged by itself. Where methods are close these are more: what is observed has already
  been spread by noise, each replicate spreads it further, and percentiles of ranks are too sure (Hall and Miller,
  Annals of Statistics 37, 2009);
- a rank in common with each method that is not told apart from it when all pairs are judged at once, as groups are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neuco_core.boards.stats.separation import Pairs


class Intervals(NamedTuple):
    """Lower and upper ends, by method."""

    low: np.ndarray
    high: np.ndarray


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
