"""The tab "Protocols": ranks under each protocol that a board's methods were scored by, and how far they agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from neuco_core.boards.cells import Cells
from neuco_core.boards.stats.ranking import DIGITS, rank
from neuco_core.boards.stats.uncertainty import LEVEL, SEED
from neuco_core.site.figures import num
from neuco_core.site.page_data import PageData
from neuco_core.site.render import TableCell

REPLICATES = 1000
FEWEST = 3  # methods, of which an order says something


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


def protocols(page: PageData) -> dict[str, Any] | None:
    """Nothing for a board whose methods were scored under one protocol only, or that is not ranked by Q."""
    if page.board.kind != "neuco" or len(page.protocols) < 2:
        return None
    # What comes back from a coder is another embedding, and has a tab of its own.
    of_board = {name: cells for name, cells in page.protocols.items() if "coder=" not in name}
    own, *others = q = {name: _q(page, cells) for name, cells in of_board.items()}
    orders = {name: order for name in others if (order := compared(q[own], q[name]))}
    if not orders:
        return None
    rows = []
    for row in page.board.ranked:
        title = TableCell(page.method_title(row.method), href=f"method/{row.method}.html")
        rows.append([title, TableCell(row.rank, "number"), *(order.move(row.method) for order in orders.values())])
    taus = [TableCell(order, "number") for order in orders.values()]
    rows.append([TableCell("Kendall's τ, 95 % interval"), TableCell("", "number"), *taus])
    heads = ["Method", *((name, "number") for name in (own, *orders))]
    return {"heads": heads, "ranks": rows, "sentence": _least_alike(orders)}


def _q(page: PageData, cells: Cells) -> dict[str, list[float]]:
    """Q on every task, of the ranked methods that have it."""
    of_methods = {
        row.method: [cells.cell(row.method, task.id) for task in page.board.tasks] for row in page.board.ranked
    }
    return {name: [c.q or 0.0 for c in found] for name, found in of_methods.items() if all(c.scored for c in found)}


def compared(own: Mapping[str, list[float]], other: Mapping[str, list[float]]) -> Order | None:
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
    drawn = [tau(*(q[np.ix_(t, m)] for q in (first, second))) for t, m in zip(tasks, methods, strict=True)]
    low, high = np.nanquantile(drawn, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    of_all = tau(first, second)
    return of_all, min(float(low), of_all), max(float(high), of_all)


def tau(first: np.ndarray, second: np.ndarray) -> float:
    """Of weighted ranks; not defined where one of the two orders nothing."""
    return float(kendalltau(*(np.round(rank(q).weighted, DIGITS) for q in (first, second))).statistic)


def _least_alike(orders: Mapping[str, Order]) -> str:
    name = min(orders, key=lambda name: orders[name].tau)
    order = orders[name]
    verdict = "the two orders are much alike" if order.low > 0.5 else "the two orders have something in common"
    if order.low <= 0:
        verdict = "it is not certain that the two orders have anything in common"
    return (
        f"The order least like this one is that under {name}: τ = {order} over {len(order.moves)} methods; {verdict}."
    )
