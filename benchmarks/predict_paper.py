"""The predictor beside other models, and the encoders of the capabilities-encoding paper.

    python benchmarks/predict_paper.py evaluate paper --seeds 2   # all models, both protocols, and methods that are new
    python benchmarks/predict_paper.py encoders paper             # does a table support the paper's choice of encoder?
    python benchmarks/predict_paper.py unseen paper               # on results by which nothing of neuco's was chosen

A board or a file may stand for ``paper``. Two protocols: the paper predicts gaps that were computed from the whole
table, so that a hidden cell that is its task's best or worst is partly told; ``honest`` shows nothing but the scores of
the other cells. As to ``unseen``: the kernels and constants of the predictor were chosen while looking at what is left
of the paper's table without methods and tasks that have fewer than five results, and at Table 4 and GEO-Bench-2; the
results with three or four are predicted here, ten at a time, with all others known.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from neuco_core.env import available_cores
from neuco_core.errors import UsageError
from neuco_core.plugins.compiled import compiled
from neuco_extensions.predict.command import open_source
from neuco_extensions.predict.evaluate import (
    FOLD,
    GROUPS,
    MODELS,
    CrossValidation,
    Fold,
    Model,
    Predicted,
    cross_validate,
    difference,
    factorised,
    from_gaps,
    known_ends,
    side_by_side,
    validation,
)
from neuco_extensions.predict.predictor import Predictor
from neuco_extensions.predict.suggest import choose
from neuco_extensions.predict.table import ScoreTable, gaps

NAMES = ("mean", "additive", "factors", "l2-5", "neuco")
OURS, SUGGESTED = "neuco", "neuco, suggested"
NEW = ("mean", "factors", "l2-5", OURS)  # compared on methods with few results
KNOWN = (0, 1, 2, 3, 5, 10)  # results of a method that is otherwise new
CHOSEN = "l2-5"  # the paper's own
OTHERS = ("l2-2", "l2-3", "l2-7", "l2-10", "cosine-5", "cosine-15", "poincare-5")
TRIED = [(rank, ridge, offset) for rank in (2, 3) for ridge in (0.1, 0.3, 1.0, 3.0) for offset in (0.1, 2.0)]
INNER = 8  # parts that are held back in turn to choose among them
# The encoders, all as in the paper's code: Adam with 100 steps of warm-up and a cosine to 0 over 500 steps. That has
# two faults of its Poincaré ball, so that numbers can be compared: the gradient is scaled by the norm of all parameters
# together, where that of each point is meant, and after each step every point is drawn inwards by a thousandth, where
# only those outside the ball are meant. A fit is compiled: a cross-validation needs hundreds.
STEPS, WARM_UP, RATE = 500, 100, 0.05
DISTANCES = ("l2", "cosine", "poincare")
L2, COSINE = range(2)


def model(name: str) -> Model:
    """One of neuco's own, ``factors``, or ``l2-5`` and the like: an encoder of the paper with its dimension."""
    kind, _, dimension = name.partition("-")
    if kind in DISTANCES and dimension.isascii() and dimension.isdigit():
        return partial(_by_distance, distance=kind, dimension=int(dimension))
    known = {**MODELS, "factors": _by_factors}
    if name not in known:
        expected = f"one of {', '.join(known)}, or {', '.join(DISTANCES)} with a dimension, such as l2-5"
        raise UsageError(f"unknown predictor {name!r}", expected=expected)
    return known[name]


def _by_factors(table: ScoreTable, folds: Sequence[Fold], seed: int) -> Predicted:
    """Rank and ridges are those that do best inside, chosen anew for each group of folds without any of their cells."""
    chosen = {}
    for group in sorted({fold.group for fold in folds}):
        hidden = np.unique(np.concatenate([fold.hidden for fold in folds if fold.group == group]))
        rest = table.without(hidden)
        order = np.random.default_rng(seed).permutation(len(rest.cells[0]))
        inner = [Fold(part, part, 0) for part in np.array_split(order, INNER)]
        misses = [_miss(rest, inner, how, seed) for how in TRIED]
        chosen[group] = TRIED[misses.index(min(misses))]

    def fill(gaps: np.ndarray) -> np.ndarray:
        return np.stack([factorised(one, *chosen[f.group], seed) for one, f in zip(gaps, folds, strict=True)])

    return from_gaps(table, folds, fill)


