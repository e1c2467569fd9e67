"""How well unknown scores are predicted: by cross-validation over cells, and for methods with few results.

Errors are in gaps (see ``gaps``) of the whole table, so that all predictors are measured alike. Two protocols: the
paper predicts gaps that were computed from the whole table, so that a hidden cell that is its task's best or worst is
partly told; ``honest`` shows a predictor nothing but the scores of the other cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from neuco_core.boards.stats.diagnostics import spearman
from neuco_core.capabilities.encoders import DISTANCES, fit_gaps
from neuco_core.capabilities.factor import factorise
from neuco_core.capabilities.predictor import Predictor
from neuco_core.capabilities.table import Table, gaps, ranges
from neuco_core.errors import UsageError

FOLD = 10  # cells
SPREADS = 3.0  # gaps have a standard deviation of about a third; the ridge of a factorisation is meant for one of 1
GROUPS = 8  # kernels and shares are learnt once for so many parts of the folds, from none of their cells
Protocol = Literal["paper", "honest"]


@dataclass(frozen=True)
class Outcome:
    """Predictions of hidden cells: ``cells`` by number, predicted and true gaps, and who lies in its interval."""

    name: str
    cells: np.ndarray
    predicted: np.ndarray
    truth: np.ndarray
    covered: np.ndarray | None = None

    @property
    def errors(self) -> np.ndarray:
        return np.asarray((self.predicted - self.truth) ** 2)

    @property
    def mse(self) -> float:
        return float(self.errors.mean())

    @property
    def order(self) -> float | None:
        return spearman(self.predicted, self.truth)

    @property
    def coverage(self) -> float | None:
        return None if self.covered is None else float(self.covered.mean())


Made = tuple[np.ndarray, np.ndarray | None, np.ndarray | None]  # scores of hidden cells, and both ends of intervals
Ends = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]  # worst and best score of each task, as far as is known
Model = Callable[[Table, Sequence[np.ndarray], Ends], Made]


def folds(table: Table, seed: int = 0, size: int = FOLD) -> list[np.ndarray]:
    """All known cells, ``size`` at a time; what is left over joins some of them."""
    count = len(table.cells[0])
    order = np.random.default_rng(seed).permutation(count)
    return list(np.array_split(order, max(2, count // size)))


def cross_validate(table: Table, name: str, protocol: Protocol = "honest", seed: int = 0) -> Outcome:
    """One of ``MODELS``, or ``l2-5`` and the like: an encoder of the paper with its dimension."""
    shown, ends = _shown(table, protocol)
    hidden = folds(table, seed)
    return _outcome(name, shown, np.concatenate(hidden), model(name)(shown, hidden, ends))


def _shown(table: Table, protocol: Protocol) -> tuple[Table, Ends]:
    """What is predicted. In the paper it is known beforehand that gaps go from 0 to 1; here they are negative."""
    if protocol == "honest":
        return table, ranges
    one = np.ones(len(table.tasks))
    ends = -one, 0 * one
    return replace(table, values=-gaps(table.values), given_ends=ends), lambda values: ends


def model(name: str) -> Model:
    kind, _, dimension = name.partition("-")
    if kind in DISTANCES and dimension.isdigit():
        return lambda table, hidden, ends: _by_distance(table, hidden, ends, kind, int(dimension))
    if name not in MODELS:
        expected = f"one of {', '.join(MODELS)}, or {', '.join(DISTANCES)} with a dimension, such as l2-5"
        raise UsageError(f"unknown predictor {name!r}", expected=expected)
    return MODELS[name]


def _outcome(name: str, shown: Table, cells: np.ndarray, made: Made) -> Outcome:
    """Scores as gaps of the whole table."""
    rows, columns = (place[cells] for place in shown.cells)
    low, high = ranges(shown.values)
    width = np.where(high > low, high - low, 1.0)[columns]
    best, score = high[columns], shown.values[rows, columns]
    scores, lows, highs = made
    covered = None if lows is None or highs is None else (lows <= score) & (score <= highs)
    return Outcome(name, cells, (best - scores) / width, (best - score) / width, covered)


def _mean(table: Table, hidden: Sequence[np.ndarray], ends: Ends) -> Made:
    """The mean gap of all other cells, whatever the method and the task."""
    found = []
    for cells in hidden:
        rest = table.without(cells)
        low, high = ends(rest.values)
        mean = np.nanmean(_gaps(rest.values, low, high))
        found.append((high - mean * (high - low))[table.cells[1][cells]])
    return np.concatenate(found), None, None


def _factor(rank: int, ridge: float) -> Model:
    def made(table: Table, hidden: Sequence[np.ndarray], ends: Ends) -> Made:
        found = []
        for cells in hidden:
            rest = table.without(cells)
            low, high = ends(rest.values)
            every = factorise(SPREADS * _gaps(rest.values, low, high), rest.known, rank, ridge) / SPREADS
            found.append((high - every * (high - low))[tuple(place[cells] for place in table.cells)])
        return np.concatenate(found), None, None

    return made


def _by_distance(table: Table, hidden: Sequence[np.ndarray], ends: Ends, distance: str, dimension: int) -> Made:
    parts = [table.without(cells).values for cells in hidden]
    shown = np.stack([_gaps(values, *ends(values)) for values in parts])
    predicted = fit_gaps(shown, np.isfinite(shown), distance, dimension)
    found = []
    for values, gap, cells in zip(parts, predicted, hidden, strict=True):
        low, high = ends(values)
        found.append((high - gap * (high - low))[tuple(place[cells] for place in table.cells)])
    return np.concatenate(found), None, None


def _gaps(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return np.asarray((high - values) / np.where(high > low, high - low, 1.0))


def _predictor(table: Table, hidden: Sequence[np.ndarray], ends: Ends) -> Made:
    """Kernels, shares and widths are learnt once for every eighth of the folds, without any of their cells."""
    made: dict[int, tuple[np.ndarray, ...]] = {}
    groups = min(GROUPS, len(hidden))
    for first in range(groups):
        numbers = range(first, len(hidden), groups)
        mix = Predictor().fit(table.without(np.concatenate([hidden[number] for number in numbers]))).mix
        for number in numbers:
            one = Predictor().refit(table.without(hidden[number]), mix)
            places = tuple(place[hidden[number]] for place in table.cells)
            made[number] = tuple(values[places] for values in (one.scores, *one.interval()))
    scores, lows, highs = (np.concatenate([made[number][part] for number in range(len(hidden))]) for part in range(3))
    return scores, lows, highs


MODELS: dict[str, Model] = {
    "mean": _mean,
    "additive": _factor(0, 1.0),
    "factors": _factor(3, 1.0),
    "neuco": _predictor,
}


def cold_start(table: Table, known: int, protocol: Protocol = "honest", seed: int = 0) -> Outcome:
    """Every method in turn as if it were new: all but ``known`` of its results, drawn at random, are hidden.

    What a group of new methods is predicted with was learnt from the other methods only.
    """
    random = np.random.default_rng(seed)
    table, _ = _shown(table, protocol)
    rows = table.cells[0]
    order = random.permutation(len(table.methods))
    cells, made = [], []
    for group in np.array_split(order, min(GROUPS, len(order))):
        mix = Predictor().fit(table.without(np.flatnonzero(np.isin(rows, group)))).mix
        for method in group:
            own = random.permutation(np.flatnonzero(rows == method))[known:]
            if len(own):
                one = Predictor().refit(table.without(own), mix)
                places = tuple(place[own] for place in table.cells)
                cells.append(own)
                made.append([values[places] for values in (one.scores, *one.interval())])
    scores, lows, highs = (np.concatenate(part) for part in zip(*made, strict=True))
    return _outcome(f"{known} known", table, np.concatenate(cells), (scores, lows, highs))


def difference(first: Outcome, second: Outcome) -> tuple[float, float, float]:
    """How much larger the first one's mean error is, with a 95 % interval from resampled folds."""
    pairs = first.errors - second.errors
    means = np.array([part.mean() for part in np.array_split(pairs, max(2, len(pairs) // FOLD))])
    draws = np.random.default_rng(0).integers(0, len(means), (2000, len(means)))
    low, high = np.quantile(means[draws].mean(1), (0.025, 0.975))
    return float(pairs.mean()), float(low), float(high)
