"""Nearest neighbours against scikit-learn, faiss and a loop; ties, blocks and shares of the work."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from neuco_core.errors import UsageError
from neuco_core.protocol import load_protocol
from neuco_core.scoring.probes import Split, knn
from neuco_core.scoring.probes.knn import NearestNeighbors
from neuco_core.scoring.scorer import score
from neuco_core.scoring.splits import shuffle
from tests.scoring.make import embed, label, problem

RULES = load_protocol("knn+k=3")
X = problem(300, dim=6)[0].values
SIGNAL = problem(300, dim=6, outputs=3)[1]
METRICS = {"cosine": "cosine", "l2": "euclidean"}


def split_of(x: np.ndarray, y: np.ndarray, kind: str, train: np.ndarray, test: np.ndarray, index: int = 0) -> Split:
    classes = int(y.max()) + 1 if kind == "classification" else 0
    return Split(x, y.astype(np.float32).reshape(len(x), -1), train, test, kind, classes, index)


def predicted(text: str, y: np.ndarray, kind: str, x: np.ndarray = X) -> list[tuple[Split, np.ndarray]]:
    """What the probe predicts for the test part of each split."""
    rules = load_protocol(text)
    splits = [split_of(x, y, kind, *parts, index) for index, parts in enumerate(shuffle(len(x), rules))]
    probe = NearestNeighbors(rules)
    probe.prepare(splits, 2)
    return [(split, probe.fit(split).predictions[0]) for split in splits]


@pytest.mark.parametrize(
    ("metric", "weights", "count"),
    [*itertools.product(METRICS, ("uniform", "distance"), (1, 5)), ("l2", "uniform", 999)],
)
@pytest.mark.parametrize("kind", ["regression", "two", "four", "multilabel"])
def test_the_predictions_are_scikit_learns(metric: str, weights: str, count: int, kind: str) -> None:
    classes = {"two": (SIGNAL[:, 0] > 0).astype(int), "four": np.digitize(SIGNAL[:, 0], [-1, 0, 1])}
    y = classes.get(kind, SIGNAL[:, :2] if kind == "regression" else (SIGNAL > 0).astype(int))
    of_task = "classification" if kind in classes else kind
    for split, got in predicted(f"knn+k=3,metric={metric},weights={weights},neighbors={count}", y, of_task):
        model = (KNeighborsRegressor if kind == "regression" else KNeighborsClassifier)(
            min(count, len(split.train)), weights=weights, metric=METRICS[metric], algorithm="brute"
        )
        model.fit(X[split.train].astype(float), y[split.train])
        unseen = X[split.test].astype(float)
        if kind == "regression":
            expected = model.predict(unseen)
        else:
            chances = model.predict_proba(unseen)
            expected = np.stack([column[:, 1] for column in chances], axis=1) if kind == "multilabel" else chances
        np.testing.assert_allclose(got, expected, atol=1e-6)


@pytest.mark.parametrize("metric", METRICS)
def test_the_neighbours_are_those_of_faiss(metric: str) -> None:
    import faiss

    x = np.random.default_rng(2).standard_normal((500, 40)).astype(np.float32)
    seen = x / np.linalg.norm(x, axis=1, keepdims=True) if metric == "cosine" else x
    y = np.arange(500)  # the mean of their numbers says which they are
    for split, got in predicted(f"knn+k=3,metric={metric},neighbors=7", y, "regression", x):
        index = faiss.IndexFlatIP(40) if metric == "cosine" else faiss.IndexFlatL2(40)
        index.add(seen[split.train])
        _, nearest = index.search(seen[split.test], 7)
        np.testing.assert_allclose(got[:, 0], y[split.train[nearest]].mean(axis=1), rtol=1e-6)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_of_equally_near_samples_the_one_in_the_lower_row_counts(metric: str, offset: float) -> None:
    """Each sample is there seven times, in places that a matrix product may round differently."""
    once = (np.random.default_rng(3).standard_normal((40, 30)) + offset).astype(np.float32)
    x, y = np.tile(once, (7, 1)), np.arange(280)
    for split, got in predicted(f"knn+k=8,neighbors=2,metric={metric}", y, "regression", x):
        for row, value in zip(split.test, got[:, 0], strict=True):
            alike = sorted(set(split.train) & set(range(row % 40, 280, 40)))
            assert value == np.mean(alike[:2])


def test_a_class_with_as_many_neighbours_as_another_loses_to_the_lower_one() -> None:
    x, y = np.array([[0.0], [1], [-1], [2], [-2]], np.float32), np.array([0, 2, 1, 1, 2])
    split = split_of(x, y, "classification", np.arange(1, 5), np.arange(1))
    chances = NearestNeighbors(load_protocol("knn+metric=l2,neighbors=4")).fit(split).predictions[0]
    assert chances.tolist() == [[0, 0.5, 0.5]]
    assert chances.argmax() == 1


@pytest.mark.parametrize("metric", METRICS)
def test_any_size_of_block_and_splits_that_leave_near_samples_out(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As splits by place do: then the nearest training sample stands far behind in the order."""
    order = np.argsort(X[:, 0])
    parts = [(order[150:], order[:40]), (order[:200], order[260:]), (order[::2], order[1::2])]
    found = []
    for block in (2**22, 3 * 300, 1):
        monkeypatch.setattr(knn, "BLOCK", block)
        splits = [split_of(X, SIGNAL[:, 0], "regression", *part, index) for index, part in enumerate(parts)]
        probe = NearestNeighbors(load_protocol(f"knn+metric={metric}"))
        probe.prepare(splits, 2)
        found.append(np.concatenate([probe.fit(split).predictions[0] for split in splits]))
    model = KNeighborsRegressor(5, metric=METRICS[metric])
    expected = [model.fit(X[train], SIGNAL[train, 0]).predict(X[test]) for train, test in parts]
    for each in found:
        np.testing.assert_allclose(each[:, 0], np.concatenate(expected), atol=1e-6)


