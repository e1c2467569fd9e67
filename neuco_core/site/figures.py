"""All figures of the project that are SVG, each with a text for those who do not see it; and the PNG for link previews.

They are complete without scripts: scripts only highlight methods, hide those that the table hides, and save a figure as
a file. Places across are mostly shares of the width, so that text is as large on a phone as elsewhere. Lines that
cannot be given by shares lie in an inner ``svg`` that is stretched, with strokes that are not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from markupsafe import Markup, escape

from neuco_core.boards.formatting import RANK, axes, show
from neuco_core.boards.model import Board, BoardRow, Column, Interval
from neuco_core.boards.replay import Version
from neuco_core.errors import DependencyError
from neuco_core.figures import blank, check_target, png
from neuco_core.scoring.quality import summarize
from neuco_core.text import clean, common_prefix, counted

MANY = 60  # methods, of which single lines are still told apart; of more, bands are drawn
HIGHLIGHTED = 3  # the first methods have a colour where the reader has chosen none
LONGEST_CLASS, LONGEST_TASK = 14, 24  # characters of a name on an axis
Titles = Callable[[str], str]


def text(value: object) -> Markup:
    """Escaped, and without characters that turn the reading order; what was made here stays as it is."""
    return value if isinstance(value, Markup) else escape(clean(str(value)))


def tag(element: str, /, *children: object, **attributes: object) -> Markup:
    """An element; ``class_`` is class, ``_`` is ``-``; an attribute that is None is left out. All text is escaped."""
    parts = [f"<{element}"]
    for key, value in attributes.items():
        if value is not None:
            parts.append(f' {key.rstrip("_").replace("_", "-")}="{text(value)}"')
    return Markup("".join([*parts, ">", *map(text, children), f"</{element}>"]))  # noqa: S704 (every part is escaped)


def shown(column: Column, value: Any) -> str:
    """A value as its column says, with a real minus sign."""
    words = show(column, value)
    return words.replace("-", "−") if isinstance(value, int | float | Interval) else words


def num(value: float | int | None, digits: int = 3) -> str:
    """A number for people: a real minus sign, a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def _ends(interval: Interval | None) -> tuple[float, float] | None:
    if interval is None or interval.low is None or interval.high is None:
        return None
    return interval.low, interval.high


def _share(value: float, low: float, high: float, left: float = 3.0, width: float = 94.0) -> str:
    """A place on an axis as a share of the drawing's width."""
    return f"{left + width * (value - low) / ((high - low) or 1):.2f}%"


def _line(x1: object, y1: object, x2: object, y2: object, class_: str) -> Markup:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def _svg(width: float, height: float, label: str, *children: object, class_: str) -> Markup:
    """A drawing of a fixed size."""
    size = {"viewBox": f"0 0 {width:g} {height:g}", "width": f"{width:g}", "height": f"{height:g}"}
    return tag("svg", tag("title", label), *children, **size, role="img", aria_label=label, class_=class_)


def _wide(height: float, label: str, *children: object, class_: str) -> Markup:
    """A drawing that is as wide as there is room."""
    return tag("svg", *children, width="100%", height=f"{height:g}", role="img", aria_label=label, class_=class_)


def _stretched(box: Mapping[str, object], width: float, height: float, *children: object) -> Markup:
    """Paths in units of their own, stretched over a box."""
    view = {"viewBox": f"0 0 {width:g} {height:g}", "preserveAspectRatio": "none"}
    return tag("svg", *children, **box, **view, class_="stretched")


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:.1f}" for x, y in points)


def round_step(span: float, parts: int, steps: Sequence[float] = (1, 2, 2.5, 5, 10)) -> float:
    """The step of ticks: a round number, of which at most ``parts`` are in the span."""
    rough = span / parts or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * n for n in steps if power * n >= rough)


def _rank_ticks(last: int, most: int = 13) -> list[int]:
    """From 1 to the last rank: all of them, or a few."""
    step = next(n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, last) if last / n <= most)
    inner = (n for n in range(step, last, step) if 1 < n <= last - 0.7 * step)
    return list(dict.fromkeys([1, *inner, last]))


def _hue(row: BoardRow) -> str:
    """The colour of a method before the reader has chosen any."""
    return f" c{row.rank - 1} d0" if row.rank and row.rank <= HIGHLIGHTED else ""


# --- in a line of a table; in few elements, since a board may have many lines


def rank_axis(rank: int, interval: Interval | None, methods: int) -> Markup:
    """Where a rank stands among all, and the ranks that are plausible for the method.

    A rank of which no interval is known is drawn hollow on a dashed line: nobody should take it for a certain one.
    """
    dot = tag("circle", cx=_share(rank, 1, methods), cy="50%", r="5", class_="dot")
    ends = _ends(interval)
    if ends is None:
        label = f"rank {rank} of {methods}, interval unknown"
        return tag("svg", dot, role="img", aria_label=label, class_="ranks unknown")
    low, high = ends
    bar = _line(_share(low, 1, methods), "50%", _share(high, 1, methods), "50%", "bar")
    return tag("svg", bar, dot, role="img", aria_label=f"rank {rank}, between {low} and {high}", class_="ranks")


