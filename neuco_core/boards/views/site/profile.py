"""A picture of methods over the capabilities of a board: dots with their intervals, the others in grey behind them.

It is complete without scripts, with the first two methods in colour; scripts colour others, and save it as a file.
Places across are shares of the width, so that words are as large on a phone as elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from neuco_core.boards.formatting import RANK, axes
from neuco_core.boards.model import Board, BoardRow, Column, Interval
from neuco_core.boards.views.site.html import Safe, join, section, tag
from neuco_core.boards.views.site.pieces import MOST, shown
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.text import clean, counted

NOTE = (
    "Choose a method, or two to compare; methods ticked in the ranking are chosen. Bars are intervals, grey dots are "
    "the other methods."
)
TOP, STEP, STRIP = 64, 46, 31  # pixels: above the first capability, from one to the next, from its top to its dots
LEFT, WIDE = 1.0, 70.0  # shares of the width: where the axis begins, and how long it is
CHOSEN = 2


def profile_section(source: BoardSource) -> Safe:
    if not axes(source.board) or not source.board.ranked:
        return Safe("")
    chosen = [row.method for row in source.board.ranked[:CHOSEN]]
    tools = tag("div", id="profile-tools", class_="controls")
    return section("Profiles", tools, profile(source, chosen), id_="profiles", note=NOTE)


def profile_of(source: BoardSource, row: BoardRow) -> Safe:
    """The picture of one method, for its own page."""
    if not any(column.key in row.values for column in axes(source.board)):
        return Safe("")
    note = "Its scores on the capabilities with their intervals; grey dots are the other methods."
    return section("Profile", profile(source, [row.method]), id_="profiles", note=note)


def profile(source: BoardSource, chosen: Sequence[str]) -> Safe:
    """The drawing, with these methods in colour."""
    columns, rows = axes(source.board), _drawn(source.board, chosen)
    low, high, step = _scale(columns, rows)
    height = TOP + STEP * len(columns)
    parts: list[Safe] = []
    for k in range(round((high - low) / step) + 1):
        value = low + k * step
        place = _share(value, low, high)
        parts.append(tag("line", x1=place, x2=place, y1=TOP - 6, y2=height, class_="track"))
        parts.append(tag("text", f"{value:.10g}".replace("-", "−"), x=place, y=TOP - 12, class_="axis middle"))
    for k, column in enumerate(columns):
        parts.append(tag("text", column.label, x="0", y=TOP + k * STEP + 14, class_="capability-name"))
    others = [row for row in rows if row.method not in chosen]
    parts += [_method(source, row, columns, (low, high), None) for row in others]
    first = {row.method: row for row in rows}
    parts += [_method(source, first[m], columns, (low, high), k) for k, m in enumerate(chosen) if m in first]
    level = f"{source.board.uncertainty.level:.0%} intervals" if source.board.uncertainty else "intervals unknown"
    said = f"{source.title}, {counted(len(rows), 'method')}, {level}"
    parts.append(tag("text", said, x="100%", y=height + 16, class_="axis end"))
    label = f"Profiles over {len(columns)} capabilities: {', '.join(map(source.method_title, chosen))}"
    size = {"width": "100%", "height": height + 22}
    alone = " alone" if len(chosen) == 1 else ""
    return tag("svg", *parts, **size, id="profile", role="img", aria_label=label, class_=f"profiles{alone}")


def _drawn(board: Board, chosen: Sequence[str]) -> list[BoardRow]:
    """All that have a score; of very many the first, and those that are asked for."""
    keys = [column.key for column in axes(board)]
    known = [row for row in board.rows if not row.same_as and any(row.values.get(key) is not None for key in keys)]
    return [row for k, row in enumerate(known) if k < MOST or row.method in chosen]


def _scale(columns: Sequence[Column], rows: Sequence[BoardRow]) -> tuple[float, float, float]:
    """The ends of the axis and the step of its ticks: round numbers around all values and intervals."""
    values = [v for row in rows for c in columns for v in _values(row, c) if v is not None]
    low, high = min(values), max(values)
    rough = (high - low) / 5 or 0.1
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * n for n in (1, 2, 2.5, 5, 10) if power * n >= rough)
    return math.floor(low / step) * step, math.ceil(high / step) * step, step


def _values(row: BoardRow, column: Column) -> list[float | None]:
    value, interval = row.values.get(column.key), row.intervals.get(column.key)
    return [value if isinstance(value, int | float) else None, *((interval.low, interval.high) if interval else ())]


def _share(value: float, low: float, high: float) -> str:
    return f"{LEFT + WIDE * (value - low) / ((high - low) or 1):.2f}%"


def _method(
    source: BoardSource, row: BoardRow, columns: Sequence[Column], ends: tuple[float, float], place: int | None
) -> Safe:
    """A method: its name, and for each capability a bar, a dot and figures, joined by lines."""
    joints, bars, dots, figures = [], [], [], []
    before: tuple[str, float] | None = None
    for k, column in enumerate(columns):
        value, *interval = _values(row, column)
        y = TOP + k * STEP + STRIP
        if value is None:
            before = None
            continue
        x = _share(value, *ends)
        if before:
            joints.append(tag("line", x1=before[0], y1=before[1], x2=x, y2=y, class_="joint"))
        before = x, y
        if known := [_share(end, *ends) for end in interval if end is not None]:
            bars.append(tag("line", x1=known[0], x2=known[-1], y1=y, y2=y, class_="between"))
        dots.append(tag("circle", cx=x, cy=y, r=5, class_="at"))
        figures.append(
            tag("text", _figures(value, row.intervals.get(column.key)), x="100%", y=y + 4, class_="numerals")
        )
    title = clean(source.method_title(row.method))
    ranks = row.intervals.get(RANK.key)
    said = f"{title}, rank {row.rank}" + (f" ({shown(RANK, ranks)})" if ranks else "") if row.rank else title
    name = join((tag("circle", cx=7, cy=10, r=5, class_="at"), tag("text", said, x=18, y=14, class_="method-name")))
    inner = tag("g", *joints, *bars, *dots, *figures, class_="dodge")
    class_ = "who" if place is None else f"who chosen c{place}"
    parts = (tag("title", said), tag("g", name, class_="named-here"), inner)
    return tag("g", *parts, data_method=row.method, class_=class_)


def _figures(value: float, interval: Interval | None) -> str:
    ends = Column("ends", "", digits=2)
    return shown(ends, value) + (f" ({shown(ends, interval)})" if interval else "")
