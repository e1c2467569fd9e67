"""Ridge regression in closed form; how strong it is, is chosen in the training part by generalised cross-validation.

Features are centred and scaled by the training part. The Gram matrix of all samples is made once and each split
takes its test rows away from it, which costs a tenth of making it anew, unless these are so large that it would lose
digits: nothing that is learned depends on a test row.

A feature that is nearly constant, such as a unit of a network that rarely fires, is scaled up by a spread that tells
nothing of the test part, and one test sample there outweighs all others. So features whose variance in the training
part is carried by fewer than ``CARRIERS`` samples are left out, and a test value that is farther from the mean than
``REACH`` times the farthest training value counts as that far. Dense features are not touched by either.

The indicator of a rare class hardly ever reaches one half, however well its samples are told from others. So a class
begins where as many training samples lie above as belong to it, each predicted as if it had been left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neuco_core.protocol import Protocol
from neuco_core.scoring.probes import Fit, Split, from_scores, parameters
from neuco_core.versions import versioned

# Strengths, relative to the number of training samples: from next to none to next to nothing left.
STRENGTHS = np.logspace(-7, 4, 45)
CARRIERS = 5.0
LEAST_SHARE = 0.05  # of few training samples this share will do: of 40, two
REACH = 2.0
CONSTANT = 1e-11  # a spread of this size, relative to the mean, is rounding: values are float32, sums float64
LOSSLESS = 0.01  # of a feature's sum of squares must be left without the test rows, or more than two digits are gone
ROWS = 1024  # at a time, so that they stay in the processor's cache


class Spectrum(NamedTuple):
    """A ridge problem along the axes on which it falls apart.

    Per axis its size and each target's energy along it (``parts``); ``rest`` is the energy along none. Weights for
    the scaled features are ``axes @ (projected / (sizes + strength))``.
    """

    sizes: np.ndarray
    parts: np.ndarray
    rest: np.ndarray
    axes: np.ndarray
    projected: np.ndarray


@versioned(3)
class RidgeProbe:
    """For a classification it learns the indicator of each class."""

    def __init__(self, protocol: Protocol) -> None:
        parameters(protocol)
        self._x: np.ndarray = np.empty((0, 0))
        self._gram: np.ndarray = np.empty((0, 0))  # about the mean of all samples, if these are more than the features

    def prepare(self, splits: Sequence[Split], threads: int) -> None:
        self._x = x = splits[0].x
        if len(x) > x.shape[1]:
            self._mean = x.mean(axis=0, dtype=np.float64)
            centred = x - self._mean
            self._gram = centred.T @ centred

    def fit(self, split: Split) -> Fit:
        if not self._x.size:
            self.prepare([split], 1)
        targets = split.y.astype(np.float64)
        if split.classes:
            targets = (targets == np.arange(split.classes)).astype(np.float64)
        targets = targets[split.train]
        y_mean = targets.mean(axis=0)
        train = self._x[split.train].astype(np.float64)
        center, count = train.mean(axis=0), len(train)
        train -= center
        variance, steady, far = _spread(train, center)
        factor = np.where(steady, 0.0, 1 / np.sqrt(np.where(steady, 1.0, variance)))
        centred = targets - y_mean
        if count > train.shape[1]:
            gram, lossless = self._gram, False
            if count + len(split.test) == len(self._x):  # else samples in neither part would stay in it
                unseen, shift = self._x[split.test] - self._mean, center - self._mean
                gram = self._gram - unseen.T @ unseen - count * np.outer(shift, shift)
                lossless = ((np.diag(gram) > LOSSLESS * np.diag(self._gram)) | steady).all()
            gram = (gram if lossless else train.T @ train) * np.outer(factor, factor)
            sizes, axes = np.linalg.eigh(gram)
            kept = sizes > 1e-10 * max(sizes[-1], 1e-300)
            sizes, axes = sizes[kept], axes[:, kept]
            along = axes.T @ (factor[:, None] * (train.T @ centred))
            parts = along**2 / sizes[:, None]
        else:  # fewer samples than features: the same from the rows themselves
            rows = train * factor
            sizes, sides = np.linalg.eigh(rows @ rows.T)
            kept = sizes > 1e-10 * max(sizes[-1], 1e-300)
            sizes, sides = sizes[kept], sides[:, kept]
            along, axes = sides.T @ centred, rows.T @ sides
            parts = along**2
        rest = np.maximum((centred**2).sum(axis=0) - parts.sum(axis=0), 0.0)
        spectrum = Spectrum(sizes, parts, rest, axes, along)
        weight, freedom = _solve(spectrum, count)
        weight *= factor[:, None]
        out = np.clip(self._x[split.test] - center, -far, far) @ weight + y_mean
        if split.kind != "regression":
            # The mean stays: a left-out sample that moved it would put all of a class on the other side of the rest.
            left_out = targets - (centred - train @ weight) * (count / (freedom + 1))
            out -= _cuts(left_out, targets.sum(axis=0).astype(int))
            # Twice, so that two classes differ by what separates them from the cut.
            out = from_scores(2 * out) if split.classes else out + 0.5
        return Fit(out[None])


def _spread(train: np.ndarray, center: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The variance of features, which of them say nothing, and how far from the mean test values count.

    Those that are constant say nothing, and those that too few samples carry: (Σd²)² / Σd⁴ is the number of samples
    that carry the variance, n if all are as far from the mean, 1 if one is. ``train`` is centred.
    """
    total, fourth, most = np.zeros((3, train.shape[1]))
    for start in range(0, len(train), ROWS):
        squares = np.square(train[start : start + ROWS])
        total += squares.sum(axis=0)
        fourth += np.einsum("ij,ij->j", squares, squares)
        np.maximum(most, squares.max(axis=0), out=most)
    variance = total / len(train)
    constant = variance <= (CONSTANT * center) ** 2
    carriers = min(CARRIERS, LEAST_SHARE * len(train))
    return variance, constant | (total**2 < carriers * fourth), REACH * np.sqrt(most)


def _cuts(predicted: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Of each class the value above which as many predictions lie as it has samples; one half if it has all or none."""
    ranked, rows = np.sort(predicted, axis=0), len(predicted)
    cuts = np.full(len(counts), 0.5)
    for place, count in enumerate(counts):
        if 0 < count < rows:
            cuts[place] = ranked[rows - count - 1 : rows - count + 1, place].mean()
    return cuts


def _solve(spectrum: Spectrum, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights (features, outputs), each output with the strength that generalised cross-validation prefers.

    With them the degrees of freedom that they leave: by count / freedom residuals grow if their sample is left out.
    """
    strengths = STRENGTHS * count
    shrink = strengths[:, None] / (spectrum.sizes + strengths[:, None])
    residual = spectrum.rest + shrink**2 @ spectrum.parts
    freedom = count - 1 - (1 - shrink).sum(axis=1)
    # With next to no degrees of freedom left, the quotient is rounding noise; the strongest always has some.
    usable = freedom > 0.01 * count
    usable[-1] = True
    freedom = np.maximum(freedom, 1e-9)
    best = np.where(usable[:, None], residual / freedom[:, None] ** 2, np.inf).argmin(axis=0)
    weight = spectrum.axes @ (spectrum.projected / (spectrum.sizes[:, None] + strengths[best]))
    return np.asarray(weight), freedom[best]