def test_one_sorting_serves_all_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_rows = 0
    order = knn.Space._order

    def counted(space: knn.Space, points: np.ndarray) -> np.ndarray:
        nonlocal sorted_rows
        sorted_rows += len(points)
        return order(space, points)

    monkeypatch.setattr(knn.Space, "_order", counted)
    score(embed(X), label(SIGNAL[:, 0]), "knn")
    assert sorted_rows <= len(X), "40 splits test 1,200 samples"


@pytest.mark.parametrize("text", ["knn+standardize=true,k=3", "knn+standardize=true,scale_on=all,k=3"])
def test_scaled_samples_have_distances_of_their_own(text: str) -> None:
    """One mean and one spread change no l2 distance; cosines they do."""
    shifted = embed(X + 5)
    l2 = score(shifted, label(SIGNAL[:, 0]), load_protocol(text).with_(metric="l2")).per_split
    assert l2 == pytest.approx(score(shifted, label(SIGNAL[:, 0]), "knn+metric=l2,k=3").per_split, abs=1e-6)
    assert score(shifted, label(SIGNAL[:, 0]), text).mean > score(shifted, label(SIGNAL[:, 0]), RULES).mean + 0.05


def test_a_wild_sample_harms_no_other() -> None:
    wild = X.copy()
    wild[7] = 3e38
    splits = [split_of(x, SIGNAL[:, 0], "regression", np.arange(8, 300), np.arange(7)) for x in (X, wild)]
    plain, now = (NearestNeighbors(load_protocol("knn+metric=l2")).fit(split).predictions for split in splits)
    np.testing.assert_allclose(now, plain, atol=1e-6)


def test_samples_without_direction_are_as_far_from_all() -> None:
    x = X.copy()
    x[:5] = 0
    split = split_of(x, np.arange(300), "regression", np.arange(5, 300), np.arange(5))
    assert NearestNeighbors(RULES).fit(split).predictions[0, :, 0].tolist() == [7.0] * 5  # rows 5 to 9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("knn+neighbors=0", "at least 1"),
        ("knn+metric=l1", "cosine or l2"),
        ("knn+weights=far", "uniform or distance"),
        ("knn+neighbours=3", "neighbors"),
    ],
)
def test_a_wrong_parameter_is_named(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        score(embed(X), label(SIGNAL[:, 0]), text)
