"""A Gaussian process over results, in which every task has a spread of its own; and a factorisation of large tables.

A score is ``mean of the task + spread of the task × z``, and z has a kernel that is a sum over what two results share
before either is known: the same method, dataset, architecture, a similar size or date. The spreads are learnt with it,
drawn towards those of related tasks: a task with four results says little about its own, and everything is measured in
it. All kernels are made from the facts of a table, so another table may bring others; one is made of its scores: two
tasks are alike if they order methods alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize

from neuco_core.errors import DataError
from neuco_extensions.predict.table import Cells, Facts, ScoreTable

OWN, SHARED, OVERALL = 0.35, 0.4, 2.0  # standard deviations of the logarithm of a spread: own, per grouping, of all
LOG_VARIANCE, LOG_WIDTH = -2.5, 2.0  # what is assumed of the variance of each kernel
LOG_TASK_VARIANCE = 1.4  # of a task's mean, in its spreads: where its ends are not given, nearly nothing is assumed
ROUNDS, STEPS = 3, 12
JITTER = 1e-6
WIDTH = 0.7  # of a number, in standard deviations: how far apart two are that still say much about each other
OFFSET_RIDGE = 0.1  # of what a method or a task brings by itself
RANK, RIDGE = 12, 1.0  # of a model by itself: with many factors the ridge alone decides how many count
SWEEPS = 30
ENOUGH = 1e-5  # a round that moves no prediction of a sample of cells by more ends the search
LEAST_NOISE = 1e-6


@dataclass(frozen=True)
class Kernel:
    """A product of two parts: one over methods, one over tasks."""

    methods: np.ndarray
    tasks: np.ndarray

    def between(self, first: Cells, second: Cells) -> np.ndarray:
        """For cells, each given by the numbers of its method and task."""
        rows = self.methods[np.ix_(first[0], second[0])]
        return np.asarray(rows * self.tasks[np.ix_(first[1], second[1])])

    def at(self, cells: Cells) -> np.ndarray:
        return np.asarray(self.methods[cells[0], cells[0]] * self.tasks[cells[1], cells[1]])


def kernels(table: ScoreTable, scores_too: bool) -> list[Kernel]:
    """Each grouping of methods alone and on each grouping of tasks; numbers of methods alone; likeness if asked for."""
    everywhere, same_method = np.ones((len(table.tasks),) * 2), np.eye(len(table.methods))
    of_tasks = groupings(table.tasks, table.task_facts).values()
    products = []
    for methods in (same_method, *groupings(table.methods, table.method_facts).values()):
        products += [Kernel(methods, everywhere), *(Kernel(methods, tasks) for tasks in of_tasks)]
    if scores_too:
        products.append(Kernel(same_method, likeness(table)))
    for numbers in scales(table.methods, table.method_facts).values():
        apart = (numbers[:, None] - numbers) / WIDTH
        products.append(Kernel(np.exp(-0.5 * apart**2), everywhere))
    return products


def likeness(table: ScoreTable) -> np.ndarray:
    """How alike tasks order methods: correlations of the table with its holes filled by a factorisation."""
    count = np.maximum(table.known.sum(0), 1)
    rest = np.where(table.known, table.values - np.nansum(table.values, 0) / count, 0.0)
    spread = np.sqrt((rest**2).sum(0) / np.maximum(count - 1, 1))
    filled = factorise(rest / np.where(spread > 0, spread, 1.0), table.known, RANK, RIDGE).every
    filled = filled - filled.mean(1, keepdims=True)  # what a method brings everywhere says nothing of tasks
    filled = filled - filled.mean(0)
    size = np.sqrt((filled**2).sum(0)) + 1e-9
    return np.asarray(filled.T @ filled / np.outer(size, size))


def groupings(names: Sequence[str], facts: Facts) -> dict[str, np.ndarray]:
    """For each fact that is text: 1 where two have the same. Who says nothing is like nobody but itself."""
    matrices = {}
    for key in _keys(names, facts, str):
        values = [facts.get(name, {}).get(key) or f"\0{name}" for name in names]
        groups = np.unique(values, return_inverse=True)[1]
        if 1 < len(set(groups)) < len(names):
            matrices[key] = (groups[:, None] == groups).astype(float)
    return matrices


def scales(names: Sequence[str], facts: Facts) -> dict[str, np.ndarray]:
    """For each fact that is a number: standardised, the mean where nothing is said."""
    standardised = {}
    for key in _keys(names, facts, float):
        values = np.array([float(facts.get(name, {}).get(key, np.nan)) for name in names])
        spread = np.nanstd(values)
        if spread > 0:
            standardised[key] = np.nan_to_num((values - np.nanmean(values)) / spread)
    return standardised


def _keys(names: Sequence[str], facts: Facts, kind: type) -> list[str]:
    return sorted({key for name in names for key, value in facts.get(name, {}).items() if isinstance(value, kind)})


@dataclass
class Learnt:
    """What is learnt: logarithms of the kernels' variances with that of noise last, and of the tasks' spreads.

    Spreads are drawn towards ``centre``.
    """

    variances: np.ndarray
    spreads: np.ndarray
    centre: float


class ScoreProcess:
    def __init__(self, table: ScoreTable, likeness: bool = False) -> None:
        same = np.eye(len(table.tasks))
        everybody = np.ones((len(table.methods),) * 2)
        self.kernels: list[Kernel] = [Kernel(everybody, same), *kernels(table, likeness)]
        self.cells: Cells = table.cells
        tasks = self.cells[1]
        scores = table.values[self.cells]
        count = np.bincount(tasks, minlength=len(table.tasks))
        self._count = count.astype(float)
        sums = np.bincount(tasks, scores, minlength=len(count))
        self.means = np.where(count > 0, sums / np.maximum(count, 1), scores.mean())
        self._assumed = np.full(len(self.kernels) + 1, LOG_VARIANCE)
        self._free = np.ones(len(self._assumed))
        if table.given_ends is None:
            self._assumed[0], self._free[0] = LOG_TASK_VARIANCE, 0.0  # not learnt: few results would make it too small
        else:
            self.means[:] = scores.mean()
        self._rest = scores - self.means[tasks]
        alike = groupings(table.tasks, table.task_facts).values()
        prior = OWN**2 * np.eye(len(count)) + OVERALL**2 + sum((SHARED**2 * one for one in alike), start=np.zeros(1))
        self._precision = np.linalg.inv(prior)

    def fit(self) -> ScoreProcess:
        """Variances and spreads in turn, each with the other as it is."""
        squares = np.bincount(self.cells[1], self._rest**2, minlength=len(self._count))
        scale = max(float(np.median(np.abs(self._rest))), 1e-12)
        measured = 0.5 * np.log(squares / np.maximum(self._count - 1, 1) + (0.1 * scale) ** 2)
        self._centre = float(measured[self._count > 1].mean()) if (self._count > 1).any() else float(np.log(scale))
        spreads = np.where(self._count > 1, 0.5 * (measured + self._centre), self._centre)
        variances = self._assumed
        parts = [kernel.between(self.cells, self.cells) for kernel in self.kernels]
        for _ in range(ROUNDS):
            variances = self._fit_variances(parts, variances, spreads)
            spreads = self._fit_spreads(variances, spreads)
        self.learnt = Learnt(variances, spreads, self._centre)
        return self

    def fit_spreads(self, learnt: Learnt) -> ScoreProcess:
        """The spreads anew, with the variances found elsewhere."""
        self._centre = learnt.centre
        self.learnt = Learnt(learnt.variances, self._fit_spreads(learnt.variances, learnt.spreads), learnt.centre)
        return self

    def predict(self, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        variances, spread = np.exp(self.learnt.variances), np.exp(self.learnt.spreads)
        to_known = self._between(cells, self.cells, variances)
        z = self._rest / spread[self.cells[1]]
        mean = to_known @ (self._inverse @ z)
        variance = variances[-1]
        variance = variance + sum(v * kernel.at(cells) for v, kernel in zip(variances[:-1], self.kernels, strict=True))
        left = variance - ((to_known @ self._inverse) * to_known).sum(1)
        size = spread[cells[1]]
        return self.means[cells[1]] + mean * size, np.sqrt(np.maximum(left, JITTER)) * size

    def covariance(self, cells: Cells) -> tuple[np.ndarray, float]:
        """Between some cells, without noise, in spreads of their tasks; and the variance of the noise of a result."""
        variances = np.exp(self.learnt.variances)
        to_known, between = (self._between(cells, other, variances) for other in (self.cells, cells))
        return between - to_known @ self._inverse @ to_known.T, float(variances[-1])

    @property
    def misses(self) -> np.ndarray:
        """By how much each known score would be missed if it alone were unknown, in spreads of its task."""
        weights = self._inverse @ (self._rest / self.spreads[self.cells[1]])
        return np.asarray(weights / np.diag(self._inverse))

    @property
    def spreads(self) -> np.ndarray:
        return np.asarray(np.exp(self.learnt.spreads))

    def _between(self, first: Cells, second: Cells, variances: np.ndarray) -> np.ndarray:
        """All kernels together. Those with one part over methods are added first: that is over tasks, not cells."""
        alike: dict[bytes, Kernel] = {}
        for variance, kernel in zip(variances[:-1], self.kernels, strict=True):
            key, tasks = kernel.methods.tobytes(), variance * kernel.tasks
            alike[key] = Kernel(kernel.methods, alike[key].tasks + tasks if key in alike else tasks)
        return np.asarray(sum(kernel.between(first, second) for kernel in alike.values()))

    def _fit_variances(self, parts: list[np.ndarray], start: np.ndarray, spreads: np.ndarray) -> np.ndarray:
        """Those that make the scores most likely, and are not far from what is assumed."""
        z = self._rest / np.exp(spreads)[self.cells[1]]

        def cost(logs: np.ndarray) -> tuple[float, np.ndarray]:
            variances = np.exp(logs)
            covariance = np.zeros_like(parts[0])
            for variance, part in zip(variances[:-1], parts, strict=True):
                covariance += variance * part
            inverse, halved_log = _inverse(covariance, variances[-1])
            weights = inverse @ z
            slope = np.outer(weights, weights) - inverse
            slopes = [np.vdot(slope, part) for part in parts] + [np.trace(slope)]
            away = (logs - self._assumed) / LOG_WIDTH
            value = 0.5 * z @ weights + halved_log + 0.5 * away @ away
            return float(value), self._free * (away / LOG_WIDTH - 0.5 * variances * np.array(slopes))

        return np.asarray(minimize(cost, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x)

    def _fit_spreads(self, variances: np.ndarray, start: np.ndarray) -> np.ndarray:
        covariance = self._between(self.cells, self.cells, np.exp(variances))
        self._inverse, _ = _inverse(covariance, np.exp(variances[-1]))
        tasks = self.cells[1]

        def cost(logs: np.ndarray) -> tuple[float, np.ndarray]:
            z = self._rest / np.exp(logs)[tasks]
            weights, away = self._inverse @ z, logs - self._centre
            pulled = self._precision @ away
            value = 0.5 * z @ weights + logs[tasks].sum() + 0.5 * away @ pulled
            return float(value), self._count - np.bincount(tasks, z * weights, minlength=len(logs)) + pulled

        return np.asarray(minimize(cost, start, jac=True, method="L-BFGS-B", options={"maxiter": 100}).x)


def _inverse(covariance: np.ndarray, noise: float) -> tuple[np.ndarray, float]:
    """The inverse of a covariance with noise, and half the logarithm of its determinant."""
    factor, failed = dpotrf(covariance + (noise + JITTER) * np.eye(len(covariance)), lower=1)
    if failed:
        raise DataError("the scores' covariance cannot be inverted", where="table of results", got=f"place {failed}")
    lower = np.tril(dpotri(factor, lower=1)[0])
    return lower + np.tril(lower, -1).T, float(np.log(np.diag(factor)).sum())


@dataclass(frozen=True)
class Factors:
    """An offset and factors of each method and of each task; ``products`` is what the methods' regressions inverted.

    ``every`` has all cells of (method, task).
    """

    mean: float
    methods: np.ndarray
    tasks: np.ndarray
    products: np.ndarray

    @property
    def features(self) -> np.ndarray:
        """What a method's offset and factors are multiplied with, by task."""
        return np.concatenate([np.ones((len(self.tasks), 1)), self.tasks[:, 1:]], axis=1)

    @cached_property
    def every(self) -> np.ndarray:
        return np.asarray(self.mean + self.tasks[:, 0] + self.methods @ self.features.T)


