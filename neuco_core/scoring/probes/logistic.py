"""Logistic regression by L-BFGS, its strength chosen inside the training part; scikit-learn does both."""

from __future__ import annotations

import warnings
from threading import Lock

import numpy as np

from neuco_core.protocol import Protocol
from neuco_core.scoring.probes import EstimatorProbe, parameters
from neuco_core.versions import versioned

COSTS = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
FOLDS = 3
USUAL = 1.0  # where there is too little to search on
ITERATIONS = 1000
# At scikit-learn's 1e-4, chances on digits are up to 0.09 from the optimum: benchmarks/torchgeo_bench_parity.py
TOLERANCE = 1e-6
_ONE_AT_A_TIME = Lock()  # what is done about warnings holds for the whole process


@versioned(1)
def logistic_probe(protocol: Protocol) -> EstimatorProbe:
    """``search_samples``: at most so many training samples take part in the search; all take part in the fit."""
    most = parameters(protocol, search_samples=1000)["search_samples"]
    return EstimatorProbe(classifier=lambda: TunedLogistic(most, protocol.seed))


class TunedLogistic:
    """Scale the features, choose C by the log loss over three folds, fit all samples.

    Classes with fewer samples than folds take no part in the search; with fewer than two others, C is 1.
    """

    def __init__(self, most: int, seed: int) -> None:
        self.most, self.seed = most, seed

    def fit(self, x: np.ndarray, y: np.ndarray) -> TunedLogistic:
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GridSearchCV, StratifiedKFold
        from sklearn.preprocessing import StandardScaler

        self.scaler = StandardScaler().fit(x.astype(np.float64))
        x, cost = self.scaler.transform(x.astype(np.float64)), USUAL
        some = np.random.RandomState(self.seed).permutation(len(x))[: self.most]
        classes, counts = np.unique(y[some], return_counts=True)
        some = some[np.isin(y[some], classes[counts >= FOLDS])]
        if (counts >= FOLDS).sum() > 1:
            folds = StratifiedKFold(FOLDS, shuffle=True, random_state=self.seed)
            model = LogisticRegression(max_iter=ITERATIONS)
            search = GridSearchCV(model, {"C": COSTS}, scoring="neg_log_loss", cv=folds, refit=False)
            cost = search.fit(x[some], y[some]).best_params_["C"]
        self.settings_ = {"C": cost}
        self.model = LogisticRegression(C=cost, max_iter=ITERATIONS, tol=TOLERANCE)
        if 2 * len(np.unique(y)) <= len(y):
            self.model.fit(x, y)
        else:  # one label of each class or so, which scikit-learn warns might be a regression
            with _ONE_AT_A_TIME, warnings.catch_warnings():
                warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
                self.model.fit(x, y)
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict_proba(self.scaler.transform(x.astype(np.float64))))
