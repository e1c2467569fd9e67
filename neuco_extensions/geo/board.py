"""The tab "Protocols": ranks under each protocol that a board's methods were scored by, and gaps to splits by place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neuco_core.boards.cells import Cells, from_records
from neuco_core.boards.facts import or_none
from neuco_core.boards.stats.ranking import DIGITS, positions, rank
from neuco_core.boards.stats.uncertainty import LEVEL, SEED
from neuco_core.plugins.catalog import catalog, for_probe, load_method, load_protocol
from neuco_core.protocol import SHUFFLE, Protocol
from neuco_core.scoring.compare import difference
from neuco_core.site.figures import num
from neuco_core.site.page_data import PageData
from neuco_core.site.render import TableCell
from neuco_core.specs import Splitter, Suite
from neuco_extensions.geo.control import space_scores

REPLICATES = 1000
FEWEST = 3  # methods, of which an order says something
CONTROL = "Nearest neighbour in space"


@dataclass(frozen=True)
class Gap:
    """What a method loses from random splits to others, with its interval; ``knows_place`` if it is all it knows."""

    name: str
    baseline: bool
    knows_place: bool
    means: tuple[float, float]
    gap: float
    low: float
    high: float

    @property
    def cells(self) -> list[TableCell]:
        numbers = [TableCell(num(value), "number") for value in (*self.means, self.gap)]
        interval = f"{num(self.low)} to {num(self.high)}" if math.isfinite(self.low) else "–"
        return [TableCell(self.name + " (baseline)" * self.baseline), *numbers, TableCell(interval, "number soft")]


def protocols(page: PageData) -> dict[str, Any] | None:
    """Nothing for a board whose methods were scored under one protocol only, or that is not ranked by Q."""
    if page.board.kind != "neuco" or not page.elsewhere:
        return None
    cells = cells_by_protocol(page)
    gaps = {name: found for name in cells if (found := gaps_to(page, cells, name))}
    values = {name: _q(page, of_protocol) for name, of_protocol in cells.items()}
    own, *others = values
    orders = {name: order for name in others if (order := _order(values[own], values[name]))}
    if not gaps and not orders:
        return None
    rows = []
    for row in page.board.ranked:
        title = TableCell(page.method_title(row.method), href=f"method/{row.method}.html")
        rows.append([title, TableCell(row.rank, "number"), *(order.move(row.method) for order in orders.values())])
    taus = [TableCell(order, "number") for order in orders.values()]
    rows.append([TableCell("Kendall's τ, 95 % interval"), TableCell("", "number"), *taus])
    return {
        "ranks": (["Method", (own, "number"), *((name, "number") for name in orders)], rows),
        "sentence": _least_alike(orders),
        "location": _beaten_by_location(max(gaps.values(), key=len)) if gaps else "",
        "gaps": [(name, found, (min(g.gap for g in found), max(g.gap for g in found))) for name, found in gaps.items()],
    }


def cells_by_protocol(page: PageData) -> dict[str, Cells]:
    """The cells of the board's tasks by protocol, the board's own first."""
    suite = page.board.suite
    if suite is None or page.cells is None:
        return {}
    others = sorted({record.protocol for record in page.elsewhere})
    suites = {name: Suite(id=page.id, tasks=suite.tasks, protocol=name) for name in others}
    return {suite.protocol: page.cells} | {n: from_records(page.elsewhere, other) for n, other in suites.items()}


# --- orders


@dataclass(frozen=True)
class Order:
    """How far a protocol orders methods as the board does: Kendall's τ, and both ranks among the same methods."""

    moves: Mapping[str, tuple[int, int]]
    tau: float
    low: float
    high: float

    def move(self, method: str) -> TableCell:
        if method not in self.moves:
            return TableCell("–", "number")
        before, after = self.moves[method]
        return TableCell(f"{before} → {after}", f"number m{min(abs(before - after), 5)}")

    def __str__(self) -> str:
        return f"{num(self.tau, 2)} ({num(self.low, 2)} to {num(self.high, 2)})"


def _q(page: PageData, cells: Cells) -> dict[str, list[float]]:
    """Q on every task, of the ranked methods that have it."""
    of_methods = {
        row.method: [cells.cell(row.method, task.id) for task in page.board.tasks] for row in page.board.ranked
    }
    return {name: [c.q or 0.0 for c in found] for name, found in of_methods.items() if all(c.scored for c in found)}


def _order(own: Mapping[str, list[float]], other: Mapping[str, list[float]]) -> Order | None:
    methods = [name for name in own if name in other]
    if len(methods) < FEWEST:
        return None
    first, second = (np.array([q[name] for name in methods]).T for q in (own, other))
    ranks = zip(rank(first).final.tolist(), rank(second).final.tolist(), strict=True)
    return Order(dict(zip(methods, ranks, strict=True)), *agreement(first, second))


