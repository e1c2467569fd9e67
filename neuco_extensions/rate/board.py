"""The board of bytes: methods by the area under their curves, with the best form for each budget, and fronts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace as replace_scores

import numpy as np
from msgspec.structs import replace

from neuco_core.boards.cells import COVERAGE, Cells, pool
from neuco_core.boards.model import (
    RANDOM,
    SCORE,
    STD,
    BoardRow,
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
from neuco_extensions.rate.curves import FIRST, LAST, WHOLE, Curves, RateCells

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
    Column("n_parameters", "Parameters", "Numbers that were learned and are used to encode", "lower", 0, "integer"),
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
    rates = cells if isinstance(cells, RateCells) else RateCells(cells.tasks, cells.methods, cells.cells)
    coded = {method for method, coder in rates.sizes if coder != WHOLE}
    methods = [method for method in chosen.methods if method.id in coded]
    curves = Curves(rates, methods, chosen.tasks, replicates)
    names = [method.id for method in curves.methods]
    if against and against not in names:
        raise UnknownIdError("method on this board", against, names)
    left_out = []
    for method in cells.methods:
        if method not in methods:
            note = NO_CURVE if method in chosen.methods else ""
            left_out.append(method.row(None, cells.shown(method), note=note))
    empty = Ranked(
        columns=COLUMNS,
        cell_columns=(AREA, SCORE, STD),
        rule=f"area under mean Q over the logarithm of the bytes, {FIRST} to {LAST:,}; {COVERAGE[coverage]}",
        tasks=chosen.tasks,
        rows=tuple(left_out),
        profile="area",
    )
    if not names:
        return replace(empty, notes=(f"{NO_CURVE.capitalize()}.",)) if left_out else empty
    shares = np.array([curves.shares(m) for m in range(len(names))])
    mean_q = curves.q.mean(axis=0)
    areas = np.round(mean_q @ shares.T, DIGITS)
    final = positions(-areas)
    order = sorted(range(len(names)), key=lambda m: (final[m], names[m]))
    reference = names.index(against) if against else order[0]
    rows = _rows(curves, shares, order, final, reference)
    apart = _apart(curves, shares, areas)
    ranked = replace(
        empty,
        rows=(*_with_ranks(curves, shares, rows, order, final, apart), *left_out),
        notes=(f"Against: {names[reference]}.",),
        sections=tuple(_sections(curves, order, footprint)),
    )
    if curves.again is None:
        return ranked
    alike = tuple(tuple(names[m] for m in group) for group in groups(order, apart))
    return replace(ranked, groups=alike, uncertainty=Uncertainty(LEVEL, HOW, replicates, SEED))


def _apart(curves: Curves, shares: np.ndarray, areas: np.ndarray) -> np.ndarray:
    """Which pairs of methods are told apart, by mean scores weighted as the areas weigh them."""
    if curves.again is None:
        return np.zeros((len(areas), len(areas)), dtype=bool)
    weight = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-12)
    scores = []
    for task in curves.scores:
        splits = np.where(np.isfinite(task.splits), task.splits, np.nanmean(task.splits, axis=1, keepdims=True))
        factors = weight @ np.broadcast_to(task.factors, len(splits))
        scores.append(replace_scores(task, splits=shares @ splits, factors=factors, trials=1.0))
    found = differences(scores, np.full(len(scores), 1 / len(scores)))
    in_order = (found.better > 0) == (areas[:, None] > areas)
    apart: np.ndarray = found.sure(LEVEL) & in_order
    return apart


def _interval(values: np.ndarray) -> Interval:
    ends = percentiles(values, LEVEL)
    return Interval(number(ends.low, RANDOM), number(ends.high, RANDOM))


def _rows(
    curves: Curves, shares: np.ndarray, order: Sequence[int], final: np.ndarray, reference: int
) -> dict[int, BoardRow]:
    """The rows without what needs replicates of all methods at once."""
    mean_q, rows = curves.q.mean(axis=0), {}
    again = None if curves.again is None else curves.again.mean(axis=1)
    for m in order:
        method, shown = curves.methods[m], {}
        for t, task in enumerate(curves.tasks):
            around = {} if curves.again is None else {"area": _interval(curves.again[:, t] @ shares[m])}
            cell = curves.flat.cell(f"p{curves.whole(m)}", task.id)
            shown[task.id] = cell.shown(values={"area": float(curves.q[t] @ shares[m])}, intervals=around)
        values: dict[str, str | float | int | None] = {"area": float(mean_q @ shares[m])}
        intervals = {} if again is None else {"area": _interval(again @ shares[m])}
        for budget in BUDGETS:
            at_most = curves.within(m, budget)
            if at_most is not None:
                values[f"q{budget}"] = float(mean_q[at_most])
                if again is not None:
                    intervals[f"q{budget}"] = _interval(again[:, at_most])
        gap = curves.difference(m, reference, mean_q)
        if gap is not None:
            values["bd"] = float(gap)
            moved = None if again is None else curves.difference(m, reference, again)
            if moved is not None:
                intervals["bd"] = _interval(moved)
        values["bytes"] = 4.0 * (method.dim or 0)
        rows[m] = method.row(int(final[m]), shown, values=values, intervals=intervals)
    return rows


def _with_ranks(
    curves: Curves,
    shares: np.ndarray,
    rows: dict[int, BoardRow],
    order: Sequence[int],
    final: np.ndarray,
    apart: np.ndarray,
) -> Iterable[BoardRow]:
    if curves.again is None:
        yield from (rows[m] for m in order)
        return
    areas = np.round(curves.again.mean(axis=1) @ shares.T, DIGITS)
    ranks = positions(-areas)
    ends, best = rank_ranges(final, ranks, Pairs(share_behind(-areas), apart), LEVEL), chance_of_first(ranks)
    for m in order:
        intervals = {**rows[m].intervals, "rank": Interval(int(ends.low[m]), int(ends.high[m]))}
        yield replace(rows[m], values={**rows[m].values, "best": number(best[m], RANDOM)}, intervals=intervals)


def _sections(curves: Curves, order: Sequence[int], footprint: float) -> Iterable[Section]:
    """The winner by budget, fronts, and all points."""
    mean_q = curves.q.mean(axis=0)
    again = None if curves.again is None else curves.again.mean(axis=1)
    columns: tuple[Column, ...] = (METHOD, CODER, BYTES, Q, *(ENDS if again is not None else ()))
    columns += (TERABYTES,) if footprint else ()

    def line(at: int) -> tuple[Value, ...]:
        point = curves.points[at]
        interval = _interval(again[:, at]) if again is not None else None
        ends = (interval.low, interval.high) if interval else ()
        size = number(point.size.sample)
        land = (number(point.size.sample * LAND / footprint**2 / 1e12),) if footprint else ()
        return curves.methods[point.method].id, point.coder, size, number(mean_q[at]), *ends, *land

    budget = Column("budget", "At most", "Bytes per sample", format="integer")
    winners = []
    for most in BUDGETS:
        fitting = [at for m in order if (at := curves.within(m, most)) is not None]
        if fitting:
            method, coder, *numbers = line(max(fitting, key=lambda at: mean_q[at]))
            winners.append((method, coder, most, *numbers))
    yield Section("The best at a budget", (METHOD, CODER, budget, *columns[2:]), tuple(winners))
    sizes = [point.size.sample for point in curves.points]
    yield Section("Nothing smaller is as good", columns, tuple(line(at) for at in front(sizes, mean_q)))
    whole = [curves.whole(m) for m in range(len(curves.methods))]
    for measure in MEASURES:
        known = [(at, method) for at, method in zip(whole, curves.methods, strict=True) if measure.key in method.values]
        values = [float(method.values[measure.key] or 0) for _, method in known]
        best = front(values, mean_q[[at for at, _ in known]])
        fronts = tuple((known[k][1].id, number(values[k]), number(mean_q[known[k][0]])) for k in best)
        if fronts:
            yield Section(f"Front of Q against {measure.label}", (METHOD, measure, Q), fronts)
    everything = sorted(range(len(sizes)), key=lambda at: (order.index(curves.points[at].method), sizes[at]))
    rows = tuple((*line(at), number(curves.points[at].size.shared)) for at in everything)
    yield Section(POINTS, (*columns, SHARED), rows)


def front(costs: Sequence[float], q: np.ndarray) -> list[int]:
    """The places that nothing cheaper is as good as, by cost."""
    kept: list[int] = []
    for at in sorted(range(len(costs)), key=lambda at: (costs[at], -q[at])):
        if not kept or q[at] > q[kept[-1]]:
            kept.append(at)
    return kept
