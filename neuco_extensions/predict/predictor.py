"""The predictor: a Gaussian process and factorisations, mixed by how well they did on cells that they had not seen.

Intervals are as wide as those misses ask for. Nothing of a cell that is to be predicted is used for anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, ParamSpec, TypeVar, overload

import numpy as np
from scipy.optimize import nnls
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from neuco_core.errors import DataError, UsageError
from neuco_extensions.predict.process import FactorModel, Learnt, ScoreProcess, factorise
from neuco_extensions.predict.table import Cells, LogOdds, ScoreTable

# Rank, ridge of the factors, and of the offsets. Tables with holes, and methods with few results, want offsets that are
# drawn to 0; with many factors the ridge alone decides how many count.
FACTORS = ((12, 1.0, 2.0), (12, 0.2, 0.1), (12, 0.5, 0.1), (12, 1.0, 0.1))
OF_MISSES = (3, 1.0, 2.0)
FOLDS = 8
P = ParamSpec("P")
T = TypeVar("T")
LEVEL = 0.95
ScoreModel = ScoreProcess | FactorModel  # the second where a table is too large for the first
NORMAL = 1.959964  # of a normal distribution, 95 % lie within so many standard deviations
# A prediction may leave the known range of its task by a fifth of it. Few results do, and those that a model would
# put further out are mostly wrong: without it a single cell of 820 can double the error of all.
BEYOND = 0.2
LEAST_CELLS = 4
LARGEST = 2000  # known scores; a process takes half a minute with so many, and eight times that with twice
DENSE = 0.5  # share of known scores from which on they tell how alike tasks are; with a fifth that made errors larger


def in_one_thread(method: Callable[P, T]) -> Callable[P, T]:
    """Two threads on matrices of this size take several times as long as one."""
    wrapped: Callable[P, T] = ThreadpoolController().wrap(limits=1)(method)
    return wrapped


@dataclass(frozen=True)
class Mix:
    """What is learnt from cells held back: shares of the parts, and how much wider intervals must be.

    ``error`` is how far off predictions were, in spreads of their tasks, at the median; ``mean_error`` the same of the
    mean of each task. ``learnt`` is of the process; None where the table is too large for one.
    """

    likeness: bool
    learnt: Learnt | None
    shares: np.ndarray
    widen: float
    error: float
    mean_error: float


class Predictor:
    """As in scikit-learn: ``fit(table)``, then ``predict(return_std=True)`` gives all cells of the table."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def get_params(self, deep: bool = True) -> dict[str, int]:
        return {"seed": self.seed}

    @in_one_thread
    def fit(self, table: ScoreTable) -> Predictor:
        if not isinstance(table, ScoreTable):
            raise UsageError("only a table can be fitted", expected="a ScoreTable", got=type(table).__name__)
        if len(table.cells[0]) < LEAST_CELLS:
            raise DataError("too few results to learn from", expected=f"at least {LEAST_CELLS}", got=repr(table))
        self._begin(table)
        likeness = bool(table.known.mean() >= DENSE)
        large = len(table.cells[0]) > LARGEST
        self.process = FactorModel(self._moved) if large else ScoreProcess(self._moved, likeness).fit()
        self.mix = self._mixed(likeness)
        return self

    @property
    def limits(self) -> str:
        """What the table's size did not allow; nothing for most."""
        alone = "factorisation alone, without what is known about methods and tasks"
        return "" if isinstance(self.process, ScoreProcess) else f"More than {LARGEST} scores are known: {alone}."

    def refit(self, table: ScoreTable, mix: Mix) -> Predictor:
        """From a table with the same names, with the shares and kernels that were learnt on another part of it."""
        self._begin(table)
        self.mix = mix
        self.process = _process(self._moved, mix.likeness, mix.learnt)
        return self

    @overload
    def predict(self, return_std: Literal[False] = False) -> np.ndarray: ...
    @overload
    def predict(self, return_std: Literal[True]) -> tuple[np.ndarray, np.ndarray]: ...
    def predict(self, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Each cell (method, task); the standard deviation is a half of the 95 % interval by 1.96."""
        low, high = self.interval()
        return (self.scores, (high - low) / 2 / NORMAL) if return_std else self.scores

    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        return self._every[1:]

    @property
    def scores(self) -> np.ndarray:
        return self._every[0]

    @in_one_thread
    def at(self, cells: Cells) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        parts, deviation = _parts(self.process, self._moved, cells, self.seed)
        mean, half = parts @ self.mix.shares, NORMAL * self.mix.widen * deviation
        low, high = (end[cells[1]] for end in self.table.ends)
        room = np.nan_to_num(BEYOND * (high - low), nan=np.inf)
        lowest, highest = np.nan_to_num(low, nan=-np.inf) - room, np.nan_to_num(high, nan=np.inf) + room
        scores, *ends = (self._scale.back(values, cells[1]) for values in (mean, mean - half, mean + half))
        limits = [limit[cells[1]] for limit in self.table.limits]
        score, low, high = (np.clip(values, *limits) for values in (np.clip(scores, lowest, highest), *ends))
        return score, np.minimum(low, score), np.maximum(high, score)

    @cached_property
    def _every(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if not hasattr(self, "mix"):
            raise UsageError("nothing has been learnt", hint="Call fit(table) first")
        shape = self.table.values.shape
        cells: Cells = np.nonzero(np.ones(shape, bool))  # type: ignore[assignment]
        scores, low, high = (part.reshape(shape) for part in self.at(cells))
        return scores, low, high

    def _begin(self, table: ScoreTable) -> None:
        self.table, self._scale = table, LogOdds.of(table.values)
        self.__dict__.pop("_every", None)  # of a table before
        low, high = (self._scale.to(end) for end in table.ends)
        given = None if table.given_ends is None else (low, high)
        self._moved = replace(table, values=self._scale.to(table.values), given_ends=given)

    def _mixed(self, likeness: bool) -> Mix:
        """Hold back an eighth of the cells after the other, and see what each part says of them.

        In a large table one eighth says enough.
        """
        learnt = self.process.learnt if isinstance(self.process, ScoreProcess) else None
        table = self._moved
        order = np.random.default_rng(self.seed).permutation(len(table.cells[0]))
        held = np.array_split(order, min(FOLDS, len(order)))[: 1 if learnt is None else FOLDS]
        answers = []
        for hidden in held:
            rest = table.without(hidden)
            process = _process(rest, likeness, learnt)
            cells: Cells = tuple(numbers[hidden] for numbers in table.cells)  # type: ignore[assignment]
            answers.append((*_parts(process, rest, cells, self.seed), process.means[cells[1]]))
        predicted, deviations, means = (np.concatenate(parts) for parts in zip(*answers, strict=True))
        rows, columns = (numbers[np.concatenate(held)] for numbers in table.cells)
        truth, spread = table.values[rows, columns], self.process.spreads[columns]
        low, high = (end[columns] for end in table.ends)
        width = np.where(high > low, high - low, spread)  # a task with a small spread must not decide
        parts, known = predicted / width[:, None], truth / width
        fold = np.repeat(np.arange(len(held)), [len(hidden) for hidden in held])
        shares = _shares(parts, known)
        # Shares that were learnt on the very same misses make them too small, above all where there are few.
        others = [fold != one for one in range(len(held))]
        apart = [_shares(parts[rest], known[rest]) if rest.any() else shares for rest in others]
        misses = np.abs(truth - (predicted * np.stack(apart)[fold]).sum(1))
        # Of few misses the largest 5 % are not known well: the level is that of conformal prediction.
        level = min(1.0, LEVEL * (1 + 1 / len(misses)))
        widen = float(np.quantile(misses / deviations, level)) / NORMAL
        off = (float(np.median(error / spread)) for error in (misses, np.abs(truth - means)))
        return Mix(likeness, learnt, shares, widen, *off)


def _process(table: ScoreTable, likeness: bool, learnt: Learnt | None) -> ScoreModel:
    return FactorModel(table) if learnt is None else ScoreProcess(table, likeness).fit_spreads(learnt)


def _parts(process: ScoreModel, table: ScoreTable, cells: Cells, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What the process, the same with its misses factorised, and each factorisation say, and how sure it is."""
    mean, deviation = process.predict(cells)
    size, misses = process.spreads[cells[1]], np.zeros(table.values.shape)
    misses[table.cells] = process.misses
    answers = [mean, mean + size * factorise(misses, table.known, *OF_MISSES, seed).every[cells]]
    z = (table.values - process.means) / process.spreads
    answers += [process.means[cells[1]] + size * factorise(z, table.known, *how, seed).every[cells] for how in FACTORS]
    return np.stack(answers, axis=1), deviation


def _shares(parts: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Shares of the parts that sum to 1 and miss least: those of the misses' own smallest sum."""
    limit = np.quantile(np.abs(parts - truth[:, None]), 0.99)  # a few wild cells must not decide
    misses = np.clip(parts - truth[:, None], -limit, limit)
    # NNLS has no equality constraint: one heavily weighted row makes the shares sum to 1.
    strong = 1e3 * np.sqrt((misses**2).sum())
    shares = nnls(np.vstack([misses, np.full(parts.shape[1], strong)]), np.append(np.zeros(len(truth)), strong))[0]
    if not shares.sum() > 0:  # all parts are right, as where all scores are equal
        shares[0] = 1.0
    return np.asarray(shares / shares.sum())