def rank_ticks(methods: int) -> Markup:
    """The numbers over the axis of ranks."""
    ticks = [tag("text", n, x=_share(n, 1, methods), y="10", class_="axis middle") for n in _rank_ticks(methods)]
    if methods > 99:  # it would reach into the next column
        ticks[-1] = tag("text", methods, x="100%", y="10", class_="axis end")
    return tag("svg", *ticks, class_="ticks", aria_hidden="true")


def value_bar(value: float, interval: Interval | None, ends: tuple[float, float], label: str) -> Markup:
    """A bar from 0 to a value, and a line over its interval; ``ends`` are those of the whole column."""
    low, high = min(ends[0], 0.0), max(ends[1], 0.0)
    first, last = sorted((0.0, value))
    size = 94 * (last - first) / ((high - low) or 1)
    parts = [tag("rect", x=_share(first, low, high), width=f"{size:.2f}%", y="25%", height="50%")]
    if between := _ends(interval):
        parts.append(_line(_share(between[0], low, high), "50%", _share(between[1], low, high), "50%", "whisker"))
    return tag("svg", *parts, role="img", aria_label=label, class_="amounts")


def weight_bar(value: float, largest: float, label: str) -> Markup:
    height = 16 * value / (largest or 1)
    bar = tag("rect", x="0", width="26", y=f"{16 - height:.1f}", height=f"{height:.1f}", rx="1.5", class_="weight")
    return _svg(26, 16, label, bar, class_="weights")


# --- scores of splits


@dataclass(frozen=True)
class Scale:
    """From scores to places on a strip. The edges leave room for the numbers at both ends."""

    low: float
    high: float
    width: float = 380.0
    edge: float = 56.0

    def x(self, value: float) -> float:
        span = self.high - self.low or 1.0
        return self.edge + (value - self.low) / span * (self.width - 2 * self.edge)

    def side(self, value: float) -> int:
        """-1 if a value lies below the axis, 1 if above, 0 if it is on it."""
        return (value > self.high) - (value < self.low)

    def on_axis(self, value: float) -> float:
        return min(max(value, self.low), self.high)