def _miss(table: ScoreTable, inner: Sequence[Fold], how: tuple[int, float, float], seed: int) -> float:
    """The mean squared error of one choice, in ranges of the tasks as far as they are known."""
    scores, _, _ = from_gaps(table, inner, lambda gaps: np.stack([factorised(one, *how, seed) for one in gaps]))
    rows, columns = (numbers[np.concatenate([fold.asked for fold in inner])] for numbers in table.cells)
    low, high = known_ends(table)
    width = np.where(high > low, high - low, 1.0)[columns]
    return float((((scores - table.values[rows, columns]) / width) ** 2).mean())


def _by_distance(table: ScoreTable, folds: Sequence[Fold], seed: int, distance: str, dimension: int) -> Predicted:
    # The seeds of two runs are far apart, so that no fold of one begins like a fold of the other.
    return from_gaps(table, folds, lambda gaps: fit_gaps(gaps, np.isfinite(gaps), distance, dimension, seed * 100_000))


def fit_gaps(gaps: np.ndarray, known: np.ndarray, distance: str, dimension: int = 5, seed: int = 0) -> np.ndarray:
    """Predicted gaps (fold, method, task), learnt from the known ones of each fold; both arguments have that shape."""
    step = np.arange(STEPS)
    down = 0.5 * (1 + np.cos(np.pi * (step - WARM_UP) / (STEPS - WARM_UP)))
    rates = RATE * np.where(step < WARM_UP, 0.01 + 0.99 * step / WARM_UP, down)
    kind, predicted = DISTANCES.index(distance), np.empty(gaps.shape)
    for fold, (wanted, there) in enumerate(zip(gaps, known, strict=True)):
        points = np.random.default_rng(seed + fold).normal(0, 0.1, (sum(wanted.shape), dimension))
        if distance == "poincare":
            points = points * 0.001 - 0.0005
        rows, columns = np.nonzero(there)
        _fit(points, rows, columns + len(wanted), wanted[rows, columns].astype(float), kind, rates)
        predicted[fold] = _distances(points[: len(wanted)], points[len(wanted) :], kind)
    return predicted


@compiled(keep=False, error_model="numpy")
def _distance(first, second, kind):  # type: ignore[no-untyped-def]
    """The distance, and its derivative: that by the first point is ``to_other * second + to_first * first``.

    By the second point it is ``to_other * first + to_second * second``.
    """
    apart = across = one = two = 0.0
    for j in range(len(first)):
        apart += (first[j] - second[j]) ** 2
        across += first[j] * second[j]
        one += first[j] ** 2
        two += second[j] ** 2
    if kind == L2:
        size = np.sqrt(apart + 1e-24)
        slope = 1 / size if size < 1 else 0.0
        return min(size, 1.0), -slope, slope, slope
    if kind == COSINE:
        sizes = np.sqrt(one * two) + 1e-24
        likeness = across / sizes
        inside = 0.0 < 0.5 - likeness < 1.0
        slope = 1 / sizes if inside else 0.0
        both = likeness if inside else 0.0
        return min(max(0.5 - likeness, 0.0), 1.0), -slope, both / one, both / two
    room = (1 - one) * (1 - two)
    rest = 2 * apart / room + 1e-12
    outer = 1 / np.sqrt(rest * (rest + 2))  # derivative of arccosh(1 + rest)
    slope = 4 * outer / room
    return (
        np.log1p(rest + np.sqrt(rest * (rest + 2))),
        -slope,
        slope + 2 * outer * rest / (1 - one),
        slope + (2 * outer * rest / (1 - two)),
    )


@compiled(keep=True, error_model="numpy")
def _fit(points, first, second, wanted, kind, rates):  # type: ignore[no-untyped-def]
    """Move the points until the distances of pairs are those wanted: Adam on the mean squared difference."""
    dimension = points.shape[1]
    slope, mean, square = np.zeros_like(points), np.zeros_like(points), np.zeros_like(points)
    for step in range(len(rates)):
        slope[:] = 0.0
        for pair in range(len(wanted)):
            one, two = points[first[pair]], points[second[pair]]
            size, to_other, to_one, to_two = _distance(one, two, kind)
            off = 2 * (size - wanted[pair]) / len(wanted)
            for j in range(dimension):
                slope[first[pair], j] += off * (to_other * two[j] + to_one * one[j])
                slope[second[pair], j] += off * (to_other * one[j] + to_two * two[j])
        if kind > COSINE:
            slope *= (1 - (points**2).sum()) ** 2 / 4
        mean[:] = 0.9 * mean + 0.1 * slope
        square[:] = 0.999 * square + 0.001 * slope**2
        rate = rates[step] / (1 - 0.9 ** (step + 1))
        points -= rate * mean / (np.sqrt(square / (1 - 0.999 ** (step + 1))) + 1e-8)
        if kind > COSINE:
            for point in range(len(points)):
                points[point] *= 0.999 / max(np.sqrt((points[point] ** 2).sum()), 1.0)


