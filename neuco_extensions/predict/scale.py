"""Shares and percentages are predicted as log odds, in which a point near 100 % is more than one near 50 %."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from neuco_extensions.predict.table import ranges

# Beyond these shares log odds grow without end, so that one perfect score would decide. Where many scores lie there, as
# an R² above 0.99 on every task, the ends move out with them.
LEAST, MOST = 0.005, 0.997
TAIL = 0.05


@dataclass(frozen=True)
class Scale:
    """``tops`` is by task: 1 for shares, 100 for percentages; NaN in a table that has others, which stays as it is."""

    tops: np.ndarray
    ends: tuple[float, float]

    @classmethod
    def of(cls, values: np.ndarray) -> Scale:
        low, high = ranges(values)
        if np.nanmin(low) < 0 or np.nanmax(high) > 100:  # few results of a task may be shares by chance: all or none
            return cls(np.full(len(low), np.nan), (LEAST, MOST))
        tops = np.where(np.where(np.isnan(high), np.nanmax(high), high) <= 1, 1.0, 100.0)
        shares = values / tops
        least, most = np.quantile(shares[np.isfinite(shares)], (TAIL, 1 - TAIL))
        return cls(tops, (float(np.clip(least / 2, 1e-6, LEAST)), float(np.clip((1 + most) / 2, MOST, 1 - 1e-6))))

    def to(self, values: np.ndarray) -> np.ndarray:
        """Scores whose last axis is tasks."""
        odds = logit(np.clip(values / self.tops, *self.ends))
        return np.asarray(np.where(np.isnan(self.tops), values, odds))

    def back(self, values: np.ndarray, tasks: np.ndarray) -> np.ndarray:
        """Scores of some cells, by the numbers of their tasks."""
        tops = self.tops[tasks]
        return np.asarray(np.where(np.isnan(tops), values, tops * expit(values)))
