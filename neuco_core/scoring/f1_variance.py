"""How much more a mean F1 varies between data sets than its test parts show, because training varies, too.

Nadeau and Bengio's correction counts the test samples once each. That is enough for a score that training makes as
good as it can, such as R² or accuracy: small errors of the trained weights then change it only in second order. F1 is
no such score. Probes cut where both classes are equally likely, and F1 is best elsewhere; a data set with a few more
positives moves the cut, all splits of it share the move, and F1 follows in first order.

By how much is told by the influence of a sample on F1: directly, as one that is tested (T), and by way of the cut, as
one that is trained on (C). A mean over many splits of n samples has the variance Var(T + C)/n, and splits with the
share h for testing differ from each other by Var(T - C h/(1 - h)): ``variance_factor`` is the ratio of the two. Both
follow from a model with two numbers, fitted to the F1 and the share of positives of a record: probe outputs that are
normal in each class, with a cut by least squares. Measured against it: `python benchmarks/intervals.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import erfc, exp, pi, sqrt
from typing import NamedTuple

import numpy as np

GRID = np.linspace(-8.0, 8.0, 801)  # probe outputs, in standard deviations within a class
CLOSEST, FARTHEST = 0.1, 8.0  # distances between the classes' means
# Beyond this the first order is no longer the truth: F1 cannot fall below 0. Measured, 4 was never needed.
LARGEST = 4.0
Splits = Sequence[float | None]


class Trained(NamedTuple):
    """What a record tells of the error of its mean score.

    ``factor``: how many times the variance that test parts show. ``trials``: of which share of the samples the score
    is a share of successes, at most; all of them, if that is not known.
    """

    factor: float = 1.0
    trials: float = 1.0


UNCORRECTED = Trained()


def of_f1(metrics: Mapping[str, Splits], test_to_train: float) -> Trained:
    """From the metrics of a record's splits, F1 among them.

    F1 = 2J / (1 + J), and J is a share: of the samples that are positive or named so, those that are both. There are
    at least as many as positives. For more than two classes there is no such model.
    """
    try:
        f1, accuracy, precision, recall = (metrics[name] for name in ("f1", "accuracy", "precision", "recall"))
    except KeyError:
        return UNCORRECTED
    positives = share_of_positives(accuracy, precision, recall)
    scores = [value for value in f1 if value is not None]
    if positives is None or not scores or not is_binary(f1, precision, recall):
        return UNCORRECTED
    mean = float(np.mean(scores))
    factor = variance_factor(mean, positives, test_to_train / (1 + test_to_train))
    # The variance of a share x of n trials is x (1 - x) / n; carried over from J to F1, n is multiplied by this.
    return Trained(factor, positives * 2 / (2 - mean) ** 2)


def share_of_positives(accuracy: Splits, precision: Splits, recall: Splits) -> float | None:
    """The share of positive samples, from what is recorded of the splits; ``None`` if no split tells it.

    With R found and P right among those named, errors are the share p (1 - 2R + R/P) for p positives. Where none is
    named, they are all the positives; where there are no errors, nothing is known.
    """
    shares = []
    for right, named_right, recalled in zip(accuracy, precision, recall, strict=True):
        if right is None or recalled is None:
            continue
        if recalled == 0 and named_right is None:
            shares.append(1 - right)
        elif recalled > 0 and named_right and right < 1:
            shares.append((1 - right) / (1 - 2 * recalled + recalled / named_right))
    return float(np.mean(shares)) if shares else None


def is_binary(f1: Splits, precision: Splits, recall: Splits) -> bool:
    """Whether F1 is that of one class: then it follows from precision and recall. For several it is a mean."""
    defined = [(f, p, r) for f, p, r in zip(f1, precision, recall, strict=True) if f and p and r]
    # F1 is recorded in single precision.
    return all(abs(2 * p * r / (p + r) - f) < 1e-5 for f, p, r in defined) if defined else not any(f1)


def variance_factor(f1: float, positives: float, test_share: float) -> float:
    """Var(T + C) / Var(T - C h/(1 - h)): 1 if training does not matter to F1, and never less."""
    if not (0 < positives < 1 and 0 < f1 < 1):
        return LARGEST if f1 <= 0 else 1.0
    low, high = CLOSEST, FARTHEST
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _Binormal(positives, middle).f1 < f1 else (low, middle)
    tested, trained, both = _Binormal(positives, low).variances()
    back = test_share / (1 - test_share)
    shown = tested + trained * back**2 - 2 * both * back
    return float(np.clip((tested + trained + 2 * both) / shown, 1.0, LARGEST)) if shown > 0 else LARGEST


class _Binormal:
    """Outputs z of a probe: normal with variance 1 in both classes, ``distance`` apart, with mean 0 over all.

    The line of least squares through the labels 0 and 1 is ``positives + slope · z``; it is cut at one half.
    """

    def __init__(self, positives: float, distance: float) -> None:
        self.positives, self.centres = positives, (-distance * positives, distance * (1 - positives))
        self.variance = 1 + positives * (1 - positives) * distance**2
        self.slope = positives * (1 - positives) * distance / self.variance
        self.cut = (0.5 - positives) / self.slope
        # By label: the share of samples that have it, and of those that have it and lie above the cut.
        self.shares = (1 - positives, positives)
        named, hits = (
            share * erfc((self.cut - at) / sqrt(2)) / 2 for share, at in zip(self.shares, self.centres, strict=True)
        )
        self.marks = named + hits + positives
        self.f1 = 2 * hits / self.marks

    def variances(self) -> tuple[float, float, float]:
        """Of a sample's influence on F1 when tested, when trained on, and the covariance of the two."""
        kept, lost = (
            share * exp(-((self.cut - at) ** 2) / 2) / sqrt(2 * pi)
            for share, at in zip(self.shares, self.centres, strict=True)
        )  # the densities at the cut, by label
        by_cut = (self.f1 * (kept + lost) - 2 * lost) / self.marks  # the derivative of F1
        moments = np.zeros(3)
        for label in (0, 1):
            density = self.shares[label] * np.exp(-((GRID - self.centres[label]) ** 2) / 2) / sqrt(2 * pi)
            above = self.cut < GRID
            direct = (2.0 * above * label - self.f1 * (above + label)) / self.marks
            slope = GRID * (label - self.positives - self.slope * GRID) / self.variance
            # The cut is the mean of z, plus (1/2 - positives) / slope: each of the three moves with the sample.
            moved = GRID - (label - self.positives) / self.slope - self.cut * slope / self.slope
            by_way = by_cut * moved
            pairs = ((direct, direct), (by_way, by_way), (direct, by_way))
            moments += [(density * a * b).sum() for a, b in pairs]
        tested, trained, both = moments * (GRID[1] - GRID[0])
        return float(tested), float(trained), float(both)
