"""What a probe is.

A probe plugin registers ``Probe(id=…, factory=f)``; ``f(protocol)`` gives an object with

    fit(split: Split) -> Fit

It is called once per split, from several threads at once, and must not change what it is given. It may also have

    words(dim, outputs, train, test) -> int     how many words of torch's generator a split needs (``Split.words``)
    prepare(splits, threads) -> None            called once before the first split with all of them, before anything
                                                is scaled by a training part; so many threads may work

``EstimatorProbe`` makes a probe of anything with ``fit`` and ``predict``, such as a scikit-learn estimator::

    def knn(protocol):
        from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
        return EstimatorProbe(regressor=KNeighborsRegressor, classifier=KNeighborsClassifier)

``parameters`` reads and checks what a protocol says for a probe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np

from neuco_core.errors import ScoreError, UsageError

if TYPE_CHECKING:
    from neuco_core.protocol import Protocol


@dataclass(frozen=True)
class Split:
    """One split as a probe sees it: scaled samples, and which of them to learn from and to predict.

    ``x`` is float32, (n, dim). ``y`` is float32, (n, outputs); for a classification (n, 1) with class numbers.
    A probe that takes long may call ``check`` now and then: it ends the split if the run was interrupted.
    """

    x: np.ndarray
    y: np.ndarray
    train: np.ndarray
    test: np.ndarray
    kind: str
    classes: int
    index: int
    words: np.ndarray | None = None
    stop: Event = field(default_factory=Event)

    def check(self) -> None:
        if self.stop.is_set():
            raise ScoreError("interrupted")


@dataclass(frozen=True)
class Fit:
    """What a probe learned: predictions of the test part, after every epoch or once.

    ``predictions`` is (steps, n_test, outputs), for a classification (steps, n_test, classes) with probabilities;
    the losses are (steps,) or None; ``parameters`` (e.g. weight, bias) have one row per step; ``settings`` is what a
    search inside the training part chose, e.g. a cost. A probe that predicts no labels has ``measures`` instead: what
    it measured on the test part by name, that of its metric among them.
    """

    predictions: np.ndarray = field(default_factory=lambda: np.empty((0, 0, 0)))
    train_loss: np.ndarray | None = None
    test_loss: np.ndarray | None = None
    parameters: Mapping[str, np.ndarray] = field(default_factory=dict)
    settings: Mapping[str, float] = field(default_factory=dict)
    measures: Mapping[str, float] = field(default_factory=dict)


def parameters(protocol: Protocol, **defaults: Any) -> dict[str, Any]:
    """The probe's parameters: the defaults, and what the protocol says instead; unknown ones are errors."""
    for name, value in protocol.params.items():
        if name not in defaults:
            known = ", ".join(sorted(defaults)) or "no parameters"
            what = f"neither the protocol nor its probe {protocol.probe!r} has {name!r}"
            hint = "A protocol has fields such as k, seed, test_size, splitter and lr: see docs/ref/protocols.md"
            raise UsageError(what, where=protocol.name, expected=known, hint=hint)
        if type(value) is not type(defaults[name]) and not (isinstance(defaults[name], float) and type(value) is int):
            expected = f"{type(defaults[name]).__name__}, as in {name}={defaults[name]}"
            raise UsageError(f"bad parameter {name!r}", where=protocol.name, expected=expected, got=repr(value))
    return {**defaults, **protocol.params}


class EstimatorProbe:
    """Makes a new estimator for every split. Both makers take no arguments; one of them may be missing.

    If the estimator has ``settings_`` after its fit, what it found for itself, they are kept with the score. A training
    part of one class only needs no estimator: that class gets 1. Of several labels each has a classifier of its own,
    which tells it from all others; its settings have the label's number behind the name.
    """

    def __init__(self, regressor: Callable[[], Any] | None = None, classifier: Callable[[], Any] | None = None) -> None:
        self._make = {"regression": regressor, "classification": classifier}

    def fit(self, split: Split) -> Fit:
        make = self._make["classification" if split.kind == "multilabel" else split.kind]
        if make is None:
            raise ScoreError(f"this probe has no estimator for {split.kind}")
        x, y, unseen = split.x[split.train], split.y[split.train], split.x[split.test]
        if split.kind == "regression":
            model = make().fit(x, y[:, 0] if y.shape[1] == 1 else y)
            out = np.asarray(model.predict(unseen), np.float64).reshape(1, len(unseen), -1)
            return Fit(out, settings=getattr(model, "settings_", {}))
        if split.kind == "classification":
            chances, settings = _learned(make, x, y[:, 0], unseen, split.classes)
            return Fit(chances[None], settings=settings)
        found = []
        for label in y.T:
            split.check()
            found.append(_learned(make, x, label, unseen, 2))
        each = {f"{name}.{place}": value for place, (_, own) in enumerate(found) for name, value in own.items()}
        return Fit(np.stack([chances[:, 1] for chances, _ in found], axis=1)[None], settings=each)


def _learned(
    make: Callable[[], Any], x: np.ndarray, y: np.ndarray, unseen: np.ndarray, count: int
) -> tuple[np.ndarray, dict[str, float]]:
    """The probabilities of ``count`` classes, 0 for one that the training part lacks, and the estimator's settings."""
    classes = y.astype(np.int64)
    if (classes == classes[0]).all():
        return np.eye(count)[np.full(len(unseen), classes[0])], {}
    model = make().fit(x, classes)
    out = np.zeros((len(unseen), count))
    if hasattr(model, "predict_proba"):
        out[:, model.classes_] = model.predict_proba(unseen)
    elif hasattr(model, "decision_function"):
        out[:, model.classes_] = from_scores(model.decision_function(unseen))
    else:
        out[np.arange(len(unseen)), model.predict(unseen)] = 1
    return out, getattr(model, "settings_", {})


def from_scores(scores: np.ndarray) -> np.ndarray:
    """Numbers between 0 and 1 in the same order as the scores: the winner stays, a score of 0 in two classes is ½."""
    if scores.ndim == 1:
        scores = np.stack([-scores / 2, scores / 2], axis=1)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
