"""Names beside points, none over another: the crowded points choose first, and a name without room is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RINGS = (8.0, 16.0, 28.0, 44.0, 64.0, 90.0)  # how far from its point a name may stand, the nearest first
TURNS = 16
PLAIN = 2  # rings from which no line to the point is needed
ROUND_POINT = 6.0  # kept free around every point
NEAR = 60.0
TRIES = 400  # orders times points: of more points fewer orders are tried, so that it stays quick
STEPS = np.linspace(0.15, 0.85, 8)  # places on a line at which it is looked whether something is there
GAP = 1.5
# In pixels: what it counts that another point is as near to a name, and that its line runs over another point.
NEARER, PASSED = 10.0, 25.0
LEFT_OUT = 200.0


@dataclass(frozen=True)
class Label:
    """The middle of a name's left end, and the end of its line to the point, if it is far enough to need one."""

    x: float
    y: float
    line: tuple[float, float] | None


def arrange(
    points: np.ndarray, widths: Sequence[float], height: float, room: tuple[float, float], taken: np.ndarray
) -> list[Label | None]:
    """A label for each point within ``room``; ``taken`` are boxes (left, top, right, bottom) that are not free.

    Of several orders in which the points choose the one is kept that leaves out least, and whose names are nearest.
    """
    near = np.hypot(*(points[:, None] - points).transpose(2, 0, 1)) < NEAR
    first, random = np.argsort(-near.sum(1), kind="stable"), np.random.default_rng(0)
    orders = [first, *(random.permutation(len(points)) for _ in range(TRIES // len(points)))]
    found = [_arranged(points, widths, height, room, taken, order) for order in orders]
    return min(found, key=lambda pair: pair[0])[1]


def _arranged(
    points: np.ndarray,
    widths: Sequence[float],
    height: float,
    room: tuple[float, float],
    taken: np.ndarray,
    order: np.ndarray,
) -> tuple[float, list[Label | None]]:
    """One after the other, each at the best place that is left; and what it costs."""
    marks = np.concatenate([points - ROUND_POINT, points + ROUND_POINT], axis=1)
    boxes, names = np.concatenate([taken.reshape(-1, 4), marks]), len(taken) + len(points)
    lines, cost = np.empty((0, 2)), 0.0
    found: list[Label | None] = [None] * len(points)
    for place in order:
        corners, ends, needed = _candidates(points[place], widths[place], height)
        others = np.delete(boxes, len(taken) + place, axis=0)
        free = (corners[:, :2] >= 0).all(1) & (corners[:, 2:] <= room).all(1) & ~_overlaps(corners, others).any(1)
        free &= ~_inside(lines, corners).any(1)
        own = points[place] + STEPS[:, None, None] * (ends - points[place])  # (step, candidate, 2)
        # A line may pass a point, but not run through a name.
        crossed = _inside(own.reshape(-1, 2), boxes[names:]).any(0).reshape(len(STEPS), -1).any(0)
        left = np.flatnonzero(free & ~(needed & crossed))
        if not len(left):
            cost += LEFT_OUT
            continue
        far = np.repeat(RINGS, TURNS)[left] + NEARER * _nearer(corners[left], points, place)
        far += PASSED * needed[left] * _passed(own[:, left], points, place)
        chosen = left[np.argmin(far)]
        box, cost = corners[chosen], cost + float(far.min())
        line = (float(ends[chosen, 0]), float(ends[chosen, 1])) if needed[chosen] else None
        found[place] = Label(float(box[0]), float(box[1] + height / 2), line)
        boxes = np.concatenate([boxes, box[None] + [-GAP, -GAP, GAP, GAP]])
        lines = np.concatenate([lines, own[:, chosen]]) if line else lines
    return cost, found


def _candidates(point: np.ndarray, width: float, height: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Boxes around a point with the place where each is nearest to it, and whether that needs a line."""
    turns = 2 * np.pi * np.arange(TURNS) / TURNS
    order = np.argsort(np.abs(np.sin(turns)), kind="stable")  # beside a point is better than above or below it
    way = np.stack([np.cos(turns), np.sin(turns)], axis=1)[order]
    ends = np.concatenate([point + ring * way for ring in RINGS])
    ways = np.tile(way, (len(RINGS), 1))
    size = np.array([width, height])
    low = ends - (1 - ways) / 2 * size
    needed = np.arange(len(ends)) // TURNS >= PLAIN
    return np.concatenate([low, low + size], axis=1), ends, needed


def _nearer(boxes: np.ndarray, points: np.ndarray, place: int) -> np.ndarray:
    """How many points each box is as near to as to its own: a reader would take the name for theirs."""
    away = np.maximum(np.maximum(boxes[:, None, :2] - points, points - boxes[:, None, 2:]), 0)
    far = np.hypot(*away.transpose(2, 0, 1))
    return np.asarray((far < far[:, place, None] + 3).sum(1) - 1)


def _passed(lines: np.ndarray, points: np.ndarray, place: int) -> np.ndarray:
    """Over how many other points each line, (step, line, 2), runs."""
    others = np.delete(points, place, axis=0)
    return np.asarray((np.hypot(*(lines[:, :, None] - others).transpose(3, 0, 1, 2)) < ROUND_POINT).any(0).sum(1))


def _overlaps(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    a, b = first[:, None], second[None]
    return np.asarray((a[..., :2] < b[..., 2:]).all(-1) & (b[..., :2] < a[..., 2:]).all(-1))


def _inside(points: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """(box, point): whether the point lies in the box."""
    p, b = points[None], boxes[:, None]
    return np.asarray(((p > b[..., :2]) & (p < b[..., 2:])).all(-1))
