"""Small parts that the pages of the site share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuco_core.boards.formatting import nobody, show
from neuco_core.boards.model import Column, Interval, Section, Value
from neuco_core.boards.views.report import TEXT, marked
from neuco_core.boards.views.site.html import Safe, join, table, tag
from neuco_core.boards.views.site.source import BoardSource

MANY, MOST = 12, 60  # rows of a small table, and of a large one


def shown(column: Column, value: Value) -> str:
    """A value with a real minus sign."""
    text = show(column, value)
    return text.replace("-", "−") if isinstance(value, int | float | Interval) else text


def nobody_yet(source: BoardSource) -> Safe:
    return tag("p", nobody(source.id) if not source.published else "No method is ranked.")


def facts_list(facts: Sequence[tuple[str, object]], class_: str = "facts") -> Safe:
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts), class_=class_)


def figure(name: str, title: str, words: str) -> Safe:
    drawing = tag("div", id=name, class_="drawing")
    caption = tag("figcaption", tag("b", title), " ", words)
    return tag("figure", caption, drawing, tag("p", id=f"{name}-says", class_="note"), hidden=True)


def small_table(source: BoardSource, part: Section, most: int = MANY) -> Safe:
    """A small table of the board; a long one is cut, and a matrix is folded away."""
    lead = [tag("p", part.lead)] if part.lead else []
    if not part.rows:
        return join((*lead, *([tag("p", part.empty)] if part.empty else [])))
    cut = "" if part.matrix or len(part.rows) <= most else f", first {most} of {len(part.rows)}"
    heads = [c.label if c.format in TEXT else (c.label, "number") for c in part.columns]
    rows = [
        tuple(value_cell(source, part, row, column, value) for column, value in zip(part.columns, row, strict=True))
        for row in (part.rows[:most] if cut else part.rows)
    ]
    inner = table(heads, rows, caption=part.title + cut)
    return join((*lead, tag("details", tag("summary", part.title), inner) if part.matrix else inner))


def value_cell(source: BoardSource, part: Section, row: tuple[Value, ...], column: Column, value: Value) -> Any:
    if column.format in ("method", "task") and isinstance(value, str):
        title = source.method_title(value) if column.format == "method" else source.task_title(value)
        linked_ = source.board.tasks and not part.matrix
        return tag("a", title, href=f"{column.format}/{value}.html") if linked_ else value
    if isinstance(value, dict):
        first = dict(sorted(value.items(), key=lambda item: item[1])[:MANY])
        more = f"; and {len(value) - MANY} more" if len(value) > MANY else ""
        return show(column, first, source.method_title) + more
    if column.format in TEXT:
        return show(column, value)
    heat = f" h{round(max(value, 0.0) * 10)}" if part.matrix and isinstance(value, int | float) else ""
    return shown(column, value), "number" + " moved" * marked(source.board, row, column, value) + heat