def bounds(values: Sequence[float], greater_is_better: bool, reach: float) -> tuple[float, float] | None:
    """The ends of the values, but for bad ones that are more than ``reach`` interquartile ranges from the quartile.

    One very bad method would otherwise press all others together. The good end is never cut.
    """
    sign = 1.0 if greater_is_better else -1.0
    ordered = sorted(sign * value for value in values)
    if not ordered:
        return None
    first, third = ordered[(len(ordered) + 1) // 4], ordered[(3 * len(ordered)) // 4]
    slack = reach * (third - first) or 0.1 * abs(third) or 1.0
    worst, best = sign * next(value for value in ordered if value >= first - slack), sign * ordered[-1]
    return (worst, best) if greater_is_better else (best, worst)


def scale(values: Sequence[float], greater_is_better: bool = True) -> Scale:
    """A scale for all these scores; for what lies far on the bad side of the rest there are arrows."""
    low, high = bounds(values, greater_is_better, 4.0) or (0.0, 1.0)
    pad = 0.02 * (high - low) or 0.05 * abs(low) or 0.05
    return Scale(low - pad, high + pad)


def _axis_ends(low: float, high: float) -> tuple[str, str]:
    """Both ends of an axis in few characters: with three digits, or as many as tell them apart."""

    def short(value: float, digits: int) -> str:
        mantissa, _, power = f"{value:.{digits}g}".partition("e")
        return (f"{mantissa}e{int(power)}" if power else mantissa).replace("-", "−")

    digits = 3
    while digits < 17 and short(low, digits) == short(high, digits):
        digits += 1
    return short(low, digits), short(high, digits)


def strip(splits: Sequence[float], mean: float, interval: Interval | None, on: Scale, label: str) -> Markup:
    """The scores of the splits as dots, their mean, and its interval; arrows for what lies beyond the axis."""
    ends = _ends(interval)
    rows = (8, 11, 14)  # dots that lie on each other are easier to see when they are not on one line
    inside = [value for value in splits if not on.side(value)]
    dots = "".join(f"M{on.x(value):.1f} {rows[i % 3]}h0" for i, value in enumerate(inside))
    low, high = _axis_ends(on.low, on.high)
    parts = [_line(f"{on.edge:g}", 22, f"{on.width - on.edge:g}", 22, "track")]
    parts.append(tag("text", low, x=f"{on.edge - 9:g}", y="25", class_="axis end"))
    parts.append(tag("text", high, x=f"{on.width - on.edge + 9:g}", y="25", class_="axis"))
    if on.low < 0 < on.high:
        parts.append(_line(f"{on.x(0):.1f}", 2, f"{on.x(0):.1f}", 24, "zero"))
    if dots:
        parts.append(tag("path", d=dots, class_="splits"))
    if ends and on.on_axis(ends[0]) < on.on_axis(ends[1]):
        left, right = (f"{on.x(on.on_axis(end)):.1f}" for end in ends)
        parts.append(_line(left, 22, right, 22, "bar"))
    if not on.side(mean):
        parts.append(tag("circle", cx=f"{on.x(mean):.1f}", cy="22", r="3.5", class_="dot"))
    label += f": mean {num(mean)}" + (f", interval {num(ends[0])} to {num(ends[1])}" if ends else "")
    for side in (-1, 1):
        parts += _beyond(splits, mean, ends or (), on, side)
    away = len(splits) - len(inside)
    label += f"; {away} of {len(splits)} splits beyond the axis" if away else ""
    return _svg(on.width, 26, label, *parts, class_="strip")


def _beyond(splits: Sequence[float], mean: float, interval: Sequence[float], on: Scale, side: int) -> list[Markup]:
    """Arrows at one edge: for splits, and for the mean or an end of its interval; pointed at, they give the values."""
    away = sorted(value for value in splits if on.side(value) == side)
    ends = [value for value in interval if on.side(value) == side]
    arrows = []
    if away:
        values = num(away[0]) if len(away) == 1 else f"{num(away[0])} to {num(away[-1])}"
        arrows.append((15, f"{counted(len(away), 'split')} beyond the axis: {values}"))
    if on.side(mean) == side:
        arrows.append((26, f"mean beyond the axis: {num(mean)}"))
    elif ends:
        arrows.append((26, f"interval beyond the axis, to {num(min(ends) if side < 0 else max(ends))}"))
    x = on.edge if side < 0 else on.width - on.edge
    look = {"x": f"{x:g}", "class_": "beyond end" if side < 0 else "beyond"}
    return [tag("text", tag("title", words), "◂" if side < 0 else "▸", y=y, **look) for y, words in arrows]


def q_example() -> Markup:
    """Two methods with the same mean: the steady one has the higher Q, by the formula that boards use."""
    mean, parts = 0.8, []
    for place, std in enumerate((0.01, 0.1)):
        q = summarize([mean - std, mean + std], greater_is_better=True).q
        y = 22 + 34 * place
        parts.append(_line(10, y, 290, y, "track"))
        for deviation in (-1.6, -1.1, -0.7, -0.35, 0.0, 0.3, 0.65, 1.0, 1.7):
            parts.append(tag("circle", cx=f"{290 - 560 * (1 - mean - deviation * std):.1f}", cy=y, r=4, class_="split"))
        parts.append(tag("text", f"mean {mean:g}, std {std:g}: Q = {q:.0f}", x=304, y=y + 4, class_="axis"))
    label = "Two methods with the same mean; the one whose splits agree has the higher Q"
    return _svg(470, 72, label, *parts, class_="example")


# --- labels of a task


def histogram(counts: Sequence[int], edges: Sequence[float], label: str) -> Markup:
    """Bars of equal width; the ends of the axis are written out."""
    names = [f"{edges[i]:.4g} to {edges[i + 1]:.4g}" for i in range(len(counts))]
    ends = [(f"{edges[0]:.4g}", 8.0, "axis"), (f"{edges[-1]:.4g}", 472.0, "axis end")]
    return _bars(counts, names, 464 / len(counts), label, ends)


def class_bars(counts: Sequence[int], names: Sequence[str], label: str) -> Markup:
    """A bar for each class with its name below it; the drawing is as wide as the names need."""
    short = [name if len(name) <= LONGEST_CLASS else f"{name[: LONGEST_CLASS - 1]}…" for name in names]
    step = max(464 / len(counts), 7 * max(map(len, short)) + 8)
    ticks = [(name, 8 + (i + 0.5) * step, "axis middle") for i, name in enumerate(short)]
    return _bars(counts, [f"class {name}" for name in names], step, label, ticks)


def _bars(
    counts: Sequence[int], names: Sequence[str], step: float, label: str, ticks: Sequence[tuple[str, float, str]]
) -> Markup:
    width, base, top = 16 + step * len(counts), 126.0, max(counts) or 1
    parts = [_line(8, base, width - 8, base, "track")]
    parts.append(tag("text", f"most: {max(counts)}", x=f"{width - 8:g}", y="12", class_="axis end"))
    parts += [tag("text", words, x=f"{x:.1f}", y="144", class_=class_) for words, x, class_ in ticks]
    for i, count in enumerate(counts):
        height = count / top * 108
        size = {"width": f"{max(step - 1.5, 1):.1f}", "height": f"{height:.1f}"}
        corner = {"x": f"{8 + i * step:.1f}", "y": f"{base - height:.1f}"}
        parts.append(tag("rect", tag("title", f"{names[i]}: {count}"), **corner, **size, class_="count"))
    return _svg(width, 150, label, *parts, class_="histogram")


# --- methods of a board


def forest(board: Board, titles: Titles) -> Markup:
    """Ranks with their intervals; a bar beside the names joins methods that the data do not tell apart.

    Each method brings its piece of the bars, so that they still join when methods between are hidden.
    """
    rows, last = board.ranked, len(board.ranked)
    if last > MANY:
        return _forest_bands(board, titles)
    lanes = _lanes(board)
    between = min(1.1, 6.0 / (max(map(len, lanes.values()), default=1) or 1))
    top, line = 24, 22
    parts = []
    for rank in _rank_ticks(last):
        x = _share(rank, 1, last, 43, 55)
        parts += [_line(x, top, x, top + line * last, "track"), tag("text", rank, x=x, y=14, class_="axis middle")]
    for place, row in enumerate(rows):
        low, high = _ends(row.intervals.get(RANK.key)) or (row.rank, row.rank)
        label = f"Rank {row.rank} ({low} to {high}): {titles(row.method)}"
        name = tag("svg", tag("text", titles(row.method), y=15, class_="axis"), width="34%", height=line, class_="name")
        pieces = []
        for lane, (first, end) in enumerate(lanes[row.method]):
            x = f"{35 + lane * between:.2f}%"
            if first is not None:
                pieces.append(_line(x, 4 if first else 0, x, line - 4 if end else line, "together"))
        bar = _line(_share(low or 1, 1, last, 43, 55), 11, _share(high or 1, 1, last, 43, 55), 11, "interval")
        dot = tag("circle", cx=_share(row.rank or 1, 1, last, 43, 55), cy=11, r=5)
        inner = (tag("title", label), name, *pieces, bar, dot)
        look = {"class_": f"spot row{_hue(row)}", "data_method": row.method}
        parts.append(tag("svg", *inner, y=top + line * place, width="100%", height=line, **look))
    label = f"Intervals of the ranks of {counted(last, 'method')}, and {len(board.groups or ())} groups not told apart"
    return _wide(top + line * last + 4, label, *parts, class_="forest")


def _group_ends(board: Board) -> list[tuple[int, int]]:
    """The first and the last place of each group in the ranking; who is not ranked has no place."""
    places = {row.method: place for place, row in enumerate(board.ranked)}
    groups = [[places[method] for method in group if method in places] for group in board.groups or ()]
    return [(min(group), max(group)) for group in groups if group]


def _lanes(board: Board) -> dict[str, list[tuple[bool | None, bool]]]:
    """By method, for each lane of bars: whether a bar begins here (None: there is none), and whether it ends here.

    Groups overlap; each gets the first lane that is free.
    """
    places = {row.method: place for place, row in enumerate(board.ranked)}
    free: list[int] = []
    lanes: dict[str, list[tuple[bool | None, bool]]] = {method: [] for method in places}
    for first, last in _group_ends(board):
        lane = next((k for k, end in enumerate(free) if end < first), len(free))
        free[lane:] = [last, *free[lane + 1 :]]
        for method in list(places)[first : last + 1]:
            pieces = lanes[method]
            pieces += [(None, False)] * (lane + 1 - len(pieces))
            pieces[lane] = (places[method] == first, places[method] == last)
    return lanes


def _forest_bands(board: Board, titles: Titles) -> Markup:
    """Of many methods: one band over the intervals of the ranks, one as far as the data do not tell them apart."""
    rows, last = board.ranked, len(board.ranked)
    ranks = [float(row.rank or 1) for row in rows]
    ends = [_ends(row.intervals.get(RANK.key)) or (rank, rank) for row, rank in zip(rows, ranks, strict=True)]
    reach = [(rank, rank) for rank in ranks]
    for first, end in _group_ends(board):
        for place in range(first, end + 1):
            low, high = reach[place]
            reach[place] = (min(low, ranks[first]), max(high, ranks[end]))
    top, height = 12, 328
    parts = []
    bands = []
    for look, pairs in (("reach", reach), ("b0", ends)):
        outline = [*((k, pair[0]) for k, pair in enumerate(pairs))]
        outline += [(k, pair[1]) for k, pair in reversed([*enumerate(pairs)])]
        bands.append(tag("path", d=_path(outline) + "Z", class_=f"band {look}", transform="translate(0 -1)"))
    box = {"x": "6%", "width": "92%", "y": top, "height": height}
    parts.append(_stretched(box, last - 1, last - 1, *bands))
    for rank in _rank_ticks(last):
        tick = top + height * (rank - 1) / (last - 1)
        parts.append(tag("text", rank, x="5%", y=f"{tick + 4:.1f}", class_="axis end"))
    for place, row in enumerate(rows):
        x, y = _share(place, 0, last - 1, 6, 92), top + height * (ranks[place] - 1) / (last - 1)
        upper, lower = (f"{top + height * (end - 1) / (last - 1):.1f}" for end in ends[place])
        words = f"Rank {row.rank} ({ends[place][0]:g} to {ends[place][1]:g}): {titles(row.method)}"
        area = tag(
            "rect", x=_share(place - 0.5, 0, last - 1, 6, 92), width=f"{92 / (last - 1):.2f}%", y=top, height=height
        )
        inner = (
            tag("title", words),
            area,
            _line(x, upper, x, lower, "interval"),
            tag("circle", cx=x, cy=f"{y:.1f}", r=5),
        )
        parts.append(tag("g", *inner, class_=f"spot{_hue(row)}", data_method=row.method))
    parts.append(
        tag("text", "methods, in the order of the ranking", x="52%", y=top + height + 28, class_="axis middle")
    )
    label = f"Intervals of the ranks of {last} methods, and how far each is not told apart"
    return _wide(top + height + 40, label, *parts, class_="forest many")


def parallel(board: Board, names: Mapping[str, str], titles: Titles) -> Markup:
    """A line for each method over the tasks, by the column that the board draws over them; the best is on top."""
    column = next(column for column in board.cell_columns if column.key == board.profile)
    rows, tasks = board.ranked, board.tasks
    values = {row.method: [_cell_value(row, task.id, column.key) for task in tasks] for row in rows}
    every = [value for own in values.values() for value in own if value is not None] or [0.0]
    low, high = min(every), max(every)
    best, worst = (low, high) if column.direction == "lower" else (high, low)

    def y(value: float) -> float:
        return 100 * (value - best) / ((worst - best) or 1)

    top, bottom, left, width = 14, 250, 10.0, 87.0
    last = max(len(tasks) - 1, 1)
    parts = []
    for place, task in enumerate(tasks):
        x = _share(place, 0, last, left, width)
        parts.append(_line(x, top, x, bottom, "track"))
        words = names[task.id] if len(names[task.id]) <= LONGEST_TASK else f"{names[task.id][: LONGEST_TASK - 1]}…"
        label = tag("text", words, class_="axis slant")
        parts.append(tag("svg", label, x=x, y=bottom + 16, class_="turned", data_task=task.id))
    for end, at in ((best, top), (worst, bottom)):
        parts.append(tag("text", shown(column, end), x=f"{left - 1:g}%", y=at + 4, class_="axis end"))
    inner = []
    if len(rows) > MANY:
        for quarter in range(4):
            inner += _quarter(quarter, rows, values, y)
    for row in reversed(rows):  # the first lie on top
        points = [(place, y(value)) for place, value in enumerate(values[row.method]) if value is not None]
        words = tag("title", f"Rank {row.rank}: {titles(row.method)}")
        look = {"class_": f"profile{_hue(row)}", "data_method": row.method}
        if len(tasks) > 1:
            inner.append(tag("path", words, d=_path(points), **look))
        elif points:  # with one task there is nothing to join
            cy = top + (bottom - top) * points[0][1] / 100
            parts.append(tag("circle", words, cx=f"{left:g}%", cy=f"{cy:.1f}", r=6, **look))
    box = {"x": f"{left:g}%", "width": f"{width:g}%", "y": top, "height": bottom - top}
    parts.append(_stretched(box, last, 100, *inner))
    room = 10 + 6 * max(min(len(names[task.id]), LONGEST_TASK) for task in tasks)
    told = f"{column.label} of {counted(len(rows), 'method')} on {counted(len(tasks), 'task')}"
    many = " many" if len(rows) > MANY else ""
    return _wide(bottom + 24 + 0.5 * room, told, *parts, class_=f"parallel{many}")


def _quarter(
    quarter: int, rows: Sequence[BoardRow], values: Mapping[str, Sequence[float | None]], y: Callable[[float], float]
) -> list[Markup]:
    """The middle half of a quarter of the ranking on every task, and its median."""
    own = rows[quarter * len(rows) // 4 : (quarter + 1) * len(rows) // 4]
    edges: dict[float, list[tuple[float, float]]] = {0.25: [], 0.5: [], 0.75: []}
    for place, column in enumerate(zip(*(values[row.method] for row in own), strict=True)):
        ordered = sorted(value for value in column if value is not None)
        for share, points in edges.items():
            if ordered:
                points.append((place, y(ordered[min(len(ordered) - 1, int(share * len(ordered)))])))
    words = f"Middle half of the {('first', 'second', 'third', 'last')[quarter]} quarter of the ranking"
    outline = _path([*edges[0.25], *reversed(edges[0.75])]) + "Z"
    band = tag("path", tag("title", words), d=outline, class_=f"band b{quarter}")
    return [band, tag("path", d=_path(edges[0.5]), class_=f"median b{quarter}")]


def _cell_value(row: BoardRow, task: str, key: str) -> float | None:
    return row.cells[task].values.get(key) if task in row.cells else None


def scatter(board: Board, titles: Titles) -> Markup:
    """Two columns against each other; methods of one value stand side by side, by rank."""
    across, up = (column for key in board.scatter or () for column in board.columns if column.key == key)
    rows = [r for r in board.ranked if all(isinstance(r.values.get(c.key), int | float) for c in (across, up))]
    at = {row.method: float(row.values[across.key] or 0) for row in rows}
    # Counts, such as the size of an embedding, differ by factors.
    log = across.format == "integer" and min(at.values()) > 0
    places = {method: math.log2(value) if log else value for method, value in at.items()}
    heights = [float(row.values[up.key] or 0) for row in rows]
    heights += [end for row in rows for end in _ends(row.intervals.get(up.key)) or ()]
    low, high = min(heights), max(heights)
    if low == high:
        low, high = low - 1, high + 1
    first, last = min(places.values()), max(places.values())
    margin = 0.5 if log else (last - first) / 20 or 1
    first, last = (math.floor(first) if log else first) - margin, (math.ceil(last) if log else last) + margin
    top, bottom, left, width = 14, 380, 6.0, 92.0

    def y(value: float) -> str:
        return f"{bottom - (value - low) / (high - low) * (bottom - top):.1f}"

    parts = [_line("6%", bottom, "98%", bottom, "track"), _line("6%", top, "6%", bottom, "track")]
    if low < 0 < high:
        parts.append(_line("6%", y(0), "98%", y(0), "zero"))
    step = max(1, round((last - first) / 12)) if log else (last - first) / 4
    tick: float = math.ceil(first) if log else first
    while tick <= last:
        x = _share(tick, first, last, left, width)
        parts.append(tag("text", shown(across, 2.0**tick if log else tick), x=x, y=bottom + 18, class_="axis middle"))
        tick += step
    digits = max(0, min(up.digits, 1 - math.floor(math.log10((high - low) / 4))))
    for part in range(5):
        value = low + (high - low) * part / 4
        parts.append(tag("text", num(value, digits), x="5.5%", y=float(y(value)) + 4, class_="axis end"))
    parts.append(tag("text", across.label, x="51%", y=bottom + 42, class_="axis middle"))
    parts.append(tag("text", up.label, x="6.5%", y=top + 6, class_="axis"))
    for row in reversed(rows):  # the first lie on top
        same = [other.method for other in rows if at[other.method] == at[row.method]]
        beside = (same.index(row.method) - (len(same) - 1) / 2) * min(9.0, 120 / len(same))
        x = _share(places[row.method], first, last, left, width)
        words = f"{titles(row.method)}: " + ", ".join(f"{c.label} {shown(c, row.values[c.key])}" for c in (across, up))
        inner = [tag("title", f"{words}, rank {row.rank}")]
        if ends := _ends(row.intervals.get(up.key)):
            inner.append(_line(x, y(ends[0]), x, y(ends[1]), "error"))
        inner.append(tag("circle", cx=x, cy=y(float(row.values[up.key] or 0)), r=5))
        look = {"class_": f"spot{_hue(row)}", "data_method": row.method}
        parts.append(tag("g", *inner, transform=f"translate({beside:.1f} 0)", **look))
    label = f"{up.label} against {across.label} of {counted(len(rows), 'method')}"
    return _wide(bottom + 50, label, *parts, class_="scatter many" if len(rows) > MANY else "scatter")


def profile(board: Board, chosen: Sequence[str], title: str, titles: Titles) -> Markup:
    """Methods over the columns that have rankings of their own: dots with intervals, the others in grey behind them."""
    columns, keys = axes(board), [column.key for column in axes(board)]
    known = [row for row in board.rows if not row.same_as and any(row.values.get(key) is not None for key in keys)]
    rows = [row for place, row in enumerate(known) if place < MANY or row.method in chosen]
    values = [end for row in rows for column in columns for end in _profile_values(row, column) if end is not None]
    step = round_step(max(values) - min(values), 5)
    low, high = math.floor(min(values) / step) * step, math.ceil(max(values) / step) * step
    top, line, below = 64, 46, 31  # pixels: above the first column, from one to the next, from its top to its dots
    height = top + line * len(columns)
    parts: list[Markup] = []
    for k in range(round((high - low) / step) + 1):
        x = _share(low + k * step, low, high, 1, 70)
        parts.append(_line(x, top - 6, x, height, "track"))
        parts.append(tag("text", f"{low + k * step:.10g}".replace("-", "−"), x=x, y=top - 12, class_="axis middle"))
    parts += [tag("text", c.label, x="0", y=top + k * line + 14, class_="column-name") for k, c in enumerate(columns)]
    order = {method: place for place, method in enumerate(chosen)}
    for row in sorted(rows, key=lambda row: order.get(row.method, -1)):
        joints, bars, dots, figures = [], [], [], []
        before: tuple[str, int] | None = None
        for k, column in enumerate(columns):
            value, *interval = _profile_values(row, column)
            y = top + k * line + below
            if value is None:
                before = None
                continue
            x = _share(value, low, high, 1, 70)
            if before:
                joints.append(_line(before[0], before[1], x, y, "joint"))
            before = x, y
            ends = [_share(end, low, high, 1, 70) for end in interval if end is not None]
            if ends:
                bars.append(_line(ends[0], y, ends[-1], y, "between"))
            dots.append(tag("circle", cx=x, cy=y, r=5, class_="at"))
            told = num(value, 2) + (f" ({num(interval[0], 2)}–{num(interval[1], 2)})" if ends else "")
            figures.append(tag("text", told, x="100%", y=y + 4, class_="numerals"))
        name = titles(row.method)
        if row.rank:
            ranks = row.intervals.get(RANK.key)
            name += f", rank {row.rank}" + (f" ({shown(RANK, ranks)})" if ranks else "")
        label = (tag("circle", cx=7, cy=10, r=5, class_="at"), tag("text", name, x=18, y=14, class_="method-name"))
        inner = (
            tag("title", name),
            tag("g", *label, class_="named-here"),
            tag("g", *joints, *bars, *dots, *figures, class_="dodge"),
        )
        look = f"who chosen c{order[row.method]}" if row.method in order else "who"
        parts.append(tag("g", *inner, data_method=row.method, class_=look))
    level = f"{board.uncertainty.level:.0%} intervals" if board.uncertainty else "intervals unknown"
    about = f"{title}, {counted(len(rows), 'method')}, {level}"
    parts.append(tag("text", about, x="100%", y=height + 16, class_="axis end"))
    words = f"Profiles over {len(columns)} columns: {', '.join(map(titles, chosen))}"
    return _wide(height + 22, words, *parts, class_="profiles alone" if len(chosen) == 1 else "profiles")


def _profile_values(row: BoardRow, column: Column) -> list[float | None]:
    value, interval = row.values.get(column.key), row.intervals.get(column.key)
    return [value if isinstance(value, int | float) else None, *((interval.low, interval.high) if interval else ())]


def ranks_over_time(history: Sequence[Version], label: str) -> Markup:
    """A line for each method from version to version of a board; the first rank is on top."""
    names = sorted({name for entry in history for name in entry.ranks})
    lowest = max((rank for entry in history for rank in entry.ranks.values()), default=1)
    step, high, left, right = max(3.0, 700 / max(len(history), 1)), 18.0, 24.0, 190.0
    ends: dict[float, int] = {}
    parts: list[Markup] = [tag("text", n, x="4", y=f"{n * high + 4:g}", class_="axis") for n in range(1, lowest + 1)]
    for number, name in enumerate(names):
        colour = f"hsl({number * 137 % 360} 60% 45%)"  # the golden angle: neighbours never look alike
        points = [(left + step * n, high * entry.ranks[name]) for n, entry in enumerate(history) if name in entry.ranks]
        drawn = " ".join(f"{x:.1f},{y:g}" for x, y in points)
        parts.append(tag("polyline", tag("title", name), points=drawn, fill="none", stroke=colour, stroke_width="2"))
        if name in history[-1].ranks:
            x, y = points[-1]
            ends[y] = ends.get(y, -1) + 1  # methods that share a rank stand side by side
            beside = f"{x + 6 + 95 * ends[y]:.1f}"
            parts.append(tag("text", name, x=beside, y=f"{y + 4:g}", fill=colour, class_="axis"))
    return _svg(left + step * len(history) + right, high * (lowest + 1), label, *parts, class_="past")


# --- curves


@dataclass(frozen=True)
class Curve:
    """A line of a drawing: its colour by number, its marker around 0, 0, and places (x, y) with what they are."""

    label: str
    hue: int
    marker: str
    points: Sequence[tuple[float, float, str]]
    joined: bool = True


class CurveAxes:
    """One scale for several drawings: x doubles from tick to tick, y is linear and begins at 0 at the latest."""

    WIDTH, HEIGHT = 340.0, 210.0
    LEFT, RIGHT, TOP, BASE = 38.0, 10.0, 12.0, 174.0

    def __init__(self, points: Sequence[tuple[float, float]], x_label: str) -> None:
        powers, values = [math.log2(x) for x, _ in points], [y for _, y in points]
        self.x_label = x_label
        self.first, self.last = math.floor(min(powers)), math.ceil(max(powers))
        self.step = round_step(max(values) - min(0.0, *values), 4, (1, 2, 5, 10))
        self.low = self.step * math.floor(min(0.0, *values) / self.step)
        self.high = self.step * math.ceil(max(values) / self.step)

    def x(self, value: float) -> float:
        share = (math.log2(value) - self.first) / ((self.last - self.first) or 1)
        return self.LEFT + share * (self.WIDTH - self.LEFT - self.RIGHT)

    def y(self, value: float) -> float:
        return self.BASE - (value - self.low) / ((self.high - self.low) or 1) * (self.BASE - self.TOP)

    def draw(self, curves: Sequence[Curve], label: str) -> Markup:
        parts = []
        for k in range(round((self.high - self.low) / self.step) + 1):
            value = self.low + k * self.step
            y = self.y(value)
            parts.append(_line(self.LEFT, f"{y:.1f}", self.WIDTH - self.RIGHT, f"{y:.1f}", "track"))
            words = f"{value:.10g}".replace("-", "−")
            parts.append(tag("text", words, x=self.LEFT - 6, y=f"{y + 4:.1f}", class_="axis end"))
        for power in range(self.first, self.last + 1, max(1, math.ceil((self.last - self.first) / 6))):
            words = f"{2**power / 1024:g}k" if power >= 10 else f"{2**power:g}"
            parts.append(tag("text", words, x=f"{self.x(2**power):.1f}", y=self.BASE + 16, class_="axis middle"))
        middle = (self.LEFT + self.WIDTH) / 2
        parts.append(tag("text", self.x_label, x=middle, y=self.HEIGHT - 4, class_="axis middle"))
        for curve in curves:
            places = [(self.x(x), self.y(y), words) for x, y, words in curve.points]
            inner = [tag("title", curve.label)]
            if curve.joined and len(places) > 1:
                inner.append(tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places), class_="curve"))
            for x, y, words in places:
                moved = f"translate({x:.1f} {y:.1f})"
                inner.append(tag("path", tag("title", words), d=curve.marker, transform=moved, class_="mark"))
            parts.append(tag("g", *inner, class_=f"a{curve.hue}"))
        return tag(
            "svg", *parts, viewBox=f"0 0 {self.WIDTH:g} {self.HEIGHT:g}", role="img", aria_label=label, class_="curves"
        )


