"""A few labels: the logistic probe, or ridge for a regression, learns from a small draw of each training part.

A class with too few samples gives all that it has: to refuse it would leave tasks with rare classes without any score.
How many labels were drawn, and how many classes gave fewer than were asked for, is kept with the score.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuco_core.protocol import Protocol
from neuco_core.scoring.probes import Fit, Split
from neuco_core.scoring.probes.knn import checked
from neuco_core.scoring.probes.logistic import logistic_probe
from neuco_core.scoring.probes.ridge import RidgeProbe
from neuco_core.versions import versioned


@versioned(1)
class FewShots:
    """``shots`` labels of each class; of each label of a multilabel task so many samples with it and without it.

    For a regression so many labels in all, one from each of so many equally large parts of the sorted labels.
    """

    def __init__(self, protocol: Protocol) -> None:
        self.shots = checked(protocol, shots=5)["shots"]
        self.protocol = replace(protocol, params={})

    def fit(self, split: Split) -> Fit:
        # The more shots, the more of the same order: the draw of one shot lies in that of five.
        train = np.random.RandomState([self.protocol.seed, split.index]).permutation(split.train)
        y = split.y[train]
        if split.kind == "regression":
            drawn, short = spread_over(y, self.shots), int(len(y) < self.shots)
        else:
            columns = [y[:, 0] == number for number in range(split.classes)] or [
                column == value for column in y.T for value in (1, 0)
            ]
            found = [np.flatnonzero(column)[: self.shots] for column in columns]
            drawn, short = np.unique(np.concatenate(found)), sum(len(rows) < self.shots for rows in found)
        learned = train[drawn]
        # Alone with the tested samples: ridge takes what is not tested for what it learns from.
        rows = np.concatenate([learned, split.test])
        part = np.arange(len(learned)), np.arange(len(learned), len(rows))
        few = replace(split, x=split.x[rows], y=split.y[rows], train=part[0], test=part[1])
        probe = RidgeProbe(self.protocol) if split.kind == "regression" else logistic_probe(self.protocol)
        fit = probe.fit(few)
        return replace(fit, settings={**fit.settings, "labels": len(learned), "classes_short": short})


def spread_over(y: np.ndarray, count: int) -> np.ndarray:
    """One sample from each of ``count`` parts of the sorted labels; of several outputs the mean is sorted.

    Equal labels keep their order, and the first of a part in that order is taken: the order is what draws.
    """
    ranked = np.argsort(y.mean(axis=1), kind="stable")
    return np.sort([part.min() for part in np.array_split(ranked, min(count, len(ranked)))])
