"""Curves of what is left of methods with fewer dimensions or bits: a small drawing for each, all to one scale."""

from __future__ import annotations

import logging
from typing import Any

from neuco_core.site.figures import Curve, CurveAxes, curve_key, num
from neuco_core.site.page_data import PageData
from neuco_core.site.render import TableCell
from neuco_extensions.rate.stored import Ablation, AblationPoint, Series, read_ablations

# The colour of a line by its number in the style sheet, its marker around 0, 0, and its name.
LINES: dict[Series, tuple[int, str, str]] = {
    "truncate": (0, "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", "first dimensions"),
    "pca": (1, "M-3.5 -3.5h7v7h-7z", "PCA"),
    "random": (3, "M0 -4.5L4.3 3.5H-4.3z", "random projection"),
    "entropy": (2, "M0 -5L5 0L0 5L-5 0z", "all dimensions, entropy-coded"),
    "fixed": (5, "M-4 -4L4 4M-4 4L4 -4", "all dimensions: float32, float16, int8, binary"),
}
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


def curves(page: PageData) -> dict[str, Any] | None:
    """The drawings of all methods that have one, in the order of the board, and their numbers."""
    stored = of_board(page)
    ablations = [stored[row.method] for row in page.board.shown if row.method in stored]
    if not ablations:
        return None
    axes = CurveAxes([(p.bits, p.mean_q) for item in ablations for p in item.points], "bits per sample")
    keys: dict[str, Any] = {}
    drawings, rows = [], []
    for item in ablations:
        title = page.method_title(item.method)
        lines = [_curve(item, series) for series in LINES]
        keys |= {line.label: curve_key(line) for line in lines if line.points}
        label = f"{title}: mean Q of {len(item.points)} variants against their bits per sample; all numbers are below"
        drawings.append((title, axes.draw(lines, label)))
        for point in sorted(item.points, key=lambda p: -p.bits):
            numbers = (TableCell(f"{point.bits:,.0f}", "number"), TableCell(num(point.mean_q, 2), "number"))
            rows.append([TableCell(title), TableCell(_variant(point)), *numbers])
    ordered = [(words, keys[words]) for _, _, words in LINES.values() if words in keys]
    return {"keys": ordered, "drawings": drawings, "rows": rows}


def _curve(item: Ablation, series: Series) -> Curve:
    hue, marker, label = LINES[series]
    points = sorted((point for point in item.points if point.series == series), key=lambda point: point.bits)
    places = [(p.bits, p.mean_q, f"{_variant(p)}: {p.bits:.0f} bits, mean Q {num(p.mean_q, 2)}") for p in points]
    return Curve(label, hue, marker, places, joined=series != "fixed")


def _variant(point: AblationPoint) -> str:
    how = "all" if point.series in ("entropy", "fixed") else point.reduction
    return f"{how} {point.dim}, {point.rate}"
