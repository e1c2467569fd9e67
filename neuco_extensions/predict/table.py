"""A table of known results: methods × tasks, with what is known about both; and the scale on which it is learnt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import expit, logit

from neuco_core.errors import DataError
from neuco_core.text import join_names

LARGEST = 1e50  # whose squares can still be added up
LEAST = 5  # results of a method or of a task, below which the paper leaves it out
Facts = Mapping[str, Mapping[str, str | float]]
Cells = tuple[np.ndarray, np.ndarray]  # methods and tasks, by number
# Beyond these shares log odds grow without end, so that one perfect score would decide. Where many scores lie there, as
# an R² above 0.99 on every task, the ends move out with them.
LEAST_SHARE, MOST_SHARE = 0.005, 0.997
TAIL = 0.05


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """``values`` is (method, task), higher is better, NaN where nothing is known.

    Facts are by name, then by what is said: text makes groups (an architecture, a dataset), numbers a scale (a date,
    the logarithm of a size). ``allowed`` is, by task, the least and the largest score that its metric can give.
    """

    methods: tuple[str, ...]
    tasks: tuple[str, ...]
    values: np.ndarray
    method_facts: Facts = field(default_factory=dict)
    task_facts: Facts = field(default_factory=dict)
    given_ends: tuple[np.ndarray, np.ndarray] | None = None
    allowed: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for noun, names in (("method", self.methods), ("task", self.tasks)):
            twice = sorted(name for name, times in Counter(names).items() if times > 1)
            if twice:
                raise DataError(f"{noun} {join_names(twice)} is there twice", where="table of results")
        if self.values.shape != (len(self.methods), len(self.tasks)):
            raise DataError("values of the wrong shape", got=self.values.shape)
        if (np.abs(self.values) > LARGEST).any():
            got = f"{self.values[np.abs(self.values) > LARGEST][0]:g}"
            expected = f"numbers up to {LARGEST:g}, or nothing"
            raise DataError("scores that are too large", where="table of results", expected=expected, got=got)
        if not self.known.any():
            raise DataError("no score is known", where="table of results")

    def __repr__(self) -> str:
        return f"ScoreTable({len(self.methods)} methods × {len(self.tasks)} tasks, {self.known.sum()} scores known)"

    @property
    def known(self) -> np.ndarray:
        return np.asarray(np.isfinite(self.values))

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The worst and the best score of each task: as given, or those that are known."""
        return self.given_ends or ranges(self.values)

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Between which all scores of a task lie; infinite where nothing is said, or where a known one is outside."""
        low, high = np.array([self.allowed.get(task, (-np.inf, np.inf)) for task in self.tasks]).T
        worst, best = ranges(self.values)
        outside = (worst < low) | (best > high)  # in another unit, such as per cent
        return np.where(outside, -np.inf, low), np.where(outside, np.inf, high)

    @property
    def cells(self) -> Cells:
        """The places of the known scores: methods and tasks, by number."""
        rows, columns = np.nonzero(self.known)
        return rows, columns

    def filtered(self, least: int = LEAST) -> ScoreTable:
        """Tasks and methods with so many results, again and again until nothing has to go."""
        rows, columns = np.ones(len(self.methods), bool), np.ones(len(self.tasks), bool)
        while True:
            known = self.known & rows[:, None] & columns
            more_columns = columns & (known.sum(0) >= least)
            more_rows = rows & ((known & more_columns).sum(1) >= least)
            if (more_rows == rows).all() and (more_columns == columns).all():
                break
            rows, columns = more_rows, more_columns
        if not rows.any():
            raise DataError(f"no method and task has {least} results", where="table of results", got=repr(self))
        return self.part(np.flatnonzero(rows), np.flatnonzero(columns))

    def part(self, rows: np.ndarray, columns: np.ndarray) -> ScoreTable:
        methods, tasks = tuple(self.methods[i] for i in rows), tuple(self.tasks[i] for i in columns)
        ends = None if self.given_ends is None else (self.given_ends[0][columns], self.given_ends[1][columns])
        values = self.values[np.ix_(rows, columns)]
        return replace(self, methods=methods, tasks=tasks, values=values, given_ends=ends)

    def with_method(self, method: str) -> ScoreTable:
        values = np.vstack([self.values, np.full(len(self.tasks), np.nan)])
        return replace(self, methods=(*self.methods, method), values=values)

    def without(self, hidden: np.ndarray) -> ScoreTable:
        """The same with some of the known cells, by their number, taken away."""
        values, (rows, columns) = self.values.copy(), self.cells
        values[rows[hidden], columns[hidden]] = np.nan
        return replace(self, values=values)


def ranges(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest known score of each task; both NaN where none is known."""
    known = np.isfinite(values)
    low = np.where(known, values, np.inf).min(0)
    high = np.where(known, values, -np.inf).max(0)
    any_known = known.any(0)
    return np.where(any_known, low, np.nan), np.where(any_known, high, np.nan)


def gaps(values: np.ndarray) -> np.ndarray:
    """The paper's Δ: how far a score is from the task's best, in units of the distance of best and worst.

    Of a task on which all known scores are equal it is 0.
    """
    low, high = ranges(values)
    width = np.where(high > low, high - low, 1.0)
    return np.asarray((high - values) / width)


@dataclass(frozen=True)
class LogOdds:
    """Shares and percentages as log odds, in which a point near 100 % is more than one near 50 %.

    ``tops`` is by task: 1 for shares, 100 for percentages; NaN in a table that has others, which stays as it is.
    """

    tops: np.ndarray
    ends: tuple[float, float]

    @classmethod
    def of(cls, values: np.ndarray) -> LogOdds:
        low, high = ranges(values)
        if np.nanmin(low) < 0 or np.nanmax(high) > 100:  # few results of a task may be shares by chance: all or none
            return cls(np.full(len(low), np.nan), (LEAST_SHARE, MOST_SHARE))
        tops = np.where(np.where(np.isnan(high), np.nanmax(high), high) <= 1, 1.0, 100.0)
        shares = values / tops
        least, most = np.quantile(shares[np.isfinite(shares)], (TAIL, 1 - TAIL))
        return cls(
            tops, (float(np.clip(least / 2, 1e-6, LEAST_SHARE)), float(np.clip((1 + most) / 2, MOST_SHARE, 1 - 1e-6)))
        )

    def to(self, values: np.ndarray) -> np.ndarray:
        """Scores whose last axis is tasks."""
        odds = logit(np.clip(values / self.tops, *self.ends))
        return np.asarray(np.where(np.isnan(self.tops), values, odds))

    def back(self, values: np.ndarray, tasks: np.ndarray) -> np.ndarray:
        """Scores of some cells, by the numbers of their tasks."""
        tops = self.tops[tasks]
        return np.asarray(np.where(np.isnan(tops), values, tops * expit(values)))
