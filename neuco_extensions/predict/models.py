"""What is compared when predictions are evaluated: baselines, the paper's encoders, and the predictor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from neuco_core.errors import UsageError
from neuco_extensions.predict.encoders import DISTANCES, fit_gaps
from neuco_extensions.predict.factor import factorise
from neuco_extensions.predict.predictor import Predictor
from neuco_extensions.predict.table import Table, ranges

SPREADS = 3.0  # gaps have a standard deviation of about a third; the ridge of a factorisation is meant for one of 1
TRIED = [(rank, ridge, offset) for rank in (2, 3) for ridge in (0.1, 0.3, 1.0, 3.0) for offset in (0.1, 2.0)]
INNER = 8  # parts that are held back in turn to choose among them


@dataclass(frozen=True)
class Fold:
    """Cells by number: those that are hidden, and those of them that are to be predicted.

    What takes long to learn is learnt once for all folds of a ``group``, from cells that none of them hides.
    """

    hidden: np.ndarray
    asked: np.ndarray
    group: int


Made = tuple[np.ndarray, np.ndarray | None, np.ndarray | None]  # scores of asked cells, and both ends of intervals
Model = Callable[[Table, Sequence[Fold], int], Made]  # the number is a seed


def model(name: str) -> Model:
    """One of ``MODELS``, or ``l2-5`` and the like: an encoder of the paper with its dimension."""
    kind, _, dimension = name.partition("-")
    if kind in DISTANCES and dimension.isascii() and dimension.isdigit():
        return lambda table, folds, seed: _by_distance(table, folds, seed, kind, int(dimension))
    if name not in MODELS:
        expected = f"one of {', '.join(MODELS)}, or {', '.join(DISTANCES)} with a dimension, such as l2-5"
        raise UsageError(f"unknown predictor {name!r}", expected=expected)
    return MODELS[name]


def _ends(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """The worst and the best score of each task, as far as is known; those of a mean task where nothing is."""
    low, high = table.given_ends or ranges(table.values)
    return np.where(np.isnan(low), np.nanmean(low), low), np.where(np.isnan(high), np.nanmean(high), high)


def _from_gaps(table: Table, folds: Sequence[Fold], predict: Callable[[np.ndarray], np.ndarray]) -> Made:
    """By gaps: ``predict`` is given those of each fold (fold, method, task), NaN where hidden, and fills them all."""
    rest = [table.without(fold.hidden) for fold in folds]
    ends = [_ends(one) for one in rest]
    shown = [(h - one.values) / np.where(h > low, h - low, 1.0) for one, (low, h) in zip(rest, ends, strict=True)]
    found = []
    for fold, gap, (low, high) in zip(folds, predict(np.stack(shown)), ends, strict=True):
        found.append((high - gap * (high - low))[tuple(place[fold.asked] for place in table.cells)])
    return np.concatenate(found), None, None


def _mean(table: Table, folds: Sequence[Fold], seed: int) -> Made:
    """The mean gap of all other cells, whatever the method and the task."""
    return _from_gaps(
        table, folds, lambda gaps: np.broadcast_to(np.nanmean(gaps, axis=(1, 2), keepdims=True), gaps.shape)
    )


def _additive(table: Table, folds: Sequence[Fold], seed: int) -> Made:
    return _from_gaps(table, folds, lambda gaps: np.stack([_factorised(one, (0, 1.0, 1.0), seed) for one in gaps]))


def _factors(table: Table, folds: Sequence[Fold], seed: int) -> Made:
    """Rank and ridges are those that do best inside, chosen anew for each group of folds without any of their cells."""
    chosen = {}
    for group in sorted({fold.group for fold in folds}):
        hidden = np.unique(np.concatenate([fold.hidden for fold in folds if fold.group == group]))
        rest = table.without(hidden)
        order = np.random.default_rng(seed).permutation(len(rest.cells[0]))
        inner = [Fold(part, part, 0) for part in np.array_split(order, INNER)]
        chosen[group] = min(TRIED, key=lambda how: _miss(rest, inner, how, seed))
    return _from_gaps(
        table,
        folds,
        lambda gaps: np.stack([_factorised(one, chosen[f.group], seed) for one, f in zip(gaps, folds, strict=True)]),
    )


def _miss(table: Table, inner: Sequence[Fold], how: tuple[int, float, float], seed: int) -> float:
    """The mean squared error of one choice, in ranges of the tasks as far as they are known."""
    scores, _, _ = _from_gaps(table, inner, lambda gaps: np.stack([_factorised(one, how, seed) for one in gaps]))
    rows, columns = (place[np.concatenate([fold.asked for fold in inner])] for place in table.cells)
    low, high = _ends(table)
    width = np.where(high > low, high - low, 1.0)[columns]
    return float((((scores - table.values[rows, columns]) / width) ** 2).mean())


def _factorised(gaps: np.ndarray, how: tuple[int, float, float], seed: int) -> np.ndarray:
    return factorise(SPREADS * gaps, np.isfinite(gaps), *how, seed) / SPREADS


def _by_distance(table: Table, folds: Sequence[Fold], seed: int, distance: str, dimension: int) -> Made:
    # The seeds of two runs are far apart, so that no fold of one begins like a fold of the other.
    return _from_gaps(table, folds, lambda gaps: fit_gaps(gaps, np.isfinite(gaps), distance, dimension, seed * 100_000))


def _predictor(table: Table, folds: Sequence[Fold], seed: int) -> Made:
    """Kernels, shares and widths are learnt once for every group of folds."""
    made: dict[int, tuple[np.ndarray, ...]] = {}
    for group in sorted({fold.group for fold in folds}):
        numbers = [number for number, fold in enumerate(folds) if fold.group == group]
        hidden = np.unique(np.concatenate([folds[number].hidden for number in numbers]))
        mix = Predictor(seed).fit(table.without(hidden)).mix
        for number in numbers:
            one = Predictor(seed).refit(table.without(folds[number].hidden), mix)
            rows, columns = (place[folds[number].asked] for place in table.cells)
            made[number] = one.at((rows, columns))
    scores, lows, highs = (np.concatenate([made[number][part] for number in range(len(folds))]) for part in range(3))
    return scores, lows, highs


MODELS: dict[str, Model] = {
    "mean": _mean,
    "additive": _additive,
    "factors": _factors,
    "neuco": _predictor,
}
