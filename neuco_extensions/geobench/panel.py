"""The capabilities of a board: a ranking for each, with its intervals."""

from __future__ import annotations

from collections.abc import Sequence

from neuco_core.boards.formatting import rankings_by_column
from neuco_core.boards.model import Column, Interval, Section, Value
from neuco_core.boards.views.site import charts
from neuco_core.boards.views.site.html import Safe, scroll, section, tag
from neuco_core.boards.views.site.pieces import shown, value_cell
from neuco_core.boards.views.site.source import BoardSource

NOTE = (
    "Each capability ranks by itself. A line over a bar is the interval of the score; methods that share a letter are "
    "statistically indistinguishable."
)


def capability_section(source: BoardSource) -> Safe:
    """A strip with a link to each capability; scripts show one at a time."""
    found = rankings_by_column(source.board)
    if not found:
        return Safe("")
    links = [tag("a", part.title, href=f"#capability-{key}") for key, part in found.items()]
    strip = tag("nav", *links, class_="tabs inner", id="capability-tabs", aria_label="Capabilities")
    parts = [
        tag("div", tag("h3", part.title), *_ranking(source, key, part), id=f"capability-{key}", class_="capability")
        for key, part in found.items()
    ]
    return section("Capabilities", strip, *parts, id_="capabilities", note=NOTE)


def _ranking(source: BoardSource, key: str, part: Section) -> list[Safe]:
    lead = tag("p", part.lead, class_="note")
    if not part.rows:
        return [lead, tag("p", part.empty)]
    at = [column.key for column in part.columns].index(key)
    ends = _ends(part.rows, at)
    heads = [tag("th", c.label, scope="col", title=c.help or None, class_=_class(c)) for c in part.columns]
    heads.insert(at + 1, tag("th", "Drawn", scope="col", class_="bars"))
    heads.insert(0, heads.pop(1))  # the rank comes first
    rows = [_row(source, part, row, at, ends) for row in part.rows]
    inner = (tag("caption", f"Ranking by {part.title}"), tag("thead", tag("tr", *heads)), tag("tbody", *rows))
    table = tag("table", *inner, class_="plain by-capability")
    return [lead, scroll("div", table, label=f"Ranking by {part.title}")]


def _row(source: BoardSource, part: Section, row: tuple[Value, ...], at: int, ends: tuple[float, float]) -> Safe:
    cells = []
    for column, value in zip(part.columns, row, strict=True):
        if column.format == "method":
            cells.append(tag("th", value_cell(source, part, row, column, value), scope="row"))
        else:
            moved = " moved" * (column.key == "other_rank" and value != row[1])
            cells.append(tag("td", shown(column, value), class_=f"{_class(column)}{moved}"))
    value, interval = row[at], next((own for own in row[at:] if isinstance(own, Interval)), None)
    label = f"{part.title} {shown(part.columns[at], value)}"
    drawn = charts.value_bar(value, interval, ends, label) if isinstance(value, int | float) else Safe("")
    cells.insert(at + 1, tag("td", drawn, class_="bars"))
    return tag("tr", cells.pop(1), *cells)


def _class(column: Column) -> str | None:
    if column.format == "method":
        return None
    return f"{'words' if column.format == 'text' else 'number'} of-{column.key}"


def _ends(rows: Sequence[tuple[Value, ...]], at: int) -> tuple[float, float]:
    """The least and the largest value, intervals included."""
    values = [row[at] for row in rows] + [
        end for row in rows for own in row[at:] if isinstance(own, Interval) for end in (own.low, own.high)
    ]
    known = [value for value in values if isinstance(value, int | float)] or [0.0]
    return min(known), max(known)