@compiled(keep=True, error_model="numpy")
def _distances(rows, columns, kind):  # type: ignore[no-untyped-def]
    found = np.empty((len(rows), len(columns)))
    for i in range(len(rows)):
        for j in range(len(columns)):
            found[i, j] = _distance(rows[i], columns[j], kind)[0]
    return found


def shown(table: ScoreTable, protocol: str) -> ScoreTable:
    """What is predicted. In the paper it is known beforehand that gaps go from 0 to 1; here they are negative."""
    if protocol == "honest":
        return table
    one, allowed = np.ones(len(table.tasks)), dict.fromkeys(table.tasks, (-1.0, 0.0))
    return replace(table, values=-gaps(table.values), given_ends=(-one, 0 * one), allowed=allowed)


def validate(
    table: ScoreTable, name: str, protocol: str = "honest", seed: int = 0, equal: bool = False
) -> CrossValidation:
    return cross_validate(shown(table, protocol), model(name), seed, equal)


def cold_start(
    table: ScoreTable, name: str, protocol: str = "honest", seed: int = 0, suggested: bool = False
) -> dict[int, CrossValidation]:
    """Every method in turn as if it were new, by how many of its results are known.

    Ten of its results, at most half, are to be predicted, whatever is known. Of the others so many are known, or all
    if there are fewer, drawn at random or in the order of ``suggest``.
    """
    table = shown(table, protocol)
    parts = cold_folds(table, seed, suggested)
    every = [part for known in parts.values() for part in known]
    outcome = validation(table, every, model(name)(table, every, seed))
    size = len(outcome.cells) // len(parts)  # the same cells, whatever is known
    return {known: outcome.part(np.arange(at * size, (at + 1) * size)) for at, known in enumerate(parts)}


