"""The board of bytes: methods by the area under their curves, with the best form for each budget, and fronts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace as replace_cells

import numpy as np
from msgspec.structs import replace

from neuco_core.boards.cells import COVERAGE, BoardMethod, Cells, pool
from neuco_core.boards.facts import or_none
from neuco_core.boards.model import (
    RANDOM,
    BoardTask,
    Column,
    Interval,
    Ranked,
    Section,
    Uncertainty,
    Value,
    number,
)
from neuco_core.boards.stats.rank_intervals import Pairs, groups, percentiles, rank_ranges, share_behind
from neuco_core.boards.stats.ranking import DIGITS, positions
from neuco_core.boards.stats.uncertainty import LEVEL, SEED, chance_of_first, differences
from neuco_core.errors import UnknownIdError
from neuco_core.plugins.catalog import load_dataset
from neuco_core.text import join_names
from neuco_extensions.rate.curves import FIRST, LAST, WHOLE, Curves, Point, front

BUDGETS = (16, 32, 64, 128, 256, 512, 1024)
LAND = 148.94e12  # square metres of the Earth's surface that are land
HOW = (
    "bootstrap over splits, the same for all methods and coders, as on the board of Q; the points of a curve are those "
    "of the scores as they are, so intervals do not tell what choosing among coders flatters; groups are by t-tests of "
    "mean scores under the curve, all pairs judged at once (Holm)"
)
METHOD, CODER = Column("method", "Method", format="method"), Column("coder", "Coder", format="text")
BYTES = Column("bytes", "Bytes", "Stored bytes per sample; what all samples share is apart", "lower", 1)
Q = Column("q", "Mean Q", "Mean of Q over the tasks", "higher", 2)
ENDS = Column("low", "95 % from", digits=2), Column("high", "to", digits=2)
TERABYTES = Column("tb", "TB of land", "Terabytes for all land at the distance of the samples", "lower", 2)
SHARED = Column("shared", "Shared", "Bytes that all samples share, such as codebooks", "lower", 0, "integer")
AREA = Column("area", "Area", f"Mean Q over the logarithm of the bytes, from {FIRST} to {LAST:,}", "higher", 2)
MEASURES = (
    Column("encode_ms", "ms per sample", "Milliseconds to encode a sample where it was scored", "lower", 1),
    Column("n_parameters", "parameters", "Numbers that were learned and are used to encode", "lower", 0, "integer"),
    Column("flops", "FLOPs", "Operations to encode a sample, as torch counts them", "lower", 0, "integer"),
)
COLUMNS = (
    Column("best", "P(first)", "How often the method is first if splits are resampled", "higher", 0, "percent"),
    AREA,
    Column("bd", "Against", "Bjøntegaard's difference of Q to the first, or to --against METHOD", "higher", 2),
    *(Column(f"q{b}", f"≤ {b:,} B", f"Mean Q of the best form of at most {b:,} bytes", "higher", 2) for b in BUDGETS),
    replace(BYTES, label="Float32", help="Bytes per sample without a coder", digits=0),
)
POINTS = "All points"
NO_CURVE = "no scores with a coder: `neuco rate curve --all --suite …` makes them"


def rank_rates(
    cells: Cells, *, coverage: str = "complete", footprint: float = 0.0, against: str = "", replicates: int = 1000
) -> Ranked:
    """Rank by the area under the curve of Q over the logarithm of the bytes."""
    chosen = pool(cells, coverage)
    points: Sequence[Point] = getattr(cells, "points", ())
    status = {(p.method, cell.status) for p in points if p.coder != WHOLE for cell in p.cells.values()}
    coded, stale = ([name for name, of_cell in sorted(status) if of_cell == wanted] for wanted in ("ok", "stale"))
    methods = {method.id: method for method in chosen.methods if method.id in coded}
    if against and against not in methods:
        raise UnknownIdError("method on this board", against, methods)
    left_out = tuple(
        method.row(None, cells.shown(method), note=NO_CURVE if method in chosen.methods else "")
        for method in cells.methods
        if method.id not in methods
    )
    empty = Ranked(
        columns=COLUMNS,
        rule=f"area under mean Q over the logarithm of the bytes, {FIRST} to {LAST:,}; {COVERAGE[coverage]}",
        tasks=chosen.tasks,
        rows=left_out,
        notes=(f"{NO_CURVE.capitalize()}.",) if left_out and not methods else (),
    )
    if not methods:
        return empty
    curves = Curves(replace_cells(chosen, methods=tuple(methods.values())), replicates)
    shares = {name: curves.shares(name) for name in methods}
    areas = {name: round(float(curves.q @ share), DIGITS) for name, share in shares.items()}
    order = sorted(methods, key=lambda name: (-areas[name], name))
    values = {name: _values(curves, name, against or order[0], curves.q) for name in order}
    intervals: dict[str, dict[str, Interval]] = {name: {} for name in order}
    final, groups_alike, uncertainty = positions(-np.array([areas[name] for name in order])), None, None
    if curves.again is not None:
        weights = np.stack([shares[name] for name in order])
        again, apart = np.round(curves.again @ weights.T, DIGITS), _apart(curves, weights)
        ranks = positions(-again)
        best, ends = chance_of_first(ranks), rank_ranges(final, ranks, Pairs(share_behind(-again), apart), LEVEL)
        for m, name in enumerate(order):
            replicated = _values(curves, name, against or order[0], curves.again)
            intervals[name] = {key: _interval(of_key) for key, of_key in replicated.items()}
            intervals[name]["rank"] = Interval(int(ends.low[m]), int(ends.high[m]))
            values[name]["best"] = best[m]
        groups_alike = tuple(tuple(order[m] for m in group) for group in groups(range(len(order)), apart))
        uncertainty = Uncertainty(LEVEL, HOW, replicates, SEED)
    notes = [f"Against: {against or order[0]}."]
    if stale:
        notes.append(
            f"Scores that no longer hold are left out: {join_names(stale)}. `neuco rate curve` makes them again."
        )
    ranked = []
    for rank, name in zip(final.tolist(), order, strict=True):
        numbers = {"bytes": 4.0 * (methods[name].dim or 0), **{key: float(v) for key, v in values[name].items()}}
        ranked.append(methods[name].row(rank, cells.shown(methods[name]), values=numbers, intervals=intervals[name]))
    return replace(
        empty,
        rows=(*ranked, *left_out),
        notes=tuple(notes),
        sections=tuple(_sections(curves, [methods[name] for name in order], footprint or footprint_of(chosen.tasks))),
        groups=groups_alike,
        uncertainty=uncertainty,
    )


def footprint_of(tasks: Iterable[BoardTask]) -> float:
    """The width of a sample in metres, if all datasets have the same; 0 if that is not known."""
    datasets = [or_none(load_dataset, name) for name in sorted({task.dataset for task in tasks})]
    widths = {dataset.footprint if dataset else 0.0 for dataset in datasets}
    return float(widths.pop()) if len(widths) == 1 else 0.0


def _values(curves: Curves, method: str, reference: str, q: np.ndarray) -> dict[str, np.ndarray]:
    """The columns of a method, from ``q`` (…, points): what they are, or what they are in replicates."""
    values = {"area": q @ curves.shares(method)}
    for budget in BUDGETS:
        if (best := curves.at_budget(method, budget)) is not None:
            values[f"q{budget}"] = q[..., best]
    if (gap := curves.difference(method, reference, q)) is not None:
        values["bd"] = gap
    return values


def _interval(values: np.ndarray) -> Interval:
    ends = percentiles(values, LEVEL)
    return Interval(number(ends.low, RANDOM), number(ends.high, RANDOM))


def _apart(curves: Curves, weights: np.ndarray) -> np.ndarray:
    """Which pairs of methods, in order of their areas, are told apart, by mean scores weighted as the areas are."""
    weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)
    scores = []
    for task in curves.scores:
        splits = np.where(np.isfinite(task.splits), task.splits, np.nanmean(task.splits, axis=1, keepdims=True))
        factors = weights @ np.broadcast_to(task.factors, len(splits))
        scores.append(replace_cells(task, splits=weights @ splits, factors=factors, trials=1.0))
    found = differences(scores, np.full(len(scores), 1 / len(scores)))
    in_order = np.triu(found.better > 0)
    apart: np.ndarray = found.sure(LEVEL) & (in_order | in_order.T)
    return apart


def _sections(curves: Curves, methods: Sequence[BoardMethod], footprint: float) -> Iterable[Section]:
    """The winner by budget, fronts, and all points."""
    columns = (METHOD, CODER, BYTES, Q, *(ENDS if curves.again is not None else ()))
    columns += (TERABYTES,) if footprint else ()

    def line(at: int) -> tuple[Value, ...]:
        point = curves.points[at]
        interval = _interval(curves.again[:, at]) if curves.again is not None else None
        ends = (interval.low, interval.high) if interval else ()
        land = (number(point.size * LAND / footprint**2 / 1e12),) if footprint else ()
        return point.method, point.coder, number(point.size), number(curves.q[at]), *ends, *land

    budget = Column("budget", "At most", "Bytes per sample", format="integer")
    winners = []
    for most in BUDGETS:
        fitting = [at for method in methods if (at := curves.at_budget(method.id, most)) is not None]
        if fitting:
            name, coder, *numbers = line(max(fitting, key=lambda at: curves.q[at]))
            winners.append((name, coder, most, *numbers))
    yield Section("The best at a budget", (METHOD, CODER, budget, *columns[2:]), tuple(winners))
    stairs = [at for method in methods for at in curves.stairs(method.id)]
    best = (stairs[k] for k in front(curves.sizes[stairs], curves.q[stairs]))
    yield Section("Nothing smaller is as good", columns, tuple(map(line, best)))
    whole = {point.method: at for at, point in enumerate(curves.points) if point.coder == WHOLE}
    for measure in MEASURES:
        known = [method for method in methods if measure.key in method.values]
        costs, q = [float(m.values[measure.key] or 0) for m in known], [curves.q[whole[m.id]] for m in known]
        lines = tuple((known[k].id, number(costs[k]), number(q[k])) for k in front(costs, q))
        if lines:
            yield Section(f"Front of Q against {measure.label}", (METHOD, measure, Q), lines)
    place = {method.id: rank for rank, method in enumerate(methods)}
    order = sorted((place[point.method], point.size, point.coder, at) for at, point in enumerate(curves.points))
    everything = tuple((*line(at), number(curves.points[at].shared)) for *_, at in order)
    yield Section(POINTS, (*columns, SHARED), everything)
