"""Curves of what is left of methods with fewer dimensions or bits, all to one scale: on a page, and as a file."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from neuco_core.site.figures import num, round_step
from neuco_core.site.page_data import PageData
from neuco_core.site.render import TableCell
from neuco_extensions.rate.stored import FIXED, LINES, WHOLE, Ablation, AblationPoint, line_of, read_ablations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from neuco_extensions.rate.variants import VariantScore

log = logging.getLogger(__name__)


def of_board(page: PageData) -> dict[str, Ablation]:
    """By method, the stored ablations that are about the scores of this board."""
    suite, cells = page.board.suite, page.cells
    if suite is None or cells is None or page.registry is None:
        return {}
    stored = read_ablations(page.registry, suite.id)
    current = {name: item for name, item in stored.items() if item.protocol == suite.protocol and item.holds(cells)}
    for name in stored.keys() - current.keys():
        log.warning("the ablation of %s on %s is of other scores: neuco rate ablate … --keep", name, suite.id)
    return current


class CurveAxes:
    """One scale for several drawings: x doubles from tick to tick, y is linear and begins at 0 at the latest."""

    WIDTH, HEIGHT = 340, 210
    LEFT, RIGHT, TOP, BASE = 38, 10, 12, 174

    def __init__(self, points: Sequence[AblationPoint]) -> None:
        powers, low = [math.log2(point.bits) for point in points], min(0.0, *(point.mean_q for point in points))
        self.first, self.last = math.floor(min(powers)), math.ceil(max(powers))
        high = max(point.mean_q for point in points)
        step = round_step(high - low, 4, (1, 2, 5, 10))
        self.low, self.high = step * math.floor(low / step), step * math.ceil(high / step)
        self.levels = [self.low + k * step for k in range(round((self.high - self.low) / step) + 1)]
        self.bits = [
            2**power for power in range(self.first, self.last + 1, max(1, math.ceil((self.last - self.first) / 6)))
        ]

    def x(self, bits: float) -> str:
        share = (math.log2(bits) - self.first) / ((self.last - self.first) or 1)
        return f"{self.LEFT + share * (self.WIDTH - self.LEFT - self.RIGHT):.1f}"

    def y(self, value: float, lower: float = 0.0) -> str:
        share = (value - self.low) / ((self.high - self.low) or 1)
        return f"{self.BASE - share * (self.BASE - self.TOP) + lower:.1f}"


def curves(page: PageData) -> dict[str, Any] | None:
    stored = of_board(page)
    ablations = [stored[row.method] for row in page.board.shown if row.method in stored]
    if not ablations:
        return None
    drawings, rows = [], []
    for item in ablations:
        title, lines = page.method_title(item.method), []
        for name, line in LINES.items():
            points = sorted((point for point in item.points if point.line == name), key=lambda point: point.bits)
            lines.append((line, [(point, _variant(point)) for point in points], name != FIXED))
        drawings.append((title, lines, len(item.points)))
        for point in sorted(item.points, key=lambda p: -p.bits):
            numbers = (TableCell(f"{point.bits:,.0f}", "number"), TableCell(num(point.mean_q, 2), "number"))
            rows.append([TableCell(title), TableCell(_variant(point)), *numbers])
    points_drawn = [point for item in ablations for point in item.points]
    keys = [line for name, line in LINES.items() if any(point.line == name for point in points_drawn)]
    return {"axes": CurveAxes(points_drawn), "keys": keys, "drawings": drawings, "rows": rows}


def _variant(point: AblationPoint) -> str:
    how = "all" if point.reduction == WHOLE else point.reduction
    return f"{how} {point.dim}, {point.rate}"


def ablation_figure(points: Sequence[VariantScore], title: str) -> Figure:
    """Q of every task against bits per sample; with several tasks also their mean."""
    from matplotlib.figure import Figure

    panels: list[str | None] = list(points[0].scores)
    if len(panels) > 1:
        panels = [None, *panels]
    columns = 2 if len(panels) == 4 else min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(1.2 + 4.2 * columns, 1.4 + 3.2 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True)
    for axes, task in zip(grid.flat, panels, strict=False):
        _panel(axes, points, task)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(2, len(labels)), frameon=False)
    figure.suptitle(title)
    return figure


def _panel(axes: Any, points: Sequence[VariantScore], task: str | None) -> None:
    for name, line in LINES.items():
        drawn = [p for p in points if line_of(p.variant.reduction, p.variant.rate) == name]
        at = sorted((p.bits, _q(p, task)) for p in drawn)
        style = "" if name == FIXED else "-"
        if drawn:
            axes.plot(*zip(*at, strict=True), color=line.color, marker=line.marker, markersize=5, linestyle=style,
                      linewidth=1.4, label=line.label)  # fmt: skip
        for p in drawn if name == FIXED else ():
            axes.annotate(p.variant.rate, (p.bits, _q(p, task)), (0, 6), textcoords="offset points", ha="center",
                          fontsize=7, color=line.color)  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda bits, _: f"{bits:g}")
    axes.tick_params(labelbottom=True)  # there may be no panel below to show the scale
    axes.margins(x=0.08, y=0.1)
    axes.axhline(0, color="#cccccc", linewidth=0.8, zorder=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(xlabel="bits per sample", ylabel="Q", title="mean of the tasks" if task is None else task)


def _q(point: VariantScore, task: str | None) -> float:
    return point.mean_q if task is None else point.scores[task].q
