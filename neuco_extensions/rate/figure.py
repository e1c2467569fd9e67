"""The curves of a board of bytes, as one figure: a staircase for each method, on the page and in a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from markupsafe import Markup
from msgspec.structs import replace

from neuco_core.boards.build import build_board
from neuco_core.boards.model import Board, BoardRow
from neuco_core.site.figures import Scatter
from neuco_core.site.page_data import PageData
from neuco_core.site.render import render
from neuco_core.specs import Suite
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
    columns = replace(BYTES, format="integer"), Q
    axes = Scatter(replace(board, columns=columns, rows=rows, scatter=("bytes", "q"), groups=None))
    values = {"rows": board.ranked, "stairs": stairs, "axes": axes, "titles": titles}
    return Markup(render("neuco_extensions.rate:stairs.html", **values))  # noqa: S704 (rendered with autoescape)


def curves_of_board(page: PageData) -> dict[str, Any] | None:
    """The page of any suite with scores of coded embeddings has the tab."""
    board, suite = page.board, page.board.suite
    if suite and page.cells and board.kind != "rate" and any("probe=coded" in r.protocol for r in page.elsewhere):
        # Of all other protocols there are current scores alone.
        whole = [record for key, record in page.records.items() if page.cells.cell(*key).scored]
        ranked_by_bytes = Suite(id=suite.id, tasks=suite.tasks, protocol=suite.protocol, kind="rate")
        board = build_board([*whole, *page.elsewhere], ranked_by_bytes)
    sections = {section.title: section for section in board.sections}
    if POINTS not in sections:
        return None
    return {"rates": board, "figure": drawing(board, page.method_title), "sections": sections, "POINTS": POINTS}
