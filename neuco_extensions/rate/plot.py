"""The picture of an ablation: quality against bits per sample, one panel per task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from neuco_extensions.rate.stored import FIXED, LINES, line_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from neuco_extensions.rate.ablate import VariantScore


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
