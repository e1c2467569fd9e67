"""Methods and tasks as points of one plane, in which the distance of a method and a task is the gap to its best score.

It is the paper's L2 encoder in two dimensions, for looking at. Two dimensions are few, so every point comes with how
far its distances are off, and with how far it moves between layouts that fit nearly as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from neuco_core.errors import DataError
from neuco_core.text import counted
from neuco_extensions.predict.table import ScoreTable, gaps

LEAST = 3  # distances that fix a point of a plane
LEAST_METHODS, LEAST_TASKS = 5, 4  # with fewer, nearly any table fits and nothing is told
MOST = 1000  # points of which a map can be drawn and read at all
STARTS, LEAST_STARTS = 32, 4
QUICK = 1_000_000  # starts times results: of a large table fewer starts are tried
AS_GOOD = 1.03  # layouts whose squared errors are at most so many times those of the best count as nearly as good
POOR = 0.2  # Kruskal's word for a stress of so much or more
FAR = 0.2  # of the way from a task's best to its worst: an error or a move that a reader must know of
CLEAR = 0.5  # silhouette from which on groups are called groups
MOST_GROUPS = 5
TINY = 1e-12


@dataclass(frozen=True)
class MapPoint:
    """``error`` is the root mean square of what its distances are off, ``moves`` how far it is from its place in other
    layouts, on average; ``group`` counts from 1, and 0 is none. ``reach`` is the mean distance to all points of the
    other sort: a method with a small one is good at most tasks."""

    name: str
    x: float
    y: float
    error: float
    moves: float
    reach: float
    known: int
    group: int = 0

    @property
    def doubtful(self) -> bool:
        return self.error > FAR or self.moves > FAR


@dataclass(frozen=True)
class Plane:
    """``stress`` is Kruskal's: errors of distances in units of the distances; ``layouts`` are those nearly as good."""

    methods: tuple[MapPoint, ...]
    tasks: tuple[MapPoint, ...]
    stress: float
    layouts: int

    @property
    def points(self) -> tuple[MapPoint, ...]:
        return (*self.methods, *self.tasks)

    @property
    def doubtful(self) -> list[MapPoint]:
        return [point for point in self.points if point.doubtful]

    @property
    def distorted(self) -> bool:
        return self.stress >= POOR

    def warnings(self, marked: str) -> list[str]:
        """What a reader must know before taking distances for true; ``marked`` says how to know the bad points."""
        good, bad = "distances are mostly those of the table", "two dimensions are too few: distances are distorted"
        lines = [f"Stress {self.stress:.3f} ({POOR:g} and more is poor): {bad if self.distorted else good}."]
        if self.doubtful:
            many = f"{len(self.doubtful)} of {counted(len(self.points), 'point')}"
            why = f"distances off by more than {FAR:g}, or as far away in a layout that fits nearly as well"
            lines.append(f"Do not trust the places of {many}, {marked}: {why}.")
        return lines


