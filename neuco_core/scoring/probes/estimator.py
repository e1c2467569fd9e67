"""A probe from anything with ``fit`` and ``predict``, such as a scikit-learn estimator.

def knn(protocol):
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
    return EstimatorProbe(regressor=KNeighborsRegressor, classifier=KNeighborsClassifier)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuco_core.errors import ScoreError
from neuco_core.scoring.probes import Fit, Split


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
    """The probabilities of ``count`` classes, and what the estimator found for itself."""
    classes = y.astype(np.int64)
    if (classes == classes[0]).all():
        return np.eye(count)[np.full(len(unseen), classes[0])], {}
    model = make().fit(x, classes)
    return _probabilities(model, unseen, count), getattr(model, "settings_", {})


def _probabilities(model: Any, unseen: np.ndarray, classes: int) -> np.ndarray:
    """By class; a class that the training part lacks gets 0."""
    out = np.zeros((len(unseen), classes))
    if hasattr(model, "predict_proba"):
        out[:, model.classes_] = model.predict_proba(unseen)
    elif hasattr(model, "decision_function"):
        out[:, model.classes_] = from_scores(model.decision_function(unseen))
    else:
        out[np.arange(len(unseen)), model.predict(unseen)] = 1
    return out


def from_scores(scores: np.ndarray) -> np.ndarray:
    """Numbers between 0 and 1 in the same order as the scores: the winner stays, a score of 0 in two classes is ½."""
    if scores.ndim == 1:
        scores = np.stack([-scores / 2, scores / 2], axis=1)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
