"""The curves of a board of bytes, as one figure: a staircase for each method, on the page and in a file."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from markupsafe import Markup
from msgspec.structs import replace as replace_part

from neuco_core.boards.build import build_board
from neuco_core.boards.model import Board, BoardRow
from neuco_core.boards.store import current
from neuco_core.site.figures import Scatter
from neuco_core.site.page_data import PageData
from neuco_core.site.render import render
from neuco_extensions.rate.board import BYTES, POINTS, Q
from neuco_extensions.rate.curves import ALL, front


def drawing(board: Board, titles: Callable[[str], str]) -> Markup:
    """Needs points: there are none on a board without scores."""
    stairs: dict[str, list[dict[str, Any]]] = {}
    section = next(section for section in board.sections if section.title == POINTS)
    keys = [column.key for column in section.columns]
    points: list[dict[str, Any]] = [dict(zip(keys, values, strict=True)) for values in section.rows]
    for row in board.ranked:
        own = [point for point in points if point["method"] == row.method and not point["coder"].endswith(ALL)]
        stairs[row.method] = [own[at] for at in front([p["bytes"] for p in own], [p["q"] for p in own])]
    drawn = [point for of_method in stairs.values() for point in of_method]
    # The axes are those of a board whose rows are the points.
    rows = tuple(BoardRow(f"p{at}", 1, values={"bytes": p["bytes"], "q": p["q"]}) for at, p in enumerate(drawn))
    columns = replace_part(BYTES, format="integer"), replace_part(Q, digits=0)
    axes = Scatter(replace_part(board, columns=columns, rows=rows, scatter=("bytes", "q"), groups=None))
    axes.low, axes.high = 4 * math.floor(axes.low / 4), 4 * math.ceil(axes.high / 4)  # whole numbers at four steps
    values = {"rows": board.ranked, "stairs": stairs, "axes": axes, "titles": titles}
    return Markup(render("neuco_extensions.rate:stairs.html", **values))  # noqa: S704 (rendered with autoescape)


def curves_of_board(page: PageData) -> dict[str, Any] | None:
    """The page of any suite with scores of coded embeddings has the tab."""
    board = page.board
    if board.suite and page.registry and any("probe=coded" in record.protocol for record in page.elsewhere):
        now = current(page.registry)  # with scores that no longer hold, so that the tab can name them
        board = build_board(now.records, replace(now.suites[page.id], kind="rate", options={}), stale=now.why_stale)
    sections = {section.title: section for section in board.sections}
    if POINTS not in sections:
        return None
    return {"rates": board, "figure": drawing(board, page.method_title), "sections": sections, "POINTS": POINTS}
