"""How well unknown scores are predicted: by cross-validation over cells, and for methods with few results.

Errors are in gaps (see ``gaps``) of the whole table, so that all predictors are measured alike. Two protocols: the
paper predicts gaps that were computed from the whole table, so that a hidden cell that is its task's best or worst is
partly told; ``honest`` shows a predictor nothing but the scores of the other cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Literal, TypeVar

import numpy as np

from neuco_core.boards.stats.diagnostics import spearman
from neuco_core.errors import DataError
from neuco_extensions.predict.models import Fold, Made, model
from neuco_extensions.predict.predictor import Predictor, in_one_thread
from neuco_extensions.predict.suggest import choose
from neuco_extensions.predict.table import Table, gaps, ranges

FOLD = 10  # cells
GROUPS = 8  # of folds, see ``Fold``
KNOWN = (0, 1, 2, 3, 5, 10)  # results of a method that is otherwise new
DRAWS = 2000
MOST = 5000  # known scores, ten of which are hidden at a time
Protocol = Literal["paper", "honest"]
K = TypeVar("K")
T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """Predictions of hidden cells: ``cells`` by number with their methods and tasks, predicted and true gaps.

    ``covered`` is whether the truth lies in its interval.
    """

    name: str
    cells: np.ndarray
    methods: np.ndarray
    tasks: np.ndarray
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
    def by_method(self) -> float:
        """The mean over methods of each one's mean error."""
        count = np.bincount(self.methods)
        return float((np.bincount(self.methods, self.errors)[count > 0] / count[count > 0]).mean())

    @property
    def order(self) -> float | None:
        return spearman(self.predicted, self.truth)

    @property
    def coverage(self) -> float | None:
        return None if self.covered is None else float(self.covered.mean())

    def part(self, there: np.ndarray) -> Outcome:
        """Some of the cells."""
        named = ("cells", "methods", "tasks", "predicted", "truth")
        covered = None if self.covered is None else self.covered[there]
        return replace(self, covered=covered, **{name: getattr(self, name)[there] for name in named})


