"""Retrieval against a loop, scikit-learn and faiss; several positives, several labels, and what has no answer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from neuco_core.errors import NotApplicableError, PluginError, UsageError
from neuco_core.protocol import load_protocol
from neuco_core.scoring import metrics
from neuco_core.scoring.probes import Fit, Split
from neuco_core.scoring.probes.retrieval import Retrieval
from neuco_core.scoring.scorer import score
from neuco_core.scoring.splits import shuffle
from tests.scoring.make import label, problem

EMBEDDINGS, SIGNAL = problem(200, dim=6, outputs=3, noise=0.1)
X = EMBEDDINGS.values
CLASSES = SIGNAL.argmax(axis=1)
MARKS = (SIGNAL > 0.5).astype(int)  # some samples have no label at all


def naive(queries: np.ndarray, wanted: list[np.ndarray], gallery: np.ndarray, metric: str, at: int) -> list[float]:
    """Mean average precision, precision and recall: query by query, rank by rank."""
    found = []
    for query, relevant in zip(queries.astype(float), wanted, strict=True):
        if not relevant.any():
            continue
        rows = gallery.astype(float)
        if metric == "cosine":
            distance = 1 - rows @ query / np.linalg.norm(rows, axis=1) / np.linalg.norm(query)
        else:
            distance = np.linalg.norm(rows - query, axis=1)
        ranked = relevant[np.argsort(distance, kind="stable")]
        precisions = [ranked[: rank + 1].mean() for rank in np.flatnonzero(ranked)]
        found.append((np.mean(precisions), ranked[:at].mean(), ranked[:at].sum() / ranked.sum()))
        assert average_precision_score(relevant, -distance) == pytest.approx(found[-1][0], abs=1e-9)
    return [float(value) for value in np.mean(found, axis=0)]


@pytest.mark.parametrize("metric", ["cosine", "l2"])
@pytest.mark.parametrize("kind", ["two", "three", "multilabel"])
def test_the_values_are_those_of_a_loop(metric: str, kind: str) -> None:
    y = {"two": CLASSES % 2, "three": CLASSES, "multilabel": MARKS}[kind]
    of_task = "multilabel" if kind == "multilabel" else "classification"
    rules = load_protocol(f"retrieval+k=3,at=7,metric={metric}")
    got = score(EMBEDDINGS, label(y, of_task), rules)
    assert (got.metric, list(got.metrics)) == ("map", ["precision_at_7", "recall_at_7"])
    for index, (train, test) in enumerate(shuffle(200, rules)):
        if y.ndim == 1:
            wanted = [y[train] == y[row] for row in test]
        else:
            wanted = [(y[train] & y[row]).any(axis=1) for row in test]
        values = got.per_split[index], *(column[index] for column in got.metrics.values())
        assert values == pytest.approx(naive(X[test], wanted, X[train], metric, 7), abs=1e-6)
        assert got.settings["queries"][index] == sum(relevant.any() for relevant in wanted)


def test_the_order_is_that_of_faiss() -> None:
    import faiss

    rules = load_protocol("retrieval+k=3")
    got = score(EMBEDDINGS, label(CLASSES, "classification"), rules)
    x = X / np.linalg.norm(X, axis=1, keepdims=True)
    for index, (train, test) in enumerate(shuffle(200, rules)):
        flat = faiss.IndexFlatIP(6)
        flat.add(x[train])
        _, order = flat.search(x[test], len(train))
        ranked = CLASSES[train[order]] == CLASSES[test][:, None]
        ranks = np.arange(1, len(train) + 1)
        expected = ((ranked.cumsum(axis=1) / ranks * ranked).sum(axis=1) / ranked.sum(axis=1)).mean()
        assert got.per_split[index] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", ["classification", "multilabel"])
def test_a_query_may_be_the_mean_of_several_positives(kind: str) -> None:
    """Each tested sample serves once for a label; what does not fill a query is left over."""
    y = CLASSES if kind == "classification" else MARKS
    rules = load_protocol("retrieval+k=3,positives=4,metric=l2")
    one, several = (score(EMBEDDINGS, label(y, kind), text) for text in ("retrieval+k=3,metric=l2", rules))
    if kind == "classification":  # of several labels, less is relevant to a query for one of them
        assert several.mean > one.mean, "a mean of positives lies nearer to the middle of its class"
    for index, (train, test) in enumerate(shuffle(200, rules)):
        split = Split(X, y.astype(np.float32).reshape(200, -1), train, test, kind, 3 if y.ndim == 1 else 0, index)
        marks = np.eye(3, dtype=np.float32)[y] if y.ndim == 1 else y.astype(np.float32)
        groups, wanted = Retrieval(rules)._drawn(split, marks)
        assert len(groups) == sum(marks[test].sum(axis=0) // 4) == several.settings["queries"][index]
        for members, own in zip(groups, wanted, strict=True):
            assert set(members) <= set(test)
            assert (marks[members] @ own == 1).all()
        queries = np.stack([X[members].astype(float).mean(axis=0) for members in groups])
        relevant = [marks[train] @ own > 0 for own in wanted]
        assert several.per_split[index] == pytest.approx(naive(queries, relevant, X[train], "l2", 10)[0], abs=1e-6)


def test_what_has_no_answer_in_the_gallery_is_no_query() -> None:
    rows = np.arange(20)
    y = np.where(rows < 2, 1, 0).astype(np.float32)[:, None]  # class 1 is tested, and is not in the gallery
    split = Split(X[:20], y, rows[2:18], np.array([0, 1, 18]), "classification", 2, 0)
    fit = Retrieval(load_protocol("retrieval")).fit(split)
    assert (fit.measures["map"], fit.settings["queries"]) == (1.0, 1)
    alone = Split(X[:20], y, rows[2:18], rows[:2], "classification", 2, 0)
    fit = Retrieval(load_protocol("retrieval")).fit(alone)
    assert math.isnan(fit.measures["map"])
    assert fit.settings["queries"] == 0


def test_more_positives_than_a_test_part_has_are_no_score() -> None:
    with pytest.raises(Exception, match="map is defined for none of the splits"):
        score(EMBEDDINGS, label(CLASSES, "classification"), "retrieval+k=2,positives=50")


def test_a_regression_has_nothing_to_be_found() -> None:
    with pytest.raises(NotApplicableError, match="'retrieval' is not for regression"):
        score(EMBEDDINGS, label(SIGNAL[:, 0]), "retrieval")


def test_the_tasks_metric_gives_way() -> None:
    got = score(EMBEDDINGS, label(CLASSES, "classification"), "retrieval+k=2", metric="accuracy")
    assert got.metric == "map"
    assert got.confusion is None


def test_the_metric_alone_ranks_the_labels_of_each_sample() -> None:
    relevant = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    nearness = np.array([[0.9, 0.5, 0.1], [1, 2, 3], [3, 2, 1]])
    expected = np.mean([(1 + 2 / 3) / 2, 1 / 2])
    assert metrics.mean_average_precision(relevant, nearness) == pytest.approx(expected)
    assert metrics.mean_average_precision(np.array([2, 0]), nearness[:2]) == pytest.approx(1 / 3)


def test_a_probe_that_measures_something_else_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Retrieval, "fit", lambda self, split: Fit(measures={"mrr": 1.0}))
    with pytest.raises(PluginError, match="did not measure its metric; expected map, got mrr"):
        score(EMBEDDINGS, label(CLASSES, "classification"), "retrieval+k=2")


@pytest.mark.parametrize("name", ["at", "positives"])
def test_a_wrong_parameter_is_named(name: str) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        score(EMBEDDINGS, label(CLASSES, "classification"), f"retrieval+{name}=0")


def test_a_variant_of_k_has_so_many_splits_as_in_every_protocol() -> None:
    got = score(EMBEDDINGS, label(CLASSES, "classification"), "retrieval+k=20")
    assert len(got.per_split) == 20
    assert list(got.metrics) == ["precision_at_10", "recall_at_10"]
