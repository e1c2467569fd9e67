"""A support vector machine with a polynomial kernel; its degree and cost are searched inside the training part.

For each degree the cost rises tenfold as long as that helps, so the best one nearly always lies inside the range: the
steps behind the best, which are the slowest by far, are not taken. Degree 1 belongs to it: without it, a task that is
linear makes a non-linear probe look worse than a linear one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from neuco_core.protocol import Protocol
from neuco_core.scoring.probes import EstimatorProbe, parameters
from neuco_core.versions import versioned

DEGREES = (1, 2, 3, 4)
COSTS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
PATIENCE = 2  # costs in a row that make it worse. Below the first that learns anything, scores jitter
FOLDS = 3


@versioned(2)
def svm_probe(protocol: Protocol) -> EstimatorProbe:
    """``search_samples``: at most so many training samples take part in the search; all take part in the fit."""
    most = parameters(protocol, search_samples=1000)["search_samples"]

    def regressor() -> TunedMachine:
        from sklearn.svm import SVR

        # Labels are scaled to [0, 1]; the default tube of 0.1 would hide a fifth of that.
        return TunedMachine(SVR(coef0=1.0, epsilon=0.01, tol=0.01), "neg_mean_squared_error", most, protocol.seed)

    def classifier() -> TunedMachine:
        from sklearn.svm import SVC

        return TunedMachine(SVC(coef0=1.0, tol=0.01), "f1_macro", most, protocol.seed)

    return EstimatorProbe(regressor, classifier)


class TunedMachine:
    """Scale the features, search on a part of the samples, fit the best to all of them."""

    def __init__(self, machine: Any, scoring: str, most: int, seed: int) -> None:
        self.machine, self.scoring, self.most, self.seed = machine, scoring, most, seed
        self.models: list[Any] = []
        self.classes_: np.ndarray = np.array([])

    @property
    def settings_(self) -> dict[str, float]:
        """What was found: cost and degree, with the output's number behind the name if there are several."""
        return {
            name + (f".{place}" if len(self.models) > 1 else ""): model.get_params()[name]
            for place, model in enumerate(self.models)
            for name in ("C", "degree")
        }

    def fit(self, x: np.ndarray, y: np.ndarray) -> TunedMachine:
        from sklearn.preprocessing import StandardScaler

        self.scaler = StandardScaler().fit(x)
        x = self.scaler.transform(x).astype(np.float64)
        some = np.random.RandomState(self.seed).permutation(len(x))[: self.most]
        gamma = 1 / (x.shape[1] * (float(x[some].var()) or 1.0))  # what scikit-learn calls "scale"
        products = gamma * (x[some] @ x[some].T) + self.machine.coef0
        common = {**self.machine.get_params(), "kernel": "poly", "gamma": gamma}
        targets = y.T if y.ndim == 2 else [y]
        found = [self._search(products, target[some]) for target in targets]
        self.models = [
            type(self.machine)(**{**common, **own}).fit(x, target) for own, target in zip(found, targets, strict=True)
        ]
        self.classes_ = getattr(self.models[0], "classes_", self.classes_)
        return self

    def _search(self, products: np.ndarray, y: np.ndarray) -> dict[str, float]:
        """The best cost and degree; nothing if there is too little to search on."""
        from sklearn.model_selection import KFold, StratifiedKFold

        classes = self.scoring.startswith("f1")
        if (np.unique(y, return_counts=True)[1].min() if classes else len(y) // 2) < FOLDS:
            return {}
        folds = (StratifiedKFold if classes else KFold)(FOLDS, shuffle=True, random_state=self.seed)
        parts = list(folds.split(products, y))
        found = [(*self._walk(products**degree, y, parts), degree) for degree in DEGREES]
        _, cost, degree = max(found, key=lambda item: item[0])  # the lowest degree of equals
        return {"C": cost, "degree": degree}

    def _walk(self, kernel: np.ndarray, y: np.ndarray, parts: list[Any]) -> tuple[float, float]:
        """The best score over the folds, and its cost."""
        from sklearn.model_selection import cross_val_score

        machine = type(self.machine)(**{**self.machine.get_params(), "kernel": "precomputed"})
        best, cost, worse = -np.inf, COSTS[0], 0
        for candidate in COSTS:
            machine.set_params(C=candidate)
            mean = float(cross_val_score(machine, kernel, y, scoring=self.scoring, cv=parts).mean())
            if mean > best:
                best, cost, worse = mean, candidate, 0
            elif mean < best:
                worse += 1
            if worse == PATIENCE:
                break
        return best, cost

    def predict(self, x: np.ndarray) -> np.ndarray:
        x = self.scaler.transform(x)
        return np.stack([model.predict(x) for model in self.models], axis=1)

    def decision_function(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.models[0].decision_function(self.scaler.transform(x)))
