"""Scores by place: on a task's page a map of where its samples are told well, and scores by region."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuco_core.plugins.catalog import load_protocol
from neuco_core.scoring.splits import Splits
from neuco_core.site.figures import num
from neuco_core.site.page_data import PageData
from neuco_core.site.render import TableCell
from neuco_core.tables.labels import Labels
from neuco_core.tables.positions import Positions
from neuco_extensions.geo.board import cells_by_protocol, gaps_to, keeps_apart
from neuco_extensions.geo.control import located, splits_by

MOST_SAMPLES = 50_000  # of a map
SHADES = 5


class PlaceMap:
    """Dots where samples are, by how well they are told: five shades with as many samples each."""

    WIDTH = 340.0

    def __init__(self, positions: Positions, values: np.ndarray) -> None:
        places = positions.plane - positions.plane.min(axis=0)
        if positions.on_earth:  # about as wide as it is on the ground in the middle
            places[:, 0] *= np.cos(np.radians(positions.values[:, 1].mean()))
        span = np.ptp(places, axis=0)
        scale = (self.WIDTH - 20) / max(span[0], 0.6 * span[1], 1e-9)
        self.height = 20 + scale * span[1]
        self.size = max(2.0, min(9.0, 0.9 * scale * float(np.sqrt(span.prod() / len(places)))))
        shown = np.isfinite(values)
        self.edges = np.quantile(values[shown], np.linspace(0, 1, SHADES + 1))
        shades = np.searchsorted(self.edges[1:-1], values)
        x, y = 10 + scale * places[:, 0], self.height - 10 - scale * places[:, 1]
        self.paths = [
            (shade, "".join(f"M{a:.1f} {b:.1f}h0" for a, b in zip(x[rows], y[rows], strict=True)))
            for shade in range(SHADES)
            if (rows := shown & (shades == shade)).any()
        ]
        self.keys = [f"{num(low)} to {num(high)}" for low, high in zip(self.edges, self.edges[1:], strict=False)]


def scores_by_place(page: PageData, task: str) -> dict[str, Any] | None:
    """For each protocol whose splits keep places apart: the gap of each method, a map, and scores by region."""
    at_hand = located(task) if task in page.labels else None  # building a page fetches nothing
    if page.cells is None or at_hand is None:
        return None
    (labels, positions), found, cells = at_hand, [], cells_by_protocol(page)
    for name, of_protocol in cells.items():
        gaps = gaps_to(page, cells, name, (task,))
        protocol = load_protocol(name)
        scores = [of_protocol.cell(row.method, task) for row in page.board.ranked]
        scores = [cell for cell in scores if cell.scored and cell.samples != np.inf]
        if not keeps_apart(protocol) or not scores or len(labels) > MOST_SAMPLES:
            continue
        splits = splits_by(task, protocol)
        if {len(cell.splits) for cell in scores} != {len(splits)}:
            continue
        by_split = np.median(np.array([cell.splits for cell in scores], float), axis=0)
        by_sample = _by_sample(splits, by_split, len(labels))
        found.append((name, gaps, PlaceMap(positions, by_sample), _regions(labels, splits, by_sample)))
    return {"found": found, "task": task} if found else None


def _by_sample(splits: Splits, scores: np.ndarray, count: int) -> np.ndarray:
    """The mean score of the splits in which a sample is tested; NaN for one that never is."""
    total, times = np.zeros(count), np.zeros(count)
    for (_, test), score in zip(splits, scores, strict=True):
        if np.isfinite(score):
            total[test] += score
            times[test] += 1
    with np.errstate(invalid="ignore"):
        return np.asarray(total / np.where(times > 0, times, np.nan))


def _regions(labels: Labels, splits: Splits, by_sample: np.ndarray) -> list[list[TableCell]]:
    """The regions that are tested whole, worst first: those of the splits, or the groups of the task."""
    parts = [test for _, test in splits]
    if sum(map(len, parts)) == len(labels):
        regions = {f"region {number}": part for number, part in enumerate(parts, 1)}
    elif labels.groups is not None:
        own = np.array([str(name).partition("|")[0] for name in labels.groups])
        regions = {f"group {name}": np.flatnonzero(own == name) for name in np.unique(own)}
    else:
        return []
    scores = {
        name: float(np.nanmean(by_sample[rows])) for name, rows in regions.items() if np.isfinite(by_sample[rows]).any()
    }
    return [
        [TableCell(name), TableCell(len(regions[name]), "number"), TableCell(num(scores[name]), "number")]
        for name in sorted(scores, key=scores.__getitem__)
    ]