def cold_folds(table: ScoreTable, seed: int, suggested: bool) -> dict[int, list[Fold]]:
    random = np.random.default_rng(seed)
    rows = table.cells[0]
    most = int(np.bincount(rows).max())
    folds: dict[int, list[Fold]] = {known: [] for known in KNOWN if known <= most - most // 2}
    for group, methods in enumerate(np.array_split(random.permutation(len(table.methods)), GROUPS)):
        owned = [random.permutation(np.flatnonzero(rows == method)) for method in methods]
        owned = [own for own in owned if len(own) > 1]
        fitted = Predictor(seed).fit(table.without(np.concatenate(owned))) if suggested and owned else None
        for own in owned:
            size = min(FOLD, len(own) // 2)
            asked, others = own[:size], own[size:]
            if fitted is not None:
                others = others[_in_order(table, fitted, own, others)]
            for known, parts in folds.items():
                parts.append(Fold(np.concatenate([asked, others[known:]]), asked, group))
    return folds


def _in_order(table: ScoreTable, fitted: Predictor, own: np.ndarray, others: np.ndarray) -> list[int]:
    """Results that a method could have, those first that tell most about all tasks on which it has none."""
    process = Predictor().refit(table.without(own), fitted.mix).process
    method = table.cells[0][own[0]]
    covariance, noise = process.covariance((np.full(len(table.tasks), method), np.arange(len(table.tasks))))
    tasks = [int(task) for task in table.cells[1][others]]
    return [tasks.index(choice.chosen) for choice in choose(covariance, noise, len(tasks), among=tasks)]


def verdict(low: float, high: float) -> str:
    """Whether the paper's choice is better than another encoder, whose error is larger by so much."""
    return "supported" if low > 0 else "opposite" if high < 0 else "not supported"


def evaluate(table: ScoreTable, args: argparse.Namespace) -> None:
    protocols = ("honest", "paper") if args.protocol == "both" else (args.protocol,)
    names = args.models.split(",")
    calls: dict[Any, Callable[[], Any]] = {}
    for protocol, seed in product(protocols, range(args.seeds)):
        if args.cold_start and protocol == "honest":
            calls[protocol, SUGGESTED, True, seed] = partial(cold_start, table, OURS, protocol, seed, suggested=True)
        for name in NEW if args.cold_start else ():
            calls[protocol, name, True, seed] = partial(cold_start, table, name, protocol, seed)
        for name in names:
            calls[protocol, name, False, seed] = partial(validate, table, name, protocol, seed, args.hide_equal)
    done = side_by_side(calls, args.jobs)
    print("protocol  model         MSE  Spearman  in 95 % interval  worse than the best by")
    for protocol in protocols:
        runs = {name: [done[protocol, name, False, seed] for seed in range(args.seeds)] for name in names}
        best = min(runs, key=lambda name: float(np.mean([one.mse for one in runs[name]])))
        for name, run in runs.items():
            numbers = f"{np.mean([one.mse for one in run]):.4f}  {np.mean([one.order or 0 for one in run]):8.3f}"
            worse = "–" if name == best else "{:.4f} ({:.4f} to {:.4f})".format(*difference(run, runs[best]))
            print(f"{protocol:8}  {name:9}  {numbers}  {_coverage(run):>16}  {worse}")
    if not args.cold_start:
        return
    print("\nMSE for methods that are new but for so many results, drawn at random or in the order of suggest")
    for protocol in protocols:
        for known in done[protocol, OURS, True, 0]:
            columns = [f"{protocol:8}  {known:5}"]
            for name in (*NEW, SUGGESTED):
                if (protocol, name, True, 0) in done:
                    errors = [done[protocol, name, True, seed][known].mse for seed in range(args.seeds)]
                    columns.append(f"{name} {np.mean(errors):.4f}")
            ours = [done[protocol, OURS, True, seed][known] for seed in range(args.seeds)]
            print("  ".join([*columns, _coverage(ours)]))


def _coverage(run: Sequence[CrossValidation]) -> str:
    shares = [one.coverage for one in run if one.coverage is not None]
    return f"{np.mean(shares):.1%}" if shares else "–"


def encoders(table: ScoreTable, args: argparse.Namespace) -> None:
    """The paper's choice, five dimensions and Euclidean distance, against the others.

    Where an encoder begins decides much, so each is fitted from several starts, in other folds each time.
    """
    names, protocol = (CHOSEN, *OTHERS), "paper" if args.protocol == "both" else args.protocol
    every = list(product(names, range(args.seeds)))
    done = side_by_side({(n, seed): partial(validate, table, n, protocol, seed) for n, seed in every}, args.jobs)
    runs = {name: [done[name, seed] for seed in range(args.seeds)] for name in names}
    print(f"encoder        MSE  SD of seeds   error above the choice  {CHOSEN} is better")
    for name, run in runs.items():
        errors = [one.mse for one in run]
        deviation = np.std(errors, ddof=1) if len(errors) > 1 else 0.0
        claim = "–  the paper's choice"
        if name != CHOSEN:
            more, low, high = difference(run, runs[CHOSEN])
            claim = f"{more:.4f} ({low:.4f} to {high:.4f})  {verdict(low, high)}"
        print(f"{name:10}  {np.mean(errors):.4f}       {deviation:.4f}  {claim}")


def unseen(table: ScoreTable, args: argparse.Namespace) -> None:
    seen = table.filtered(5)
    methods, tasks = np.isin(table.methods, seen.methods), np.isin(table.tasks, seen.tasks)
    done = side_by_side({name: partial(validate, table, name) for name in NAMES}, args.jobs)
    new = {name: one.part(~(methods[one.methods] & tasks[one.tasks])) for name, one in done.items()}
    total = len(done[OURS].cells)
    print(f"{len(new[OURS].cells)} of {total} results by which nothing was chosen; honest protocol")
    for name, one in new.items():
        more = ""
        if name != OURS:
            more = "{:.4f} more than neuco ({:.4f} to {:.4f})".format(*difference([one], [new[OURS]]))
        covered = "" if one.coverage is None else f"{one.coverage:.1%} in 95 % intervals"
        print(f"{name:10s} MSE {one.mse:.4f}  Spearman {one.order or 0:.3f}  {more}{covered}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("evaluate", "encoders", "unseen"))
    parser.add_argument("source", help="a board, a file, or paper")
    parser.add_argument("--least", type=int, help="leave out who has fewer results; 5, and 3 for unseen")
    parser.add_argument("--models", default=",".join(NAMES), help="also l2-3, cosine-5, poincare-5 and so on")
    parser.add_argument("--protocol", choices=("honest", "paper", "both"), default="both")
    parser.add_argument("--cold-start", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--hide-equal", action="store_true", help="hide equal scores of a task together")
    parser.add_argument("--seeds", type=int, help="1, and 10 for encoders")
    parser.add_argument("--jobs", type=int, default=available_cores())
    args = parser.parse_args()
    args.seeds = args.seeds or (10 if args.what == "encoders" else 1)
    table = open_source(args.source, args.least or (3 if args.what == "unseen" else 5)).table
    {"evaluate": evaluate, "encoders": encoders, "unseen": unseen}[args.what](table, args)


if __name__ == "__main__":
    main()
