"""Shares and percentages are predicted as log odds, in which a point near 100 % is more than one near 50 %."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from neuco_core.capabilities.table import ranges

# Beyond these shares log odds grow without end, so that one perfect score would decide. Where many scores lie there, as
# an R² above 0.99 on every task, the ends move out with them.
LEAST, MOST = 0.005, 0.997
TAIL = 0.05


@dataclass(frozen=True)
class Scale:
    """``tops`` is by task: 1 for shares, 100 for percentages, NaN for what is neither and stays as it is."""

    tops: np.ndarray
    ends: tuple[float, float]

    @classmethod
    def of(cls, values: np.ndarray) -> Scale:
        low, high = ranges(values)
        untold = np.isnan(low)  # a task without scores: as all others together
        tops = _top(np.where(untold, np.nanmin(low), low), np.where(untold, np.nanmax(high), high))
        shares = (values / tops)[np.isfinite(values / tops)]
        if not shares.size:
            return cls(tops, (LEAST, MOST))
        low, high = np.quantile(shares, (TAIL, 1 - TAIL))
        return cls(tops, (float(np.clip(low / 2, 1e-6, LEAST)), float(np.clip((1 + high) / 2, MOST, 1 - 1e-6))))

    def to(self, values: np.ndarray) -> np.ndarray:
        """Scores whose last axis is tasks."""
        odds = logit(np.clip(values / self.tops, *self.ends))
        return np.asarray(np.where(np.isnan(self.tops), values, odds))

    def back(self, values: np.ndarray, tasks: np.ndarray) -> np.ndarray:
        """Scores of some cells, by the numbers of their tasks."""
        tops = self.tops[tasks]
        return np.asarray(np.where(np.isnan(tops), values, tops * expit(values)))


def _top(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return np.where(low < 0, np.nan, np.where(high <= 1, 1.0, np.where(high <= 100, 100.0, np.nan)))
