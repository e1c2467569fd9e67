"""Curves of what is left of methods with fewer dimensions or bits: a small drawing for each, all to one scale."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence

from neuco_core.boards.views.site.html import Safe, num, section, table, tag
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.text import clean
from neuco_extensions.rate.stored import Ablation, AblationPoint, Series, read_ablations

# The colour of a line by its number in the style sheet, its marker around 0, 0, and its name.
LINES: dict[Series, tuple[int, str, str]] = {
    "truncate": (0, "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", "first dimensions"),
    "pca": (1, "M-3.5 -3.5h7v7h-7z", "PCA"),
    "random": (3, "M0 -4.5L4.3 3.5H-4.3z", "random projection"),
    "entropy": (2, "M0 -5L5 0L0 5L-5 0z", "all dimensions, entropy-coded"),
    "fixed": (5, "M-4 -4L4 4M-4 4L4 -4", "all dimensions: float32, float16, int8, binary"),
}
NOTE = (
    "The same methods, made smaller: with fewer dimensions (four bytes each), or with fewer bits for all of them. "
    "Bits are those that a coder really wrote. Made by neuco rate ablate --keep."
)
log = logging.getLogger(__name__)
WIDTH, HEIGHT = 340.0, 210.0
LEFT, RIGHT, TOP, BASE = 38.0, 10.0, 12.0, 174.0


class Axes:
    """One scale for all drawings of a board: bits double from tick to tick, mean Q is linear."""

    def __init__(self, points: Sequence[AblationPoint]) -> None:
        bits, values = [math.log2(p.bits) for p in points], [p.mean_q for p in points]
        self.first, self.last = math.floor(min(bits)), math.ceil(max(bits))
        rough = (max(values) - min(0.0, min(values))) / 4 or 1.0
        power = 10.0 ** math.floor(math.log10(rough))
        self.step: float = next(power * n for n in (1, 2, 5, 10) if power * n >= rough)
        self.low = self.step * math.floor(min(0.0, min(values)) / self.step)
        self.high = self.step * math.ceil(max(values) / self.step)

    def x(self, bits: float) -> float:
        span = (self.last - self.first) or 1
        return LEFT + (math.log2(bits) - self.first) / span * (WIDTH - LEFT - RIGHT)

    def y(self, q: float) -> float:
        return BASE - (q - self.low) / ((self.high - self.low) or 1) * (BASE - TOP)

    def drawn(self) -> list[Safe]:
        parts = []
        for k in range(round((self.high - self.low) / self.step) + 1):
            value = self.low + k * self.step
            y = f"{self.y(value):.1f}"
            parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="track"))
            said = f"{value:.10g}".replace("-", "−")
            parts.append(tag("text", said, x=LEFT - 6, y=f"{self.y(value) + 4:.1f}", class_="axis end"))
        stride = max(1, math.ceil((self.last - self.first) / 6))
        for power in range(self.first, self.last + 1, stride):
            parts.append(tag("text", _bits(2**power), x=f"{self.x(2**power):.1f}", y=BASE + 16, class_="axis middle"))
        parts.append(tag("text", "bits per sample", x=(LEFT + WIDTH) / 2, y=HEIGHT - 4, class_="axis middle"))
        return parts


def _bits(count: float) -> str:
    return f"{count / 1024:g}k" if count >= 1024 else f"{count:g}"


def of_board(source: BoardSource) -> dict[str, Ablation]:
    """By method, the stored ablations that are about the scores of this board."""
    suite, cells = source.board.suite, source.cells
    if suite is None or cells is None or source.registry is None:
        return {}
    stored = read_ablations(source.registry, suite.id)
    current = {name: item for name, item in stored.items() if item.protocol == suite.protocol and item.holds(cells)}
    for name in stored.keys() - current.keys():
        log.warning("the ablation of %s on %s is of other scores: neuco rate ablate … --keep", name, suite.id)
    return current


def ablations(source: BoardSource) -> Safe:
    """The drawings of all methods that have one, in the order of the board."""
    stored = of_board(source)
    own = [stored[row.method] for row in source.board.shown if row.method in stored]
    if not own:
        return Safe("")
    axes = Axes([point for item in own for point in item.points])
    keys = [tag("li", _marker(name), f" {words}") for name, (_, _, words) in LINES.items() if _used(own, name)]
    names = [tag("figcaption", tag("b", clean(source.method_title(item.method)))) for item in own]
    drawings = [tag("figure", name, _drawing(source, item, axes)) for name, item in zip(names, own, strict=True)]
    return section(
        "Mean Q against bits",
        tag("ul", *keys, class_="keys"),
        tag("div", *drawings, class_="ablations"),
        tag("details", tag("summary", "All numbers"), _numbers(source, own)),
        id_="rate",
        note=NOTE,
    )


def _used(own: Sequence[Ablation], name: Series) -> bool:
    return any(point.series == name for item in own for point in item.points)


def _marker(name: Series) -> Safe:
    inner = tag("path", d=LINES[name][1], class_="mark")
    return tag("svg", inner, viewBox="-7 -7 14 14", width="14", height="14", class_=f"a{LINES[name][0]}")


def _drawing(source: BoardSource, item: Ablation, axes: Axes) -> Safe:
    parts = axes.drawn()
    for name, (number, marker, words) in LINES.items():
        own = sorted((p for p in item.points if p.series == name), key=lambda p: p.bits)
        places = [(axes.x(p.bits), axes.y(p.mean_q)) for p in own]
        inner = []
        if name != "fixed" and len(places) > 1:
            inner.append(tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places), class_="curve"))
        inner += [
            tag("path", tag("title", _said(p)), d=marker, transform=f"translate({x:.1f} {y:.1f})", class_="mark")
            for p, (x, y) in zip(own, places, strict=True)
        ]
        parts.append(tag("g", tag("title", words), *inner, class_=f"a{number}"))
    title = clean(source.method_title(item.method))
    label = f"{title}: mean Q of {len(item.points)} variants against their bits per sample; all numbers are below"
    return tag("svg", *parts, viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="img", aria_label=label, class_="ablation")


def _said(point: AblationPoint) -> str:
    return f"{_variant(point)}: {point.bits:.0f} bits, mean Q {num(point.mean_q, 2)}"


def _variant(point: AblationPoint) -> str:
    how = "all" if point.series in ("entropy", "fixed") else point.reduction
    return f"{how} {point.dim}, {point.rate}"


def _numbers(source: BoardSource, own: Sequence[Ablation]) -> Safe:
    rows = [
        (
            source.method_title(item.method),
            _variant(point),
            (f"{point.bits:,.0f}", "number"),
            (num(point.mean_q, 2), "number"),
        )
        for item in own
        for point in sorted(item.points, key=lambda p: -p.bits)
    ]
    heads = ("Method", "Variant", ("Bits per sample", "number"), ("Mean Q", "number"))
    return table(heads, rows, caption="Mean Q of methods that were made smaller")
