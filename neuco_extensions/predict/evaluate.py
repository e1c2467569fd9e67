"""How well known scores are predicted from the others: cross-validation over the cells of a table.

A model is shown nothing but the scores of the other cells. Errors are in gaps (see ``gaps``) of the whole table, so
that all models are measured alike. ``benchmarks/predict_paper.py`` compares more models under the paper's protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import TypeVar

import numpy as np

from neuco_core.boards.stats.diagnostics import spearman
from neuco_core.errors import DataError
from neuco_extensions.predict.predictor import Predictor, in_one_thread
from neuco_extensions.predict.process import factorise
from neuco_extensions.predict.table import ScoreTable, ranges

FOLD = 10  # cells
GROUPS = 8  # of folds, see ``Fold``
DRAWS = 2000
MOST = 5000  # known scores, ten of which are hidden at a time
SPREADS = 3.0  # gaps have a standard deviation of about a third; the ridge of a factorisation is meant for one of 1
K = TypeVar("K")
T = TypeVar("T")


@dataclass(frozen=True)
class Fold:
    """Cells by number: those that are hidden, and those of them that are to be predicted.

    What takes long to learn is learnt once for all folds of a ``group``, from cells that none of them hides.
    """

    hidden: np.ndarray
    asked: np.ndarray
    group: int


Predicted = tuple[np.ndarray, np.ndarray | None, np.ndarray | None]  # scores of asked cells, both ends of intervals
Model = Callable[[ScoreTable, Sequence[Fold], int], Predicted]  # the number is a seed


@dataclass(frozen=True)
class CrossValidation:
    """Predictions of hidden cells: ``cells`` by number with their methods and tasks, predicted and true gaps.

    ``covered`` is whether the truth lies in its interval.
    """

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
    def order(self) -> float | None:
        return spearman(self.predicted, self.truth)

    @property
    def coverage(self) -> float | None:
        return None if self.covered is None else float(self.covered.mean())

    @property
    def coverage_of_ends(self) -> float | None:
        """The same of the best and the worst score of each task alone, which no other score encloses."""
        ends = (self.truth <= 0.0) | (self.truth >= 1.0)
        return float(self.covered[ends].mean()) if self.covered is not None and ends.any() else None

    def part(self, chosen: np.ndarray) -> CrossValidation:
        names = ("cells", "methods", "tasks", "predicted", "truth")
        covered = None if self.covered is None else self.covered[chosen]
        return replace(self, covered=covered, **{name: getattr(self, name)[chosen] for name in names})


def folds(table: ScoreTable, seed: int = 0, equal: bool = False) -> list[Fold]:
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


def cross_validate(table: ScoreTable, model: Model, seed: int = 0, equal: bool = False) -> CrossValidation:
    """A model in ``folds``. The seed is of the folds, and of where a model begins."""
    parts = folds(table, seed, equal)
    return validation(table, parts, model(table, parts, seed))


def validation(table: ScoreTable, parts: Sequence[Fold], predicted: Predicted) -> CrossValidation:
    cells = np.concatenate([part.asked for part in parts])
    rows, columns = (numbers[cells] for numbers in table.cells)
    low, high = ranges(table.values)
    width = np.where(high > low, high - low, 1.0)[columns]
    best, score = high[columns], table.values[rows, columns]
    scores, lows, highs = predicted
    covered = None if lows is None or highs is None else (lows <= score) & (score <= highs)
    return CrossValidation(cells, rows, columns, (best - scores) / width, (best - score) / width, covered)


def difference(first: Sequence[CrossValidation], second: Sequence[CrossValidation]) -> tuple[float, float, float]:
    """How much larger the mean error of the first is, with a 95 % interval; both are of the same cells and seeds.

    Errors of a method are alike, and so are those of a task; therefore methods, tasks and seeds are resampled, each by
    itself, and a cell counts as often as its method times its task.
    """
    orders = [np.argsort(one.cells) for one in first]
    pairs = np.stack([one.errors[order] for one, order in zip(first, orders, strict=True)])
    pairs -= np.stack([one.errors[np.argsort(one.cells)] for one in second])
    methods, tasks = first[0].methods[orders[0]], first[0].tasks[orders[0]]
    random = np.random.default_rng(0)
    seeds = _times_drawn(random, np.arange(len(pairs))) / len(pairs)
    weights = _times_drawn(random, methods) * _times_drawn(random, tasks)
    means = (weights * (seeds @ pairs)).sum(1) / np.maximum(weights.sum(1), 1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(pairs.mean()), float(low), float(high)


def _times_drawn(random: np.random.Generator, clusters: np.ndarray) -> np.ndarray:
    """How often the cluster of each one is drawn: (draw, one)."""
    names, numbers = np.unique(clusters, return_inverse=True)
    return np.asarray(random.multinomial(len(names), np.full(len(names), 1 / len(names)), DRAWS)[:, numbers])


def side_by_side(calls: Mapping[K, Callable[[], T]], jobs: int) -> dict[K, T]:
    """What each call gives, by its key. They begin in their order, in so many processes."""
    if min(jobs, len(calls)) < 2:
        return {key: _in_one_thread(call) for key, call in calls.items()}
    with ProcessPoolExecutor(min(jobs, len(calls)), mp_context=get_context("spawn")) as pool:
        return dict(zip(calls, pool.map(_in_one_thread, calls.values()), strict=True))


def _in_one_thread(call: Callable[[], T]) -> T:
    return in_one_thread(call)()


def known_ends(table: ScoreTable) -> tuple[np.ndarray, np.ndarray]:
    """The worst and the best score of each task, as far as is known; those of a mean task where nothing is."""
    low, high = table.given_ends or ranges(table.values)
    return np.where(np.isnan(low), np.nanmean(low), low), np.where(np.isnan(high), np.nanmean(high), high)


def from_gaps(table: ScoreTable, folds: Sequence[Fold], fill: Callable[[np.ndarray], np.ndarray]) -> Predicted:
    """By gaps: ``fill`` is given those of each fold (fold, method, task), NaN where hidden, and fills them all."""
    rest = [table.without(fold.hidden) for fold in folds]
    ends = [known_ends(one) for one in rest]
    shown = [(h - one.values) / np.where(h > low, h - low, 1.0) for one, (low, h) in zip(rest, ends, strict=True)]
    scores = []
    for fold, gap, (low, high) in zip(folds, fill(np.stack(shown)), ends, strict=True):
        scores.append((high - gap * (high - low))[tuple(numbers[fold.asked] for numbers in table.cells)])
    return np.concatenate(scores), None, None


def factorised(gaps: np.ndarray, rank: int, ridge: float, offset: float, seed: int) -> np.ndarray:
    return factorise(SPREADS * gaps, np.isfinite(gaps), rank, ridge, offset, seed).every / SPREADS


def by_mean(table: ScoreTable, folds: Sequence[Fold], seed: int) -> Predicted:
    def fill(gaps: np.ndarray) -> np.ndarray:
        return np.broadcast_to(np.nanmean(gaps, axis=(1, 2), keepdims=True), gaps.shape)

    return from_gaps(table, folds, fill)


def by_sums(table: ScoreTable, folds: Sequence[Fold], seed: int) -> Predicted:
    return from_gaps(table, folds, lambda gaps: np.stack([factorised(one, 0, 1.0, 1.0, seed) for one in gaps]))


def by_predictor(table: ScoreTable, folds: Sequence[Fold], seed: int) -> Predicted:
    """Kernels, shares and widths are learnt once for every group of folds."""
    predicted: dict[int, tuple[np.ndarray, ...]] = {}
    for group in sorted({fold.group for fold in folds}):
        numbers = [number for number, fold in enumerate(folds) if fold.group == group]
        hidden = np.unique(np.concatenate([folds[number].hidden for number in numbers]))
        mix = Predictor(seed).fit(table.without(hidden)).mix
        for number in numbers:
            one = Predictor(seed).refit(table.without(folds[number].hidden), mix)
            rows, columns = (cells[folds[number].asked] for cells in table.cells)
            predicted[number] = one.at((rows, columns))
    scores, lows, highs = (
        np.concatenate([predicted[number][part] for number in range(len(folds))]) for part in range(3)
    )
    return scores, lows, highs


MODELS: dict[str, Model] = {"mean": by_mean, "additive": by_sums, "neuco": by_predictor}
