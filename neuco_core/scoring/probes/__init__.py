"""What a probe is.

A probe plugin registers ``Probe(id=…, factory=f)``; ``f(protocol)`` gives an object with

    fit(split: Split) -> Fit

It is called once per split, from several threads at once, and must not change what it is given. It may also have

    words(dim, outputs, train, test) -> int     how many words of torch's generator a split needs (``Split.words``)
    prepare(table) -> None                      called once before the first split

For anything that looks like a scikit-learn estimator, ``neuco_core.scoring.probes.estimator`` has it all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Split:
    """One split as a probe sees it: scaled samples, and which of them to learn from and to predict.

    ``x`` is float32, (n, dim). ``y`` is float32, (n, outputs); for a classification (n, 1) with class numbers.
    """

    x: np.ndarray
    y: np.ndarray
    train: np.ndarray
    test: np.ndarray
    kind: str
    classes: int
    index: int
    words: np.ndarray | None = None


@dataclass(frozen=True)
class Fit:
    """What a probe learned: predictions of the test part, after every epoch or once.

    ``predictions`` is (steps, n_test, outputs), for a classification (steps, n_test, classes) with probabilities;
    the losses are (steps,) or None; ``parameters`` (e.g. weight, bias) have one row per step.
    """

    predictions: np.ndarray
    train_loss: np.ndarray | None = None
    test_loss: np.ndarray | None = None
    parameters: Mapping[str, np.ndarray] = field(default_factory=dict)


class ProbeLike(Protocol):
    """The part of the contract that every probe must fulfil."""

    def fit(self, split: Split) -> Fit: ...