def agreement(first: np.ndarray, second: np.ndarray) -> tuple[float, float, float]:
    """Kendall's τ-b of the rankings by two arrays of Q (tasks, methods), and its interval.

    The interval is from a bootstrap that draws tasks and methods anew: how τ might be on others of their kind.
    """
    random = np.random.RandomState(SEED)
    tasks, methods = (random.randint(0, size, (REPLICATES, size)) for size in first.shape)
    drawn = kendall(*(q[tasks[:, :, None], methods[:, None]] for q in (first, second)))
    low, high = np.nanquantile(drawn, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    tau = float(kendall(first, second))
    return tau, min(float(low), tau), max(float(high), tau)


def kendall(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """τ-b of weighted ranks by Q (…, tasks, methods); not defined where one of the two orders nothing."""
    places = [positions(np.round(rank(q).weighted, DIGITS)) for q in (first, second)]
    a, b = (np.sign(place[..., None] - place[..., None, :]) for place in places)
    with np.errstate(invalid="ignore"):
        return np.asarray((a * b).sum((-1, -2)) / np.sqrt((a**2).sum((-1, -2)) * (b**2).sum((-1, -2))))


def _least_alike(orders: Mapping[str, Order]) -> str:
    if not orders:
        return ""
    name = min(orders, key=lambda name: orders[name].tau)
    order = orders[name]
    verdict = "the two orders are much alike" if order.low > 0.5 else "the two orders have something in common"
    if order.low <= 0:
        verdict = "it is not certain that the two orders have anything in common"
    return (
        f"The order least like this one is that under {name}: τ = {order} over {len(order.moves)} methods; {verdict}."
    )


# --- gaps


def gaps_to(page: PageData, cells: Mapping[str, Cells], name: str, tasks: Sequence[str] = ()) -> list[Gap]:
    """What methods and the location lose from random splits to those of a protocol that differs in nothing else."""
    by_place = load_protocol(name)
    alike = [p for p in map(load_protocol, cells) if p.splitter == SHUFFLE and _probing(p) == _probing(by_place)]
    if not alike or not keeps_apart(by_place):
        return []
    pair = alike[0], by_place
    chosen = [task for task in page.board.tasks if not tasks or task.id in tasks]
    signs = [1.0 if task.greater_is_better else -1.0 for task in chosen]
    gaps = []
    for row in page.board.shown:
        both = [[cells[p.name].cell(row.method, task.id) for task in chosen] for p in pair]
        if not row.same_as and all(cell.scored and cell.splits for side in both for cell in side):
            splits = [_over_tasks([np.array(cell.splits, float) for cell in side], signs) for side in both]
            ratios = [max(cell.test_to_train * cell.trained.factor for cell in side) for side in both]
            method = or_none(load_method, row.method)
            knows_place = method is not None and method.uses_positions
            gaps.append(_gap(page.method_title(row.method), row.baseline, knows_place, splits, ratios))
    if gaps and all(task.id in page.labels for task in chosen):  # building a page fetches nothing
        near = [[space_scores(task.id, p) for task in chosen] for p in pair]
        if all(len(scores) for side in near for scores in side):
            gaps.append(_gap(CONTROL, True, True, [_over_tasks(side, signs) for side in near], [1 / 9, 1 / 9]))
    return sorted(gaps, key=lambda gap: -gap.means[0])


def _over_tasks(scores: Sequence[np.ndarray], signs: Sequence[float]) -> np.ndarray:
    """The mean over tasks of each split, so that what a split does to all of them is not taken for independent."""
    if len({len(each) for each in scores}) > 1:
        return np.array([np.mean([sign * np.nanmean(each) for each, sign in zip(scores, signs, strict=True)])])
    stacked = np.stack(scores) * np.array(signs)[:, None]
    return np.asarray(stacked[:, np.isfinite(stacked).all(axis=0)].mean(axis=0))


def _gap(name: str, baseline: bool, place: bool, splits: Sequence[np.ndarray], ratios: Sequence[float]) -> Gap:
    means = float(splits[0].mean()), float(splits[1].mean())
    return Gap(name, baseline, place, means, *difference(splits[0], splits[1], (ratios[0], ratios[1])))


def keeps_apart(protocol: Protocol) -> bool:
    splitter = or_none(lambda name: catalog().load(Splitter, name), protocol.splitter)
    return splitter is not None and (splitter.needs_groups or splitter.needs_positions)


def _probing(protocol: Protocol) -> Protocol:
    """A protocol without all that says how samples are divided."""
    return replace(for_probe(protocol), name="any", splitter=SHUFFLE, k=1, test_size=0.1, seed=0)


def _beaten_by_location(gaps: Sequence[Gap]) -> str:
    """Which methods do not beat the location alone, by random splits."""
    floor = max((gap for gap in gaps if gap.knows_place), key=lambda gap: gap.means[0], default=None)
    if floor is None:
        return ""
    below = [gap.name for gap in gaps if not gap.baseline and gap.means[0] <= floor.means[0]]
    return (
        f"By random splits the location alone ({floor.name}) has a mean score of {num(floor.means[0])}. Methods that "
        f"do not beat it, and may know where and not what: {'; '.join(below) or 'none'}."
    )
