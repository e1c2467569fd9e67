"""The encoders of the capabilities-encoding paper: methods and tasks are points, and their distance is the gap Δ.

All as in the paper's code: Adam with 100 steps of warm-up and a cosine to 0 over 500 steps. That includes two faults of
its Poincaré ball, so that numbers can be compared: the gradient is scaled by the norm of all parameters together, where
that of each point is meant, and after each step every point is drawn inwards by a thousandth, where only those outside
the ball are meant. A fit is compiled: a cross-validation needs hundreds.
"""

from __future__ import annotations

import math

import numpy as np

from neuco_core.errors import UsageError
from neuco_core.plugins.compiled import compiled

STEPS, WARM_UP, RATE = 500, 100, 0.05
DISTANCES = ("l2", "cosine", "poincare")
L2, COSINE = range(2)
_compiled = compiled(keep=False, error_model="numpy")


def fit_gaps(gaps: np.ndarray, known: np.ndarray, distance: str, dimension: int = 5, seed: int = 0) -> np.ndarray:
    """Predicted gaps (fold, method, task), learnt from the known ones of each fold; both arguments have that shape."""
    found = np.empty(gaps.shape)
    for fold, (wanted, there) in enumerate(zip(gaps, known, strict=True)):
        rows, columns = fit_points(wanted, there, distance, dimension, seed + fold)
        found[fold] = _distances(rows, columns, DISTANCES.index(distance))
    return found


def fit_points(
    gaps: np.ndarray, known: np.ndarray, distance: str = "l2", dimension: int = 5, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """The points of methods and of tasks, learnt from the known gaps of one table (method, task)."""
    if dimension < 1 or distance not in DISTANCES:
        raise UsageError("bad encoder", expected=f"one of {', '.join(DISTANCES)}, dimension 1 or more", got=distance)
    points = np.random.default_rng(seed).normal(0, 0.1, (sum(gaps.shape), dimension))
    if distance == "poincare":
        points = points * 0.001 - 0.0005
    rows, columns = np.nonzero(known)
    _fit(points, rows, columns + len(gaps), gaps[rows, columns].astype(float), DISTANCES.index(distance), RATES)
    return points[: len(gaps)], points[len(gaps) :]


def _rates() -> np.ndarray:
    step = np.arange(STEPS)
    down = 0.5 * (1 + np.cos(math.pi * (step - WARM_UP) / (STEPS - WARM_UP)))
    return np.asarray(RATE * np.where(step < WARM_UP, 0.01 + 0.99 * step / WARM_UP, down))


RATES = _rates()


@_compiled
def _distance(first, second, kind):  # type: ignore[no-untyped-def]
    """The distance, and its derivative: that by the first point is ``to_other * second + to_first * first``.

    By the second point it is ``to_other * first + to_second * second``.
    """
    apart = across = one = two = 0.0
    for j in range(len(first)):
        apart += (first[j] - second[j]) ** 2
        across += first[j] * second[j]
        one += first[j] ** 2
        two += second[j] ** 2
    if kind == L2:
        size = np.sqrt(apart + 1e-24)
        slope = 1 / size if size < 1 else 0.0
        return min(size, 1.0), -slope, slope, slope
    if kind == COSINE:
        sizes = np.sqrt(one * two) + 1e-24
        likeness = across / sizes
        inside = 0.0 < 0.5 - likeness < 1.0
        slope = 1 / sizes if inside else 0.0
        both = likeness if inside else 0.0
        return min(max(0.5 - likeness, 0.0), 1.0), -slope, both / one, both / two
    room = (1 - one) * (1 - two)
    rest = 2 * apart / room + 1e-12
    outer = 1 / np.sqrt(rest * (rest + 2))  # derivative of arccosh(1 + rest)
    slope = 4 * outer / room
    return (
        np.log1p(rest + np.sqrt(rest * (rest + 2))),
        -slope,
        slope + 2 * outer * rest / (1 - one),
        slope + (2 * outer * rest / (1 - two)),
    )


@compiled(keep=True, error_model="numpy")
def _fit(points, first, second, wanted, kind, rates):  # type: ignore[no-untyped-def]
    """Move the points until the distances of pairs are those wanted: Adam on the mean squared difference."""
    dimension = points.shape[1]
    slope, mean, square = np.zeros_like(points), np.zeros_like(points), np.zeros_like(points)
    for step in range(len(rates)):
        slope[:] = 0.0
        for pair in range(len(wanted)):
            one, two = points[first[pair]], points[second[pair]]
            size, to_other, to_one, to_two = _distance(one, two, kind)
            off = 2 * (size - wanted[pair]) / len(wanted)
            for j in range(dimension):
                slope[first[pair], j] += off * (to_other * two[j] + to_one * one[j])
                slope[second[pair], j] += off * (to_other * one[j] + to_two * two[j])
        if kind > COSINE:
            slope *= (1 - (points**2).sum()) ** 2 / 4
        mean[:] = 0.9 * mean + 0.1 * slope
        square[:] = 0.999 * square + 0.001 * slope**2
        rate = rates[step] / (1 - 0.9 ** (step + 1))
        points -= rate * mean / (np.sqrt(square / (1 - 0.999 ** (step + 1))) + 1e-8)
        if kind > COSINE:
            for point in range(len(points)):
                points[point] *= 0.999 / max(np.sqrt((points[point] ** 2).sum()), 1.0)


@compiled(keep=True, error_model="numpy")
def _distances(rows, columns, kind):  # type: ignore[no-untyped-def]
    found = np.empty((len(rows), len(columns)))
    for i in range(len(rows)):
        for j in range(len(columns)):
            found[i, j] = _distance(rows[i], columns[j], kind)[0]
    return found
