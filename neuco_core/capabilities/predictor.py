"""The predictor: a Gaussian process and factorisations, mixed by how well each did on cells that it had not seen.

Intervals are as wide as those misses ask for. Nothing of a cell that is to be predicted is used for anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from neuco_core.capabilities.factor import factorise
from neuco_core.capabilities.process import Cells, Learnt, Process
from neuco_core.capabilities.table import Table
from neuco_core.errors import DataError

# Rank and ridge. Few factors suit tables with holes; with many, the ridge alone decides how many count, which suits
# dense ones.
FACTORS = ((0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0), (12, 0.2), (12, 0.5), (12, 1.0))
FOLDS = 8
LEVEL = 0.95
NORMAL = 1.959964  # of a normal distribution, 95 % lie within so many standard deviations
# A prediction may leave the known range of its task by a fifth of it. Few results do, and those that a model would
# put further out are mostly wrong: without it a single cell of 820 can double the error of all.
BEYOND = 0.2
LEAST_CELLS = 4
DENSE = 0.5  # share of known scores from which on they tell how alike tasks are; with a fifth that made errors larger
FEW = 3  # results of a method: with fewer, only the process, which knows its facts, has anything to say


@dataclass(frozen=True)
class Scale:
    """Shares and percentages are predicted as log odds, in which a point near 100 % is more than one near 50 %."""

    top: float | None

    @classmethod
    def of(cls, values: np.ndarray) -> Scale:
        known = values[np.isfinite(values)]
        within = known.size and known.min() >= 0
        return cls(1.0 if within and known.max() <= 1 else 100.0 if within and known.max() <= 100 else None)

    def to(self, values: np.ndarray) -> np.ndarray:
        if self.top is None:
            return values
        share = np.clip(values / self.top, 0.005, 0.997)
        return np.asarray(np.log(share / (1 - share)))

    def back(self, values: np.ndarray) -> np.ndarray:
        return values if self.top is None else np.asarray(self.top / (1 + np.exp(-values)))


@dataclass(frozen=True)
class Mix:
    """What is learnt from cells held back: shares of the parts, and how much wider intervals must be.

    ``error`` is how far off predictions were, in spreads of their tasks, at the median; ``mean_error`` the same of the
    mean of each task.
    """

    likeness: bool
    learnt: Learnt
    centre: float
    shares: np.ndarray
    widen: float
    error: float
    mean_error: float


class Predictor:
    """As in scikit-learn: ``fit(table)``, then ``predict(return_std=True)`` gives all cells of the table."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def __repr__(self) -> str:
        return f"Predictor(seed={self.seed})"

    def fit(self, table: Table) -> Predictor:
        if len(table.cells[0]) < LEAST_CELLS:
            raise DataError("too few results to learn from", expected=f"at least {LEAST_CELLS}", got=repr(table))
        self._begin(table)
        likeness = bool(table.known.mean() >= DENSE)
        whole = Process(self._moved, likeness).fit()
        self.mix = self._mixed(whole, likeness)
        return self._finish(whole)

    def refit(self, table: Table, mix: Mix) -> Predictor:
        """From a table with the same names, with the shares and kernels that were learnt on another part of it."""
        self._begin(table)
        self.mix = mix
        return self._finish(Process(self._moved, mix.likeness).fit_spreads(mix.learnt, mix.centre))

    def predict(self, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Each cell (method, task); the standard deviation is a half of the 95 % interval by 1.96."""
        low, high = self.interval()
        return (self.scores, (high - low) / 2 / NORMAL) if return_std else self.scores

    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        half = NORMAL * self.mix.widen * self._deviation
        return self._scale.back(self._mean - half), self._scale.back(self._mean + half)

    def _begin(self, table: Table) -> None:
        self.table, self._scale = table, Scale.of(table.values)
        low, high = (self._scale.to(end) for end in table.ends)
        given = None if table.given_ends is None else (low, high)
        self._moved = replace(table, values=self._scale.to(table.values), given_ends=given)

    def _finish(self, process: Process) -> Predictor:
        self.process = process
        rows, columns = np.nonzero(np.ones(self.table.values.shape, bool))
        parts, deviation = _parts(process, self._moved, (rows, columns), self.seed)
        shape = self.table.values.shape
        mixed = np.where((self.table.known.sum(1) < FEW)[rows], parts[:, 0], parts @ self.mix.shares)
        self._mean, self._deviation = mixed.reshape(shape), deviation.reshape(shape)
        low, high = self.table.ends
        room = np.nan_to_num(BEYOND * (high - low), nan=np.inf)
        scores = self._scale.back(self._mean)
        self.scores = np.clip(scores, np.nan_to_num(low, nan=-np.inf) - room, np.nan_to_num(high, nan=np.inf) + room)
        return self

    def _mixed(self, whole: Process, likeness: bool) -> Mix:
        """Hold back an eighth of the cells after the other, and see what each part says of them."""
        table = self._moved
        rows, columns = table.cells
        order = np.random.default_rng(self.seed).permutation(len(rows))
        parts, deviations, means = np.empty((len(rows), len(FACTORS) + 1)), np.empty(len(rows)), np.empty(len(rows))
        for hidden in np.array_split(order, min(FOLDS, len(rows))):
            rest = table.without(hidden)
            process = Process(rest, likeness).fit_spreads(whole.learnt, whole.centre)
            cells = rows[hidden], columns[hidden]
            parts[hidden], deviations[hidden] = _parts(process, rest, cells, self.seed)
            means[hidden] = process.means[columns[hidden]]
        truth, spread = table.values[rows, columns], np.exp(whole.learnt.spreads)[columns]
        shares = _shares(parts / spread[:, None], truth / spread)
        misses = np.abs(truth - parts @ shares)
        widen = float(np.quantile(misses / deviations, LEVEL)) / NORMAL
        off = (float(np.median(error / spread)) for error in (misses, np.abs(truth - means)))
        return Mix(likeness, whole.learnt, whole.centre, shares, widen, *off)


def _parts(process: Process, table: Table, cells: Cells, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What the process and each factorisation say of some cells, and how sure the process is."""
    mean, deviation = process.predict(cells)
    spread = np.exp(process.learnt.spreads)
    z = (table.values - process.means) / spread
    found = [mean]
    for rank, ridge in FACTORS:
        every = factorise(z, table.known, rank, ridge, seed)
        found.append(every[cells] * spread[cells[1]] + process.means[cells[1]])
    return np.stack(found, axis=1), deviation


def _shares(parts: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Shares of the parts that sum to 1 and miss least: those of the misses' own smallest sum."""
    limit = np.quantile(np.abs(parts - truth[:, None]), 0.99)  # a few wild cells must not decide
    misses = np.clip(parts - truth[:, None], -limit, limit)
    strong = 1e3 * np.sqrt((misses**2).sum())
    shares = nnls(np.vstack([misses, np.full(parts.shape[1], strong)]), np.append(np.zeros(len(truth)), strong))[0]
    return np.asarray(shares / shares.sum())
