"""The curves of a board of bytes, as one figure: a staircase for each method, on the page and in a file."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from neuco_core.boards.build import build_board
from neuco_core.boards.model import Board
from neuco_core.boards.store import current
from neuco_core.records.store import read_all
from neuco_core.site.figures import round_step
from neuco_core.site.page_data import PageData
from neuco_core.site.render import render
from neuco_extensions.rate.board import POINTS

TOP, BOTTOM, LEFT, WIDTH = 16, 372, 7.0, 91.0  # pixels down, and shares across


class Stairs:
    """From the points of a board to places: across doubles from tick to tick, up is linear."""

    def __init__(self, board: Board) -> None:
        section = next(section for section in board.sections if section.title == POINTS)
        keys = [column.key for column in section.columns]
        self.points: dict[str, list[dict[str, Any]]] = {}
        for values in section.rows:
            row = dict(zip(keys, values, strict=True))
            kept = self.points.setdefault(str(row["method"]), [])
            if not kept or row["q"] > kept[-1]["q"]:  # they come by rising bytes
                kept.append(row)
        drawn = [row for rows in self.points.values() for row in rows]
        self.first = math.floor(math.log2(min(row["bytes"] for row in drawn)))
        self.last = max(math.ceil(math.log2(max(row["bytes"] for row in drawn))), self.first + 1)
        low, high = min(0.0, *(row["q"] for row in drawn)), max(row["q"] for row in drawn)
        step = round_step(high - low, 6, (1, 2, 5, 10))
        self.low, self.high = step * math.floor(low / step), step * math.ceil(high / step)
        self.levels = [self.low + k * step for k in range(round((self.high - self.low) / step) + 1)]
        every = max(1, math.ceil((self.last - self.first) / 9))  # as many numbers as a phone has room for
        self.ticks = [2**power for power in range(self.first, self.last + 1, every)]

    def x(self, size: float) -> str:
        return f"{LEFT + WIDTH * (math.log2(size) - self.first) / (self.last - self.first):.2f}%"

    def y(self, q: float) -> str:
        return f"{BOTTOM - (q - self.low) / (self.high - self.low or 1) * (BOTTOM - TOP):.1f}"

    def path(self, method: str) -> str:
        """In the stretched drawing: thousandths across, pixels down."""
        rows = self.points[method]
        across = [1000 * (math.log2(row["bytes"]) - self.first) / (self.last - self.first) for row in rows]
        steps = [f"H{x:.1f}V{float(self.y(row['q'])) - TOP:.1f}" for x, row in zip(across, rows, strict=True)]
        return f"M{across[0]:.1f} {float(self.y(rows[0]['q'])) - TOP:.1f}{''.join(steps[1:])}H1000"


def drawing(board: Board, titles: Callable[[str], str]) -> Markup:
    """Needs points: there are none on a board without scores."""
    shown = [row for row in board.ranked if row.values.get("area") is not None]
    values = {"board": board, "rows": shown, "stairs": Stairs(board), "titles": titles, "edges": (TOP, BOTTOM)}
    return Markup(render("neuco_extensions.rate:stairs.html", **values))  # noqa: S704 (rendered with autoescape)


def curves_of_board(page: PageData) -> dict[str, Any] | None:
    """The page of any suite with scores of coded embeddings has the tab."""
    board = page.board
    if board.suite is None or page.registry is None:
        return None
    if board.kind != "rate":
        prefix = f"{board.suite.protocol.partition('+')[0]}+"
        protocols = {record.protocol for record in read_all(page.registry)}
        # What is stale takes a while to say, and few suites have scores of coded embeddings.
        if any("probe=coded" in name and name.startswith(prefix) for name in protocols):
            now = current(page.registry)
            suite = replace(now.suites[board.suite.id], kind="rate", options={})
            board = build_board(now.records, suite, stale=now.why_stale)
    sections = {section.title: section for section in board.sections}
    if POINTS not in sections:
        return None
    return {"rates": board, "figure": drawing(board, page.method_title), "sections": sections, "POINTS": POINTS}