def fit_plane(table: ScoreTable, seed: int = 0, starts: int = STARTS, least: int = LEAST) -> Plane:
    """The best of several layouts. The same table gives the same plane; who has fewer results is left out."""
    table = table.filtered(max(least, LEAST))
    if len(table.methods) < LEAST_METHODS or len(table.tasks) < LEAST_TASKS:
        expected = f"{LEAST_METHODS} methods and {LEAST_TASKS} tasks, each with {LEAST} results or more"
        raise DataError("too small for a map", where="table of results", expected=f"at least {expected}", got=table)
    if len(table.methods) + len(table.tasks) > MOST:
        hint = "Leave out who has few results with --least, or make a map of a part"
        raise DataError("too large for a map", expected=f"at most {MOST} methods and tasks", got=table, hint=hint)
    layout = PlaneCost(table)
    starts = min(starts, max(LEAST_STARTS, QUICK // len(layout.gaps)))
    random, size = np.random.default_rng(seed), len(table.methods) + len(table.tasks)
    layouts = sorted((layout.settle(random.normal(0, 0.3, (size, 2))) for _ in range(starts)), key=lambda pair: pair[0])
    # Wide rather than high, and the same way round on every machine; distances stay.
    best = layouts[0][1] - layouts[0][1].mean(0)
    best = best @ np.linalg.svd(best, full_matrices=False)[2].T
    best = best * np.where(best[len(table.methods) :].mean(0) < 0, -1.0, 1.0)
    others = []
    for cost, points in layouts[1:]:
        if cost <= AS_GOOD * layouts[0][0] + TINY:  # turned and mirrored to lie as near to the best as it can
            centred = points - points.mean(0)
            others.append(centred @ orthogonal_procrustes(centred, best)[0])
    moves = np.mean([np.hypot(*(other - best).T) for other in others], axis=0) if others else np.zeros(size)
    off = layout.distances(best) - layout.gaps
    total = float((layout.gaps**2).sum())  # 0 where all scores of each task are equal
    stress = float(np.sqrt((off**2).sum() / total)) if total else 0.0
    count, known = len(table.methods), table.known
    far = cdist(best[:count], best[count:])
    off_methods, off_tasks = _size(layout.rows, off), _size(layout.columns, off)
    methods = _points(table.methods, best[:count], off_methods, moves[:count], far, known.sum(1))
    tasks = _points(table.tasks, best[count:], off_tasks, moves[count:], far.T, known.sum(0))
    return Plane(methods, tasks, stress, len(others) + 1)


class PlaneCost:
    def __init__(self, table: ScoreTable) -> None:
        self.rows, self.columns = table.cells
        self.gaps = gaps(table.values)[table.cells]
        self._ends = self.rows, self.columns + len(table.methods)

    def distances(self, points: np.ndarray) -> np.ndarray:
        first, second = (points[end] for end in self._ends)
        return np.asarray(np.sqrt(((first - second) ** 2).sum(1) + TINY))

    def settle(self, start: np.ndarray) -> tuple[float, np.ndarray]:
        done = minimize(self._cost, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 500})
        return float(done.fun), done.x.reshape(start.shape)

    def _cost(self, flat: np.ndarray) -> tuple[float, np.ndarray]:
        points = flat.reshape(-1, 2)
        first, second = self._ends
        apart = self.distances(points)
        off = apart - self.gaps
        pull = (2 * off / apart)[:, None] * (points[first] - points[second])
        size = len(points)
        slopes = [np.bincount(first, way, size) - np.bincount(second, way, size) for way in pull.T]
        return float(off @ off), np.stack(slopes, axis=1).ravel()


def _size(points: np.ndarray, off: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt(np.bincount(points, off**2) / np.bincount(points)))


def _points(
    names: tuple[str, ...],
    positions: np.ndarray,
    errors: np.ndarray,
    moves: np.ndarray,
    far: np.ndarray,
    known: np.ndarray,
) -> tuple[MapPoint, ...]:
    numbers = np.round(np.stack([*positions.T, errors, moves, far.mean(1)]), 4).T + 0.0
    return tuple(
        MapPoint(name, *coordinates, known=int(count), group=group)  # type: ignore[misc]
        for name, coordinates, count, group in zip(names, numbers.tolist(), known, grouped(positions), strict=True)
    )


def grouped(positions: np.ndarray) -> list[int]:
    """A group for each point, numbered by who comes first; all 0 where no division into a few is a clear one."""
    tree, apart = linkage(positions, "average"), cdist(positions, positions)
    best, groups = CLEAR, np.zeros(len(positions), int)
    for number in range(2, min(MOST_GROUPS, len(positions) - 1) + 1):
        division = fcluster(tree, number, "maxclust")
        if (clear := _silhouette(apart, division)) > best:
            best, groups = clear, division
    order = {group: number for number, group in enumerate(dict.fromkeys(groups.tolist()), 1)}
    return [order[group] if group else 0 for group in groups.tolist()]


def _silhouette(apart: np.ndarray, groups: np.ndarray) -> float:
    """How much nearer points are to their own group than to the next one, on average, from -1 to 1; 0 if alone."""
    member = groups[:, None] == np.unique(groups)
    sums, sizes = apart @ member, member.sum(0)
    inside = sums[member] / np.maximum(sizes - 1, 1)[np.nonzero(member)[1]]
    outside = np.where(member, np.inf, sums / sizes).min(1)
    alone = sizes[np.nonzero(member)[1]] == 1
    return float(np.where(alone, 0.0, (outside - inside) / np.maximum(np.maximum(inside, outside), TINY)).mean())