def curve_key(curve: Curve) -> Markup:
    """The marker of a curve, for a legend."""
    marker = tag("path", d=curve.marker, class_="mark")
    return tag("svg", marker, viewBox="-7 -7 14 14", width="14", height="14", class_=f"a{curve.hue}")


# --- files


def board_figure(kind: str, board: Board) -> Markup | None:
    """A figure of a board for a file; none where the board has not what it shows."""
    if kind == "differences" and len(board.ranked) > 1:
        return forest(board, str)
    if kind == "profiles" and board.ranked and board.profile:
        prefix = common_prefix([task.id for task in board.tasks])
        return parallel(board, {task.id: task.id.removeprefix(prefix) for task in board.tasks}, str)
    known = {key for row in board.ranked for key, value in row.values.items() if value is not None}
    return scatter(board, str) if kind == "scatter" and board.scatter and known.issuperset(board.scatter) else None


def standalone(svg: str) -> str:
    """A figure as a file of its own: with the site's rules for figures, and the colours that they name."""
    assets = files("neuco_core.site") / "assets"
    colours = re.search(r":root \{.*?\n\}", (assets / "style.css").read_text(encoding="utf-8"), re.DOTALL)
    rules = (assets / "figures.css").read_text(encoding="utf-8")
    head, rest = "".join(svg).split(">", 1)  # plain text: Markup would escape what is put in
    head = head.replace('width="100%"', 'width="1000"').replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    style = f"{colours[0] if colours else ''} svg {{ font-family: sans-serif; }} {rules}".replace("<", "")
    return f"{head}><style>{style}</style>{rest}\n"


def preview_png(board: Board, title: str, titles: Titles) -> bytes:
    """What sites show beside a link: the first methods with their intervals. Empty without matplotlib."""
    try:
        check_target()
    except DependencyError:
        return b""
    accent, rows = "#0b7285", board.ranked[:8]

    def plain(words: str) -> str:
        return words.replace("$", r"\$")  # a name is no formula

    figure, plot = blank(8, 4.2)
    last = 1.0
    for y, row in enumerate(rows):
        ends = _ends(row.intervals.get(RANK.key))
        if ends:
            plot.plot(ends, [y, y], color="#aab4bf", linewidth=9, solid_capstyle="round")
        plot.plot(row.rank, y, "o", color=accent, markerfacecolor=accent if ends else "white", markersize=10)
        last = max(last, row.rank or 1, *(ends or ()))
    plot.set_yticks(range(len(rows)), [plain(titles(row.method)) for row in rows], fontsize=12)
    plot.invert_yaxis()
    plot.set_xlabel(f"rank of {len(board.ranked)}" + (", and its interval" if board.uncertainty else ""))
    plot.set_xticks(_rank_ticks(int(last)))
    figure.suptitle(plain(title), fontsize=15, fontweight="bold", color="#1d2733")
    return png(figure, dpi=150)
