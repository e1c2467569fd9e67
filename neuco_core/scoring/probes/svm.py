"""A support vector machine with a polynomial kernel; its degree and cost are searched inside the training part."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuco_core.protocol import Protocol
from neuco_core.scoring.probes import parameters
from neuco_core.scoring.probes.estimator import EstimatorProbe
from neuco_core.versions import versioned

GRID = {"degree": (2, 3), "C": (0.001, 0.01, 0.1, 1.0)}
FOLDS = 3


@versioned(1)
def svm_probe(protocol: Protocol) -> EstimatorProbe:
    """``search_samples``: at most so many training samples take part in the search; all take part in the fit."""
    most = parameters(protocol, search_samples=1000)["search_samples"]

    def regressor() -> Tuned:
        from sklearn.svm import SVR

        # Labels are scaled to [0, 1]; the default tube of 0.1 would hide a fifth of that.
        return Tuned(
            SVR(kernel="poly", coef0=1.0, epsilon=0.01, tol=0.01), "neg_mean_squared_error", most, protocol.seed
        )

    def classifier() -> Tuned:
        from sklearn.svm import SVC

        return Tuned(SVC(kernel="poly", coef0=1.0, tol=0.01), "f1_macro", most, protocol.seed)

    return EstimatorProbe(regressor, classifier)


class Tuned:
    """Scale the features, search the grid on a part of the samples, fit the best to all of them."""

    def __init__(self, machine: Any, scoring: str, most: int, seed: int) -> None:
        self.machine, self.scoring, self.most, self.seed = machine, scoring, most, seed
        self.models: list[Any] = []
        self.classes_: np.ndarray = np.array([])

    def fit(self, x: np.ndarray, y: np.ndarray) -> Tuned:
        from sklearn.preprocessing import StandardScaler

        self.scaler = StandardScaler().fit(x)
        x = self.scaler.transform(x)
        some = np.random.RandomState(self.seed).permutation(len(x))[: self.most]
        targets = y.T if y.ndim == 2 else [y]
        self.models = [self._search(x[some], target[some]).fit(x, target) for target in targets]
        self.classes_ = getattr(self.models[0], "classes_", self.classes_)
        return self

    def _search(self, x: np.ndarray, y: np.ndarray) -> Any:
        """The machine with the best setting of the grid, or as it is if there is too little to search on."""
        from sklearn.base import clone
        from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

        classes = self.scoring.startswith("f1")
        if (np.unique(y, return_counts=True)[1].min() if classes else len(y) // 2) < FOLDS:
            return clone(self.machine)
        folds = (StratifiedKFold if classes else KFold)(FOLDS, shuffle=True, random_state=self.seed)
        return clone(GridSearchCV(self.machine, GRID, scoring=self.scoring, cv=folds).fit(x, y).best_estimator_)

    def predict(self, x: np.ndarray) -> np.ndarray:
        x = self.scaler.transform(x)
        return np.stack([model.predict(x) for model in self.models], axis=1)

    def decision_function(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.models[0].decision_function(self.scaler.transform(x)))