def folds(table: Table, seed: int = 0, equal: bool = False) -> list[Fold]:
    """All known cells, ten at a time; what is left over joins some of them.

    With ``equal``, scores of a task that equal one of the ten are hidden, too: of a copy the original tells all.
    """
    count = len(table.cells[0])
    if count > MOST:
        hint = "Evaluate a part of the table, for example with a larger --least"
        raise DataError("too many scores for a cross-validation", expected=f"at most {MOST}", got=count, hint=hint)
    order = np.random.default_rng(seed).permutation(count)
    parts = np.array_split(order, max(2, count // FOLD))
    kinds = np.stack([table.cells[1], table.values[table.cells]])
    same = np.unique(kinds, axis=1, return_inverse=True)[1].ravel() if equal else np.arange(count)
    hidden = [np.flatnonzero(np.isin(same, same[part])) for part in parts]
    return [Fold(*both, number % GROUPS) for number, both in enumerate(zip(hidden, parts, strict=True))]


def cross_validate(
    table: Table, name: str, protocol: Protocol = "honest", seed: int = 0, equal: bool = False
) -> Outcome:
    """A model that ``model`` knows, in ``folds``. The seed is of the folds, and of where a model begins."""
    shown = _shown(table, protocol)
    parts = folds(table, seed, equal)
    return _outcome(name, shown, parts, model(name)(shown, parts, seed))


def _shown(table: Table, protocol: Protocol) -> Table:
    """What is predicted. In the paper it is known beforehand that gaps go from 0 to 1; here they are negative."""
    if protocol == "honest":
        return table
    one, allowed = np.ones(len(table.tasks)), dict.fromkeys(table.tasks, (-1.0, 0.0))
    return replace(table, values=-gaps(table.values), given_ends=(-one, 0 * one), allowed=allowed)


def _outcome(name: str, shown: Table, parts: Sequence[Fold], made: Made) -> Outcome:
    """Scores as gaps of the whole table."""
    cells = np.concatenate([part.asked for part in parts])
    rows, columns = (place[cells] for place in shown.cells)
    low, high = ranges(shown.values)
    width = np.where(high > low, high - low, 1.0)[columns]
    best, score = high[columns], shown.values[rows, columns]
    scores, lows, highs = made
    covered = None if lows is None or highs is None else (lows <= score) & (score <= highs)
    return Outcome(name, cells, rows, columns, (best - scores) / width, (best - score) / width, covered)


def cold_start(
    table: Table, name: str, protocol: Protocol = "honest", seed: int = 0, suggested: bool = False
) -> dict[int, Outcome]:
    """Every method in turn as if it were new, by how many of its results are known.

    Ten of its results, at most half, are to be predicted, whatever is known. Of the others so many are known, or all
    if there are fewer, drawn at random or in the order of ``suggest``.
    """
    shown = _shown(table, protocol)
    parts = _cold_folds(shown, seed, suggested)
    every = [part for known in parts.values() for part in known]
    outcome = _outcome(name, shown, every, model(name)(shown, every, seed))
    size = len(outcome.cells) // len(parts)  # the same cells, whatever is known
    return {known: outcome.part(np.arange(at * size, (at + 1) * size)) for at, known in enumerate(parts)}


def _cold_folds(table: Table, seed: int, suggested: bool) -> dict[int, list[Fold]]:
    random = np.random.default_rng(seed)
    rows = table.cells[0]
    most = int(np.bincount(rows).max())
    found: dict[int, list[Fold]] = {known: [] for known in KNOWN if known <= most - most // 2}
    for group, methods in enumerate(np.array_split(random.permutation(len(table.methods)), GROUPS)):
        owned = [random.permutation(np.flatnonzero(rows == method)) for method in methods]
        owned = [own for own in owned if len(own) > 1]
        fitted = Predictor(seed).fit(table.without(np.concatenate(owned))) if suggested and owned else None
        for own in owned:
            size = min(FOLD, len(own) // 2)
            asked, others = own[:size], own[size:]
            if fitted is not None:
                others = others[_in_order(table, fitted, own, others)]
            for known, parts in found.items():
                parts.append(Fold(np.concatenate([asked, others[known:]]), asked, group))
    return found


def _in_order(table: Table, fitted: Predictor, own: np.ndarray, others: np.ndarray) -> list[int]:
    """Results that a method could have, those first that tell most about all tasks on which it has none."""
    process = Predictor().refit(table.without(own), fitted.mix).process
    method = table.cells[0][own[0]]
    covariance, noise = process.covariance((np.full(len(table.tasks), method), np.arange(len(table.tasks))))
    tasks = [int(task) for task in table.cells[1][others]]
    return [tasks.index(choice.chosen) for choice in choose(covariance, noise, len(tasks), among=tasks)]


def side_by_side(calls: Mapping[K, Callable[[], T]], jobs: int) -> dict[K, T]:
    """What each call gives, by its key. They begin in their order, in so many processes."""
    if min(jobs, len(calls)) < 2:
        return {key: _called(call) for key, call in calls.items()}
    with ProcessPoolExecutor(min(jobs, len(calls)), mp_context=get_context("spawn")) as pool:
        return dict(zip(calls, pool.map(_called, calls.values()), strict=True))


def _called(call: Callable[[], T]) -> T:
    return in_one_thread(call)()


def difference(first: Sequence[Outcome], second: Sequence[Outcome]) -> tuple[float, float, float]:
    """How much larger the mean error of the first is, with a 95 % interval; both are of the same cells and seeds.

    Errors of a method are alike, and so are those of a task; therefore methods, tasks and seeds are resampled, each by
    itself, and a cell counts as often as its method times its task.
    """
    places = [np.argsort(one.cells) for one in first]
    pairs = np.stack([one.errors[at] for one, at in zip(first, places, strict=True)])
    pairs -= np.stack([one.errors[np.argsort(one.cells)] for one in second])
    methods, tasks = first[0].methods[places[0]], first[0].tasks[places[0]]
    random = np.random.default_rng(0)
    seeds = _times(random, np.arange(len(pairs))) / len(pairs)
    weights = _times(random, methods) * _times(random, tasks)
    means = (weights * (seeds @ pairs)).sum(1) / np.maximum(weights.sum(1), 1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(pairs.mean()), float(low), float(high)


def _times(random: np.random.Generator, of: np.ndarray) -> np.ndarray:
    """How often each one's cluster is drawn: (draw, one)."""
    names, places = np.unique(of, return_inverse=True)
    return np.asarray(random.multinomial(len(names), np.full(len(names), 1 / len(names)), DRAWS)[:, places])
