"""Small drawings as SVG, each with words for those who do not see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neuco_core.boards.model import Interval
from neuco_core.boards.replay import Version
from neuco_core.boards.views.site.html import Safe, num, tag
from neuco_core.scoring.quality import summarize
from neuco_core.text import counted

LONGEST_NAME = 14


def _svg(width: float, height: float, label: str, *children: object, class_: str) -> Safe:
    size = {"viewBox": f"0 0 {width:g} {height:g}", "width": f"{width:g}", "height": f"{height:g}"}
    return tag("svg", tag("title", label), *children, **size, role="img", aria_label=label, class_=class_)


def _line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Safe:
    return tag("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_=class_)


def _share(value: float, low: float, high: float) -> str:
    """A place on an axis as a share of its width, so that a drawing is as wide as its column."""
    return f"{3 + 94 * (value - low) / ((high - low) or 1):.2f}%"


def _wide(label: str, *children: object, class_: str) -> Safe:
    """A drawing of one line of a table, as wide as its cell; in few elements, since a board may have many lines."""
    return tag("svg", *children, role="img", aria_label=label, class_=class_)


def rank_axis(place: int, interval: Interval | None, methods: int) -> Safe:
    """Where a rank stands among all, and the ranks that are plausible for the method.

    A rank of which no interval is known is drawn hollow on a dashed line: nobody should take it for a certain one.
    """
    dot = tag("circle", cx=_share(place, 1, methods), cy="50%", r="5", class_="dot")
    if interval is None or interval.low is None or interval.high is None:
        return _wide(f"rank {place} of {methods}, interval unknown", dot, class_="ranks unknown")
    low, high = interval.low, interval.high
    ends = {"x1": _share(low, 1, methods), "x2": _share(high, 1, methods)}
    bar = tag("line", **ends, y1="50%", y2="50%", class_="bar")
    return _wide(f"rank {place}, between {low} and {high}", bar, dot, class_="ranks")


def rank_ticks(methods: int) -> Safe:
    """The numbers over the axis of ranks: all of them, or a few."""
    step = next(n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, methods) if methods / n <= 13)
    ticks = [1, *(n for n in range(step, methods, step) if 1 < n <= methods - 0.7 * step), methods]
    places = [tag("text", n, x=_share(n, 1, methods), y="10", class_="axis middle") for n in dict.fromkeys(ticks)]
    if methods > 99:  # it would reach into the next column
        places[-1] = tag("text", methods, x="100%", y="10", class_="axis end")
    return tag("svg", *places, class_="ticks", aria_hidden="true")


def value_bar(value: float, interval: Interval | None, ends: tuple[float, float], label: str) -> Safe:
    """A bar from 0 to a value, and a line over its interval; ``ends`` are those of the whole column."""
    low, high = min(ends[0], 0.0), max(ends[1], 0.0)
    first, last = sorted((0.0, value))
    size = 94 * (last - first) / ((high - low) or 1)
    parts = [tag("rect", x=_share(first, low, high), width=f"{size:.2f}%", y="25%", height="50%")]
    if interval and interval.low is not None and interval.high is not None:
        places = {"x1": _share(interval.low, low, high), "x2": _share(interval.high, low, high)}
        parts.append(tag("line", **places, y1="50%", y2="50%", class_="whisker"))
    return _wide(label, *parts, class_="amounts")


def weight_bar(value: float, largest: float, label: str) -> Safe:
    height = 16 * value / (largest or 1)
    bar = tag("rect", x="0", width="26", y=f"{16 - height:.1f}", height=f"{height:.1f}", rx="1.5", class_="weight")
    return _svg(26, 16, label, bar, class_="weights")


def q_example() -> Safe:
    """Two methods with the same mean: the steady one has the higher Q, by the formula that boards use."""
    mean, parts = 0.8, []
    for place, std in enumerate((0.01, 0.1)):
        q = summarize([mean - std, mean + std], greater_is_better=True).q
        y = 22 + 34 * place
        spots = (-1.6, -1.1, -0.7, -0.35, 0.0, 0.3, 0.65, 1.0, 1.7)  # of a standard deviation
        parts += [_line(10, y, 290, y, "track")]
        parts += [
            tag("circle", cx=f"{290 - 560 * (1 - mean - k * std):.1f}", cy=f"{y}", r="4", class_="split") for k in spots
        ]
        words = f"mean {mean:g}, std {std:g}: Q = {q:.0f}"
        parts.append(tag("text", words, x="304", y=f"{y + 4}", class_="axis"))
    return _svg(
        470, 72, "Two methods with the same mean; the one whose splits agree has the higher Q", *parts, class_="example"
    )


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


def _ends(low: float, high: float) -> tuple[str, str]:
    """Both ends of an axis in few characters: with three digits, or as many as tell them apart."""
    digits = 3
    while digits < 17 and _short(low, digits) == _short(high, digits):
        digits += 1
    return _short(low, digits), _short(high, digits)


def _short(value: float, digits: int) -> str:
    mantissa, _, power = f"{value:.{digits}g}".partition("e")
    return (f"{mantissa}e{int(power)}" if power else mantissa).replace("-", "−")


def strip(splits: Sequence[float], mean: float, ends: Interval | None, on: Scale, words: str) -> Safe:
    """The scores of the splits as dots, their mean, and its interval; arrows for what lies beyond the axis."""
    interval = (ends.low, ends.high) if ends and ends.low is not None and ends.high is not None else None
    height = 26
    rows = (8, 11, 14)  # dots that lie on each other are easier to see when they are not on one line
    inside = [value for value in splits if not on.side(value)]
    dots = "".join(f"M{on.x(value):.1f} {rows[i % 3]}h0" for i, value in enumerate(inside))
    low, high = _ends(on.low, on.high)
    parts = [_line(on.edge, 22, on.width - on.edge, 22, "track")]
    parts.append(tag("text", low, x=f"{on.edge - 9:g}", y="25", class_="axis end"))
    parts.append(tag("text", high, x=f"{on.width - on.edge + 9:g}", y="25", class_="axis"))
    if on.low < 0 < on.high:
        parts.append(_line(on.x(0), 2, on.x(0), 24, "zero"))
    if dots:
        parts.append(tag("path", d=dots, class_="splits"))
    if interval and on.on_axis(interval[0]) < on.on_axis(interval[1]):
        parts.append(_line(on.x(on.on_axis(interval[0])), 22, on.x(on.on_axis(interval[1])), 22, "bar"))
    if not on.side(mean):
        parts.append(tag("circle", cx=f"{on.x(mean):.1f}", cy="22", r="3.5", class_="dot"))
    shown = f", interval {num(interval[0])} to {num(interval[1])}" if interval else ""
    for side in (-1, 1):
        parts += _beyond(splits, mean, interval or (), on, side)
    away = len(splits) - len(inside)
    shown += f"; {away} of {len(splits)} splits beyond the axis" if away else ""
    return _svg(on.width, height, f"{words}: mean {num(mean)}{shown}", *parts, class_="strip")


def _beyond(splits: Sequence[float], mean: float, interval: Sequence[float], on: Scale, side: int) -> list[Safe]:
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
    placed = {"x": f"{x:g}", "class_": "beyond end" if side < 0 else "beyond"}
    return [tag("text", tag("title", words), "◂" if side < 0 else "▸", y=y, **placed) for y, words in arrows]


def ranks_over_time(history: Sequence[Version], title: str) -> Safe:
    """A line for each team from version to version of a board; the first rank is on top."""
    names = sorted({name for entry in history for name in entry.ranks})
    lowest = max((rank for entry in history for rank in entry.ranks.values()), default=1)
    step, high, left, right = max(3.0, 700 / max(len(history), 1)), 18.0, 24.0, 190.0
    width, height = left + step * len(history) + right, high * (lowest + 1)
    ends: dict[float, int] = {}
    children: list[Safe] = [tag("text", n, x="4", y=f"{n * high + 4:g}", class_="axis") for n in range(1, lowest + 1)]
    for number, name in enumerate(names):
        colour = f"hsl({number * 137 % 360} 60% 45%)"  # the golden angle: neighbours never look alike
        places = [(left + step * n, high * entry.ranks[name]) for n, entry in enumerate(history) if name in entry.ranks]
        points = " ".join(f"{x:.1f},{y:g}" for x, y in places)
        line = tag("polyline", tag("title", name), points=points, fill="none", stroke=colour, stroke_width="2")
        children.append(line)
        if name in history[-1].ranks:
            x, y = places[-1]
            ends[y] = ends.get(y, -1) + 1
            label = tag("text", name, x=f"{x + 6 + 95 * ends[y]:.1f}", y=f"{y + 4:g}", fill=colour, class_="axis")
            children.append(label)
    words = f"Ranks in phase {title}: {counted(len(names), 'team')} over {counted(len(history), 'version')}"
    return _svg(width, height, words, *children, class_="past")


def histogram(counts: Sequence[int], edges: Sequence[float], label: str) -> Safe:
    """Bars of equal width; the ends of the axis are written out."""
    names = [f"{edges[i]:.4g} to {edges[i + 1]:.4g}" for i in range(len(counts))]
    ends = [(f"{edges[0]:.4g}", 8.0, "axis"), (f"{edges[-1]:.4g}", 472.0, "axis end")]
    return _bars(counts, names, 464 / len(counts), label, ends)


def class_bars(counts: Sequence[int], names: Sequence[str], label: str) -> Safe:
    """A bar for each class with its name below it; the drawing is as wide as the names need."""
    shown = [name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…" for name in names]
    step = max(464 / len(counts), 7 * max(map(len, shown)) + 8)
    places = [(name, 8 + (i + 0.5) * step, "axis middle") for i, name in enumerate(shown)]
    return _bars(counts, [f"class {name}" for name in names], step, label, places)


def _bars(
    counts: Sequence[int], names: Sequence[str], step: float, label: str, axis: Sequence[tuple[str, float, str]]
) -> Safe:
    width, base, top = 16 + step * len(counts), 126.0, max(counts) or 1
    parts = [_line(8, base, width - 8, base, "track")]
    parts.append(tag("text", f"most: {max(counts)}", x=f"{width - 8:g}", y="12", class_="axis end"))
    parts += [tag("text", words, x=f"{x:.1f}", y="144", class_=class_) for words, x, class_ in axis]
    for i, count in enumerate(counts):
        size = {"width": f"{max(step - 1.5, 1):.1f}", "height": f"{count / top * 108:.1f}"}
        place = {"x": f"{8 + i * step:.1f}", "y": f"{base - count / top * 108:.1f}"}
        parts.append(tag("rect", tag("title", f"{names[i]}: {count}"), **place, **size, class_="count"))
    return _svg(width, 150, label, *parts, class_="histogram")