def factorise(
    values: np.ndarray, known: np.ndarray, rank: int, ridge: float, offset: float = OFFSET_RIDGE, seed: int = 0
) -> Factors:
    """Scores as a sum of what method and task bring, and of some products of both: alternating ridge regressions.

    It learns from the known cells of (method, task). Rank 0 is additive: a mean and two offsets.

    ``offset`` is the ridge of the offsets, ``ridge`` that of the factors.
    """
    random = np.random.default_rng(seed)
    values, known = np.where(known, values, 0.0), known.astype(float)
    mean = float(values.sum() / known.sum())
    methods, tasks = (random.normal(0, 0.1, (size, rank + 1)) for size in values.shape)
    tasks[:, 0] = 0.0
    before = np.inf
    penalty = np.diag([offset, *[ridge] * rank])
    for _ in range(SWEEPS):
        methods, products = _side(values - mean - known * tasks[:, 0], known, tasks, penalty)
        tasks, _ = _side((values - mean - known * methods[:, :1]).T, known.T, methods, penalty)
        factors = Factors(mean, methods, tasks, products)
        now = methods[:100] @ factors.features.T + tasks[:, 0]
        if np.abs(now - before).max() < ENOUGH:
            break
        before = now
    return factors


def _side(rest: np.ndarray, known: np.ndarray, other: np.ndarray, penalty: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An offset and factors of each row, given those of the columns; and the matrices that were inverted for it."""
    features = np.concatenate([np.ones((len(other), 1)), other[:, 1:]], axis=1)
    squares = features[:, :, None] * features[:, None, :]
    products = (known @ squares.reshape(len(other), -1)).reshape(len(rest), *penalty.shape) + penalty
    return np.linalg.solve(products, ((rest * known) @ features)[..., None])[..., 0], products


class FactorModel:
    """For tables too large for a process, which inverts a matrix with a row per known score; here each method inverts
    one with a row per factor.

    ``predict`` and ``covariance`` are those of ``ScoreProcess``; ``misses`` are of scores that it has seen.
    """

    def __init__(self, table: ScoreTable) -> None:
        known, count = table.known, table.known.sum(0)
        overall = float(np.nanmean(table.values))
        self.means = np.where(count > 0, np.nansum(table.values, 0) / np.maximum(count, 1), overall)
        rest = np.where(known, table.values - self.means, 0.0)
        typical = np.sqrt((rest**2).sum() / known.sum())
        # As if each task had two more results of typical spread, so that one with two has no spread of 0.
        self.spreads = np.sqrt(((rest**2).sum(0) + 2 * typical**2) / (count + 2)) + 1e-12
        z = rest / self.spreads
        self._factors = factorise(z, known, RANK, RIDGE)
        self.misses = (z - self._factors.every)[known]
        self._noise = max(float((self.misses**2).mean()), LEAST_NOISE)

    def predict(self, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        columns = cells[1]
        size = self.spreads[columns]
        left = self._noise * (1 + self._unsure[cells])
        return self.means[columns] + self._factors.every[cells] * size, np.sqrt(left) * size

    def covariance(self, cells: Cells) -> tuple[np.ndarray, float]:
        rows, columns = cells
        features, covariance = self._factors.features[columns], np.zeros((len(rows),) * 2)
        for method in np.unique(rows):
            its_rows = rows == method
            covariance[np.ix_(its_rows, its_rows)] = features[its_rows] @ self._inverses[method] @ features[its_rows].T
        return self._noise * covariance, self._noise

    @cached_property
    def _inverses(self) -> np.ndarray:
        return np.linalg.inv(self._factors.products)

    @cached_property
    def _unsure(self) -> np.ndarray:
        """For all cells: the variance of what the factors say, in that of noise."""
        features = self._factors.features
        squares = (features[:, :, None] * features[:, None, :]).reshape(len(features), -1)
        return np.asarray(np.maximum(self._inverses.reshape(len(self._inverses), -1) @ squares.T, 0.0))
