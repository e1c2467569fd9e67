"""Which results to get next: for a method, those that tell most about its others; for a board, about its ranking.

What a result would be need not be known for that: how sure a Gaussian process is depends on where results are, not on
what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from neuco_core.errors import DataError, UsageError
from neuco_extensions.predict.predictor import NORMAL, Predictor

MOST_CELLS = 3000  # whose covariance is computed at once


@dataclass(frozen=True)
class Suggestion:
    """A task, what is predicted of it, and the mean standard deviation of all that is then still unknown.

    ``before`` and ``after`` are in units of the tasks' spreads over methods; ``ranks_before`` and ``ranks_after`` are
    how many places the 95 % interval of the method's rank holds now, and is expected to hold then.
    """

    task: str
    predicted: float
    low: float
    high: float
    before: float
    after: float
    ranks_before: int
    ranks_after: int


@dataclass(frozen=True)
class NextCell:
    chosen: int
    before: float
    after: float
    left: np.ndarray


@dataclass(frozen=True)
class Pick:
    """A result of any method, and the expected share of pairs of methods in the wrong order before and after it."""

    method: str
    task: str
    before: float
    after: float


def suggest(predictor: Predictor, method: str, number: int = 3, width: int | None = None) -> list[Suggestion]:
    """The next tasks for a method, best first; each is chosen as if those before it had been run.

    With a ``width``, so many that the rank's interval is expected to hold no more places; all, if it never does.
    """
    table = predictor.table
    row, tasks, covariance, noise = _missing(predictor, method)
    low, high = (ends[row] for ends in predictor.interval())
    suggestions: list[Suggestion] = []
    open_ = np.arange(len(tasks))
    ranks = _ranks(predictor, row, covariance, noise, open_)
    for choice in choose(covariance, noise, len(tasks) if width else number):
        if width and ranks <= width:
            break
        task, open_ = tasks[choice.chosen], open_[open_ != choice.chosen]
        before, ranks = ranks, _ranks(predictor, row, choice.left, noise, open_)
        predicted = float(predictor.scores[row, task]), float(low[task]), float(high[task])
        suggestions.append(Suggestion(table.tasks[task], *predicted, choice.before, choice.after, before, ranks))
    return suggestions


def places(predictor: Predictor, method: str) -> int:
    """How many places the 95 % interval of a method's rank holds now."""
    row, tasks, covariance, noise = _missing(predictor, method)
    return _ranks(predictor, row, covariance, noise, np.arange(len(tasks)))


def choose(covariance: np.ndarray, noise: float, number: int, among: Sequence[int] | None = None) -> list[NextCell]:
    """Cells, one after the other, each the one that leaves the least variance in those that are not chosen.

    ``among`` are those that can be chosen; all, if nothing is said.
    """
    cells: list[NextCell] = []
    left = covariance.copy()
    open_ = list(range(len(covariance)))
    free = list(open_ if among is None else among)
    while free and len(cells) < number:
        variance = np.diag(left) + noise
        gain = (left[np.ix_(free, open_)] ** 2).sum(1) / variance[free]
        chosen = free[int(np.argmax(gain))]
        before = _size(left, open_)
        left = left - np.outer(left[:, chosen], left[chosen]) / variance[chosen]
        free.remove(chosen)
        open_.remove(chosen)
        cells.append(NextCell(chosen, before, _size(left, open_), left))
    return cells


def pick(predictor: Predictor, number: int = 3) -> list[Pick]:
    """The next results for a ranking by the mean over tasks: those that settle most of which method is before which."""
    table = predictor.table
    if len(table.methods) < 2:
        raise DataError("one method has no ranking", where="table of results", expected="at least two methods")
    rows, columns = np.nonzero(~table.known)
    if len(rows) > MOST_CELLS:
        raise UsageError("too many results to choose from", expected=f"at most {MOST_CELLS}", got=len(rows))
    covariance, noise = predictor.process.covariance((rows, columns))
    left = covariance + noise * np.eye(len(rows))  # of results, which are what is ranked
    means = _mean_scores(predictor)
    over = (rows == np.arange(len(table.methods))[:, None]) / len(table.tasks)  # the mean of a method's cells
    first, second = np.triu_indices(len(table.methods), 1)
    apart, contrast = np.abs(means[first] - means[second]), over[first] - over[second]
    picks: list[Pick] = []
    free = np.ones(len(rows), bool)
    for _ in range(min(number, len(rows))):
        shared = contrast @ left  # (pair, cell): how much a result moves the distance of two methods
        variance = (shared * contrast).sum(1)
        own_variance = np.where(free, np.diag(left), np.inf)
        wrong = _wrong(apart[:, None], variance[:, None] - shared**2 / own_variance).mean(0)
        chosen = int(np.argmin(np.where(free, wrong, np.inf)))
        before = float(_wrong(apart, variance).mean())
        picks.append(Pick(table.methods[rows[chosen]], table.tasks[columns[chosen]], before, float(wrong[chosen])))
        free[chosen] = False
        left = left - np.outer(left[:, chosen], left[chosen]) / own_variance[chosen]
    return picks


def _wrong(apart: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """The probability that two methods are in the other order, if their distance has this variance."""
    return np.asarray(norm.cdf(-apart / np.sqrt(np.maximum(variance, 1e-12))))


def _mean_scores(predictor: Predictor) -> np.ndarray:
    """The mean over tasks of each method, in spreads of the tasks, with predictions where nothing is known."""
    filled = np.where(predictor.table.known, predictor.table.values, predictor.scores)
    spread = filled.std(0)
    return np.asarray(((filled - filled.mean(0)) / np.where(spread > 0, spread, 1.0)).mean(1))


def _ranks(predictor: Predictor, row: int, left: np.ndarray, noise: float, open_: np.ndarray) -> int:
    """How many places a method may have, with 95 %, by its mean over tasks; ``left`` is the covariance of its cells.

    The others are taken as they are known or predicted.
    """
    means = _mean_scores(predictor)
    variance = (left[np.ix_(open_, open_)].sum() + noise * len(open_)) / len(predictor.table.tasks) ** 2
    half = NORMAL * predictor.mix.widen * np.sqrt(max(variance, 0.0))
    return int((np.abs(np.delete(means, row) - means[row]) <= half).sum()) + 1


def _missing(predictor: Predictor, method: str) -> tuple[int, np.ndarray, np.ndarray, float]:
    """The method's row, the tasks on which nothing is known of it, and the covariance of those cells with its noise."""
    table = predictor.table
    if method not in table.methods:
        expected = f"one of the {len(table.methods)} methods of the table"
        raise DataError(f"unknown method {method!r}", where="table of results", expected=expected)
    row = table.methods.index(method)
    tasks = np.flatnonzero(~table.known[row])
    return row, tasks, *predictor.process.covariance((np.full(len(tasks), row), tasks))


def _size(covariance: np.ndarray, cells: list[int]) -> float:
    return float(np.sqrt(np.maximum(np.diag(covariance)[cells], 0)).mean()) if cells else 0.0
