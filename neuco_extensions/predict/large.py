"""For tables too large for a Gaussian process: factors alone, and how sure a ridge regression is of them.

A process inverts a matrix with a row per known score; here each method inverts one with a row per factor.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from neuco_extensions.predict.factor import fit_factors
from neuco_extensions.predict.process import JITTER, Cells
from neuco_extensions.predict.table import Table

RANK, RIDGE = 12, 1.0


class Large:
    """``predict`` and ``covariance`` are those of ``Process``; ``misses`` are of scores that it has seen."""

    def __init__(self, table: Table) -> None:
        known, count = table.known, table.known.sum(0)
        overall = float(np.nanmean(table.values))
        self.means = np.where(count > 0, np.nansum(table.values, 0) / np.maximum(count, 1), overall)
        rest = np.where(known, table.values - self.means, 0.0)
        typical = np.sqrt((rest**2).sum() / known.sum())
        # As if each task had two more results of typical spread, so that one with two has no spread of 0.
        self.spreads = np.sqrt(((rest**2).sum(0) + 2 * typical**2) / (count + 2)) + 1e-12
        z = rest / self.spreads
        self._factors = fit_factors(z, known, RANK, RIDGE)
        self.misses = (z - self._factors.every())[known]
        self._noise = max(float((self.misses**2).mean()), JITTER)

    def predict(self, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        columns = cells[1]
        size = self.spreads[columns]
        left = self._noise * (1 + self._unsure[cells])
        return self.means[columns] + self._every[cells] * size, np.sqrt(left) * size

    def covariance(self, cells: Cells) -> tuple[np.ndarray, float]:
        rows, columns = cells
        features, found = self._factors.features[columns], np.zeros((len(rows),) * 2)
        for method in np.unique(rows):
            own = rows == method
            found[np.ix_(own, own)] = features[own] @ self._inverses[method] @ features[own].T
        return self._noise * found, self._noise

    @cached_property
    def _every(self) -> np.ndarray:
        return self._factors.every()

    @cached_property
    def _inverses(self) -> np.ndarray:
        return np.linalg.inv(self._factors.products)

    @cached_property
    def _unsure(self) -> np.ndarray:
        """For all cells: the variance of what the factors say, in that of noise."""
        features = self._factors.features
        squares = (features[:, :, None] * features[:, None, :]).reshape(len(features), -1)
        return np.asarray(np.maximum(self._inverses.reshape(len(self._inverses), -1) @ squares.T, 0.0))
