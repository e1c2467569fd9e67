"""Curves of what is left of methods with fewer dimensions or bits: a small drawing for each, all to one scale."""

from __future__ import annotations

import logging
from typing import Any

from neuco_core.site.figures import Curve, CurveAxes, curve_key, num
from neuco_core.site.page_data import PageData
from neuco_core.site.render import TableCell
from neuco_extensions.rate.stored import FIXED, LINES, WHOLE, Ablation, AblationPoint, read_ablations

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
        lines = [_curve(item, name) for name in LINES]
        keys |= {line.label: curve_key(line) for line in lines if line.points}
        label = f"{title}: mean Q of {len(item.points)} variants against their bits per sample; all numbers are below"
        drawings.append((title, axes.draw(lines, label)))
        for point in sorted(item.points, key=lambda p: -p.bits):
            numbers = (TableCell(f"{point.bits:,.0f}", "number"), TableCell(num(point.mean_q, 2), "number"))
            rows.append([TableCell(title), TableCell(_variant(point)), *numbers])
    ordered = [(line.label, keys[line.label]) for line in LINES.values() if line.label in keys]
    return {"keys": ordered, "drawings": drawings, "rows": rows}


def _curve(item: Ablation, name: str) -> Curve:
    line = LINES[name]
    points = sorted((point for point in item.points if point.line == name), key=lambda point: point.bits)
    places = [(p.bits, p.mean_q, f"{_variant(p)}: {p.bits:.0f} bits, mean Q {num(p.mean_q, 2)}") for p in points]
    return Curve(line.label, line.hue, line.path, places, joined=name != FIXED)


def _variant(point: AblationPoint) -> str:
    how = "all" if point.reduction == WHOLE else point.reduction
    return f"{how} {point.dim}, {point.rate}"
