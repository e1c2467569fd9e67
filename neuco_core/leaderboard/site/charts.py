"""Small drawings as SVG, each with words for those who do not see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neuco_core.leaderboard.site.html import Safe, join, num, tag


def _svg(width: float, height: float, label: str, *children: object, class_: str) -> Safe:
    return tag(
        "svg",
        tag("title", label),
        *children,
        viewBox=f"0 0 {width:g} {height:g}",
        width=f"{width:g}",
        height=f"{height:g}",
        role="img",
        aria_label=label,
        class_=class_,
    )


def _line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Safe:
    return tag("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_=class_)


def rank_interval(place: int, interval: Sequence[int] | None, methods: int) -> Safe:
    """Where a rank stands among all, and the ranks that it may truly have."""
    width = 84

    def x(rank: int) -> float:
        return 6 + (rank - 1) / max(methods - 1, 1) * (width - 12)

    track = _line(6, 8, width - 6, 8, "track")
    dot = tag("circle", cx=f"{x(place):.1f}", cy="8", r="4", class_="dot")
    if interval is None:
        return _svg(width, 16, f"rank {place} of {methods}", track, dot, class_="ranks")
    low, high = interval
    bar = tag(
        "rect", x=f"{x(low) - 3:.1f}", y="5", width=f"{x(high) - x(low) + 6:.1f}", height="6", rx="3", class_="bar"
    )
    return _svg(width, 16, f"rank {place}, between {low} and {high}", track, bar, dot, class_="ranks")


@dataclass(frozen=True)
class Scale:
    """From scores to places on a strip."""

    low: float
    high: float
    width: float = 380.0
    edge: float = 42.0

    def x(self, value: float) -> float:
        span = self.high - self.low or 1.0
        return self.edge + min(max((value - self.low) / span, 0.0), 1.0) * (self.width - 2 * self.edge)


def scale(values: Sequence[float]) -> Scale:
    """A scale for all these scores; what lies far below the rest is drawn at the edge."""
    ordered = sorted(values)
    if not ordered:
        return Scale(0.0, 1.0)
    first, third = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]
    low = max(ordered[0], first - 4 * (third - first) - 0.05)
    pad = 0.02 * (ordered[-1] - low) or 0.05
    return Scale(low - pad, ordered[-1] + pad)


def strip(splits: Sequence[float], mean: float, interval: Sequence[float] | None, on: Scale, words: str) -> Safe:
    """The scores of the splits as dots, their mean, and its interval."""
    height = 26
    rows = (8, 11, 14)  # dots that lie on each other are easier to see when they are not on one line
    dots = "".join(f"M{on.x(value):.1f} {rows[i % 3]}h0" for i, value in enumerate(splits))
    parts = [_line(on.edge, 22, on.width - on.edge, 22, "track")]
    parts.append(tag("text", num(on.low, 2), x=f"{on.edge - 5:g}", y="25", class_="axis end"))
    parts.append(tag("text", num(on.high, 2), x=f"{on.width - on.edge + 5:g}", y="25", class_="axis"))
    if on.low < 0 < on.high:
        parts.append(_line(on.x(0), 2, on.x(0), 24, "zero"))
    if dots:
        parts.append(tag("path", d=dots, class_="splits"))
    if interval:
        parts.append(_line(on.x(interval[0]), 22, on.x(interval[1]), 22, "bar"))
    parts.append(tag("circle", cx=f"{on.x(mean):.1f}", cy="22", r="3.5", class_="dot"))
    shown = f", interval {num(interval[0])} to {num(interval[1])}" if interval else ""
    return _svg(on.width, height, f"{words}: mean {num(mean)}{shown}", *parts, class_="strip")


def histogram(counts: Sequence[int], edges: Sequence[float], label: str) -> Safe:
    """Bars of equal width; the ends of the axis are written out."""
    width, height, base = 480.0, 150.0, 126.0
    step = (width - 16) / len(counts)
    top = max(counts) or 1
    bars = [
        tag(
            "rect",
            tag("title", f"{edges[i]:.4g} to {edges[i + 1]:.4g}: {count}"),
            x=f"{8 + i * step:.1f}",
            y=f"{base - count / top * 112:.1f}",
            width=f"{max(step - 1.5, 1):.1f}",
            height=f"{count / top * 112:.1f}",
            class_="count",
        )
        for i, count in enumerate(counts)
    ]
    ends = [
        tag("text", f"{edges[0]:.4g}", x="8", y="144", class_="axis"),
        tag("text", f"{edges[-1]:.4g}", x=f"{width - 8:g}", y="144", class_="axis end"),
        tag("text", f"most: {top}", x=f"{width - 8:g}", y="12", class_="axis end"),
    ]
    return _svg(width, height, label, join(bars), _line(8, base, width - 8, base, "track"), *ends, class_="histogram")
