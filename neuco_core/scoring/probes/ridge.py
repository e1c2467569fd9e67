"""Ridge regression in closed form; how strong it is, is chosen in the training part by generalised cross-validation.

Features are centred and scaled by the training part. The Gram matrix of all samples is made once and each split
takes its test rows away from it, which costs a tenth of making it anew.

A feature that is nearly constant, such as a unit of a network that rarely fires, is scaled up by a spread that tells
nothing of the test part, and one test sample there outweighs all others. So features whose variance in the training
part is carried by fewer than ``CARRIERS`` samples are left out, and a test value that is farther from the mean than
``REACH`` times the farthest training value counts as that far. Dense features are not touched by either.
"""

from __future__ import annotations

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


@versioned(2)
class RidgeProbe:
    """For a classification it learns the indicator of each class."""

    def __init__(self, protocol: Protocol) -> None:
        parameters(protocol)
        self._x: np.ndarray = np.empty((0, 0))
        self._gram: np.ndarray | None = None

    def prepare(self, x: np.ndarray) -> None:
        self._x = x.astype(np.float64)
        self._x -= self._x.mean(axis=0)
        if len(x) > x.shape[1]:
            self._gram = self._x.T @ self._x

    def fit(self, split: Split) -> Fit:
        if not self._x.size:
            self.prepare(split.x)
        x, targets = self._x, split.y.astype(np.float64)
        if split.classes:
            targets = (targets == np.arange(split.classes)).astype(np.float64)
        train = x[split.train]
        center, y_mean = train.mean(axis=0), targets[split.train].mean(axis=0)
        steady, far = _support(train, center)
        centred, count = targets - y_mean, len(split.train)
        if self._gram is not None and count > x.shape[1]:
            test = x[split.test]
            gram = self._gram - test.T @ test - count * np.outer(center, center)
            factor = _inverse_root(np.diag(gram) / count, np.diag(self._gram) / len(x), steady)
            # Zeros for the test rows instead of a copy without them; the targets are centred, so x need not be.
            seen = np.zeros_like(centred)
            seen[split.train] = centred[split.train]
            sizes, axes = np.linalg.eigh(gram * np.outer(factor, factor))
            kept = sizes > 1e-10 * max(sizes[-1], 1e-300)
            sizes, axes = sizes[kept], axes[:, kept]
            along = axes.T @ (factor[:, None] * (x.T @ seen))
            parts, energy = along**2 / sizes[:, None], (seen**2).sum(axis=0)
        else:  # fewer samples than features: the same from the rows themselves
            train, seen = x[split.train] - center, centred[split.train]
            factor = _inverse_root((train**2).mean(axis=0), (x**2).mean(axis=0), steady)
            rows = train * factor
            sizes, sides = np.linalg.eigh(rows @ rows.T)
            kept = sizes > 1e-10 * max(sizes[-1], 1e-300)
            sizes, sides = sizes[kept], sides[:, kept]
            along, axes = sides.T @ seen, rows.T @ sides
            parts, energy = along**2, (seen**2).sum(axis=0)
        rest = np.maximum(energy - parts.sum(axis=0), 0.0)
        spectrum = Spectrum(sizes, parts, rest, axes, along)
        weight = factor[:, None] * _solve(spectrum, count)
        out = np.clip(x[split.test] - center, -far, far) @ weight + y_mean
        if split.classes:
            out = from_scores(2 * out)  # twice, so that two classes differ by what separates them from one half
        return Fit(out[None])


def _support(train: np.ndarray, center: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which features too few samples carry, and how far from the mean test values count; ``train`` is used up.

    (Σd²)² / Σd⁴ is the number of samples that carry the variance: n if all are as far from the mean, 1 if one is.
    """
    train -= center
    squares = np.square(train, out=train)
    carriers = squares.sum(axis=0) ** 2
    least = min(CARRIERS, LEAST_SHARE * len(train))
    return carriers < least * np.einsum("ij,ij->j", squares, squares), REACH * np.sqrt(squares.max(axis=0))


def _inverse_root(variance: np.ndarray, everywhere: np.ndarray, steady: np.ndarray) -> np.ndarray:
    """1 / std; 0 for a ``steady`` feature and one that is constant in the training part but for rounding."""
    steady = steady | (variance <= 1e-12 * everywhere)
    return np.where(steady, 0.0, 1 / np.sqrt(np.where(steady, 1.0, variance)))


def _solve(spectrum: Spectrum, count: int) -> np.ndarray:
    """Weights (features, outputs), each output with the strength that generalised cross-validation prefers."""
    strengths = STRENGTHS * count
    shrink = strengths[:, None] / (spectrum.sizes + strengths[:, None])
    residual = spectrum.rest + shrink**2 @ spectrum.parts
    freedom = count - 1 - (1 - shrink).sum(axis=1)
    # With next to no degrees of freedom left, the quotient is rounding noise; the strongest always has some.
    usable = freedom > 0.01 * count
    usable[-1] = True
    criterion = np.where(usable[:, None], residual / np.maximum(freedom, 1e-9)[:, None] ** 2, np.inf)
    best = strengths[criterion.argmin(axis=0)]
    return np.asarray(spectrum.axes @ (spectrum.projected / (spectrum.sizes[:, None] + best)))
