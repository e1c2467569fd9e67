"""Which task to run next: the one whose result is expected to tell most about all the others of a method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuco_core.capabilities.predictor import Predictor
from neuco_core.errors import DataError


@dataclass(frozen=True)
class Suggestion:
    """A task, what is predicted of it, and the mean standard deviation of all that is then still unknown.

    ``before`` and ``after`` are in units of the tasks' spreads over methods.
    """

    task: str
    predicted: float
    low: float
    high: float
    before: float
    after: float


def suggest(predictor: Predictor, method: str, number: int = 3) -> list[Suggestion]:
    """The next tasks for a method, best first; each is chosen as if those before it had been run."""
    table = predictor.table
    if method not in table.methods:
        expected = f"one of the {len(table.methods)} methods of the table"
        raise DataError(f"unknown method {method!r}", where="table of results", expected=expected)
    row = table.methods.index(method)
    tasks = np.flatnonzero(~table.known[row])
    covariance, noise = predictor.process.covariance((np.full(len(tasks), row), tasks))
    low, high = (ends[row] for ends in predictor.interval())
    found = []
    for place in choose(covariance, noise, number):
        task = tasks[place.chosen]
        told = float(predictor.scores[row, task]), float(low[task]), float(high[task])
        found.append(Suggestion(table.tasks[task], *told, place.before, place.after))
    return found


@dataclass(frozen=True)
class Choice:
    chosen: int
    before: float
    after: float


def choose(covariance: np.ndarray, noise: float, number: int) -> list[Choice]:
    """Cells, one after the other, each the one that leaves the least variance in those that are not chosen."""
    found: list[Choice] = []
    left = covariance.copy()
    open_ = list(range(len(covariance)))
    while open_ and len(found) < number:
        own = np.diag(left) + noise
        gain = (left[np.ix_(open_, open_)] ** 2).sum(1) / own[open_]
        chosen = open_[int(np.argmax(gain))]
        before = _size(left, open_)
        left = left - np.outer(left[:, chosen], left[chosen]) / own[chosen]
        open_.remove(chosen)
        found.append(Choice(chosen, before, _size(left, open_)))
    return found


def _size(covariance: np.ndarray, places: list[int]) -> float:
    return float(np.sqrt(np.maximum(np.diag(covariance)[places], 0)).mean()) if places else 0.0
