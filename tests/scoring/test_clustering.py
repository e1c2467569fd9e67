"""Clusters against scikit-learn written out, and test parts that say nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import v_measure_score

from neuco_core.errors import NotApplicableError
from neuco_core.protocol import load_protocol
from neuco_core.scoring.metrics import v_measure
from neuco_core.scoring.probes import Split
from neuco_core.scoring.probes.clustering import Clustering
from neuco_core.scoring.scorer import score
from neuco_core.scoring.splits import shuffle
from tests.scoring.make import embed, label

RNG = np.random.default_rng(0)
Y = RNG.permutation(np.arange(300) % 5)
X = (RNG.standard_normal((5, 8))[Y] * 3 + RNG.standard_normal((300, 8))).astype(np.float32)


def test_the_clusters_are_scikit_learns() -> None:
    rules = load_protocol("clustering+k=3")
    got = score(embed(X), label(Y, "classification"), rules)
    assert (got.metric, list(got.metrics)) == ("v_measure", ["adjusted_mutual_information"])
    for value, (train, test) in zip(got.per_split, shuffle(300, rules), strict=True):
        model = KMeans(5, n_init=3, random_state=42).fit(X[train].astype(float))
        assert value == pytest.approx(v_measure_score(Y[test], model.predict(X[test].astype(float))), abs=1e-6)


def test_groups_by_other_names_are_the_same() -> None:
    assert v_measure(Y, np.eye(5)[(Y + 2) % 5]) == 1
    assert v_measure(Y, np.eye(5)[np.zeros(300, int)]) == 0


def test_few_samples_agree_by_chance_and_the_adjusted_measure_does_not() -> None:
    noise = score(embed(RNG.standard_normal((300, 4))), label(Y, "classification"), "clustering")
    assert noise.mean > 0.1 > abs(np.mean(noise.metrics["adjusted_mutual_information"]))


def test_a_test_part_of_one_class_has_no_agreement() -> None:
    rows = np.arange(300)
    split = Split(X, Y[:, None].astype(np.float32), rows[Y != 0], rows[Y == 0], "classification", 5, 0)
    measures = Clustering(load_protocol("clustering")).fit(split).measures
    assert all(math.isnan(value) for value in measures.values())


def test_fewer_different_samples_than_classes() -> None:
    got = score(embed(np.tile(X[:2], (150, 1))), label(Y, "classification"), "clustering+k=2")
    assert 0 <= got.mean < 0.3


@pytest.mark.parametrize("kind", ["regression", "multilabel"])
def test_only_classes_have_clusters(kind: str) -> None:
    values = X[:, 0] if kind == "regression" else (X[:, :2] > 0).astype(int)
    with pytest.raises(NotApplicableError, match=f"'clustering' is not for {kind}"):
        score(embed(X), label(values, kind), "clustering")
