"""Scores by place: on a task's page the gap of each method, a map of where samples are told well, scores by region."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from neuco_core.boards.cells import BoardMethod, Cell, Cells
from neuco_core.errors import NeucoError
from neuco_core.plugins.catalog import load_metric, load_protocol, load_task
from neuco_core.scoring.splits import Splits, splits_of
from neuco_core.site.figures import num
from neuco_core.site.page_data import PageData
from neuco_core.site.render import TableCell
from neuco_core.specs import resolve
from neuco_core.tables.labels import Labels
from neuco_core.tables.positions import Positions, positions_of
from neuco_extensions.geo.gap import gaps, keeps_apart, pairs

CONTROL = "Nearest neighbour in space"
MOST_SAMPLES = 50_000  # of a map
SHADES = 5


def scores_by_place(page: PageData, task: str) -> dict[str, Any] | None:
    """For each protocol whose splits keep places apart: the gap of each method, a map, and scores by region."""
    at_hand = located(task) if task in page.labels else None  # building a page fetches nothing
    if at_hand is None or len(at_hand[0]) > MOST_SAMPLES:
        return None
    (labels, positions), found = at_hand, []
    by_chance = {by_place: name for name, by_place in pairs(page.protocols)}
    for name, cells in page.protocols.items():
        if not keeps_apart(name):
            continue
        splits = splits_by(task, name)
        scores = [cells.cell(row.method, task).splits for row in page.board.ranked]
        scores = [of_method for of_method in scores if len(of_method) == len(splits)]
        if scores:
            by_sample = _by_sample(splits, np.median(np.array(scores, float), axis=0), len(labels))
            rows = gap_rows(page, task, by_chance[name], name) if name in by_chance else []
            found.append((name, rows, PlaceMap(positions, by_sample), _regions(labels, splits, by_sample)))
    heads = ["Method", *((head, "number") for head in ("Gap ± 95 %", "Random", "By place"))]
    return {"found": found, "heads": heads} if found else None


@cache
def located(task: str) -> tuple[Labels, Positions] | None:
    """Labels with positions, if their dataset or file gives any; several boards may have the task."""
    try:
        labels = load_task(task).labels()
        return labels, positions_of(labels)
    except NeucoError:
        return None


@cache
def splits_by(task: str, protocol: str) -> Splits:
    return splits_of(load_task(task).labels(), load_protocol(protocol))


def gap_rows(page: PageData, task: str, by_chance: str, by_place: str) -> list[list[TableCell]]:
    """The gaps of all methods and of the control, the best by random splits first."""
    tasks = [each for each in page.board.tasks if each.id == task]
    random, blocks = (with_control(page.protocols[name], task, name) for name in (by_chance, by_place))
    shown = {row.method: row.baseline for row in page.board.shown if not row.same_as} | {CONTROL: True}
    rows = []
    for method, gap in sorted(gaps(random, blocks, tasks).items(), key=lambda item: -item[1].by_chance):
        if method in shown:
            value = num(gap.value) + (f" ± {num(gap.high - gap.value)}" if np.isfinite(gap.high) else "")
            name = page.method_title(method) + " (baseline)" * shown[method]
            numbers = (TableCell(text, "number") for text in (value, num(gap.by_chance), num(gap.by_place)))
            rows.append([TableCell(name), *numbers])
    return rows


def with_control(cells: Cells, task: str, protocol: str) -> Cells:
    """With the location alone among the methods."""
    scores = space_scores(task, protocol)
    cell = Cell(q=0.0, mean=float(np.nanmean(scores)), splits=tuple(scores.tolist()))
    method = BoardMethod(CONTROL, baseline=True)
    return replace(cells, methods=(*cells.methods, method), cells={**cells.cells, (CONTROL, task): cell})


@cache
def space_scores(task: str, protocol: str) -> np.ndarray:
    """The location alone, by split: each tested sample gets the label of the training sample nearest to it."""
    labels = load_task(task).labels()
    xyz, truth = positions_of(labels).xyz, labels.values
    metric = resolve(load_metric(load_task(task).metric).function)
    scores = []
    for train, test in splits_by(task, protocol):
        _, nearest = cKDTree(xyz[train]).query(xyz[test])
        true, predicted = truth[test], truth[train[nearest]]
        if labels.kind == "classification":
            true, predicted = true.astype(np.int64), np.eye(int(truth.max()) + 1)[predicted.astype(np.int64)]
        scores.append(metric(true, predicted) if np.ptp(true, axis=0).all() else np.nan)
    return np.array(scores)


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
        edges = np.quantile(values[shown], np.linspace(0, 1, SHADES + 1))
        shades = np.searchsorted(edges[1:-1], values)
        x, y = 10 + scale * places[:, 0], self.height - 10 - scale * places[:, 1]
        self.paths = [
            (shade, "".join(f"M{a:.1f} {b:.1f}h0" for a, b in zip(x[rows], y[rows], strict=True)))
            for shade in range(SHADES)
            if (rows := shown & (shades == shade)).any()
        ]
        self.keys = [f"{num(low)} to {num(high)}" for low, high in pairwise(edges)]


def _by_sample(splits: Splits, scores: np.ndarray, count: int) -> np.ndarray:
    """The mean score of the splits in which a sample is tested; NaN for one that never is."""
    total, times = np.zeros((2, count))
    for (_, test), score in zip(splits, scores, strict=True):
        if np.isfinite(score):
            total[test] += score
            times[test] += 1
    return np.asarray(np.divide(total, times, out=np.full(count, np.nan), where=times > 0))


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
    with_score = {name: by_sample[rows][np.isfinite(by_sample[rows])] for name, rows in regions.items()}
    scores = {name: float(values.mean()) for name, values in with_score.items() if values.size}
    return [
        [TableCell(name), TableCell(len(regions[name]), "number"), TableCell(num(scores[name]), "number")]
        for name in sorted(scores, key=scores.__getitem__)
    ]
