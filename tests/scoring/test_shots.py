"""The logistic probe, and few labels: against scikit-learn written out, and classes that have too few samples."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from neuco_core.errors import NotApplicableError, UsageError
from neuco_core.protocol import load_protocol
from neuco_core.scoring.probes import Split, ridge
from neuco_core.scoring.probes.logistic import COSTS, logistic_probe
from neuco_core.scoring.probes.ridge import STRENGTHS
from neuco_core.scoring.probes.shots import FewShots, spread_over
from neuco_core.scoring.scorer import score
from neuco_core.scoring.splits import shuffle
from tests.scoring.make import embed, label, problem

EMBEDDINGS, SIGNAL = problem(260, dim=6, outputs=4, noise=0.1)
X = EMBEDDINGS.values
CLASSES = {2: (SIGNAL[:, 0] > 0).astype(int), 4: SIGNAL.argmax(axis=1)}


def split_of(y: np.ndarray, kind: str, train: np.ndarray, test: np.ndarray, index: int = 0) -> Split:
    classes = int(y.max()) + 1 if kind == "classification" else 0
    return Split(X[: len(y)], y.astype(np.float32).reshape(len(y), -1), train, test, kind, classes, index)


def written_out(x: np.ndarray, y: np.ndarray, unseen: np.ndarray, most: int = 1000) -> tuple[np.ndarray, float]:
    """Scale, choose C by three folds, fit: the chances of the unseen, and C."""
    x, unseen = x.astype(float), unseen.astype(float)
    scaler = StandardScaler().fit(x)
    x, unseen, cost = scaler.transform(x), scaler.transform(unseen), 1.0
    some = np.random.RandomState(42).permutation(len(x))[:most]
    values, counts = np.unique(y[some], return_counts=True)
    some = some[np.isin(y[some], values[counts >= 3])]
    if (counts >= 3).sum() > 1:
        losses = np.zeros(len(COSTS))
        for train, test in StratifiedKFold(3, shuffle=True, random_state=42).split(x[some], y[some]):
            for place, candidate in enumerate(COSTS):
                model = LogisticRegression(C=candidate, max_iter=1000).fit(x[some][train], y[some][train])
                losses[place] += log_loss(y[some][test], model.predict_proba(x[some][test]))
        cost = COSTS[losses.argmin()]
    return LogisticRegression(C=cost, max_iter=1000, tol=1e-6).fit(x, y).predict_proba(unseen), cost


@pytest.mark.parametrize("count", CLASSES)
@pytest.mark.parametrize("most", [1000, 60])
def test_the_logistic_probe_is_scikit_learns(count: int, most: int) -> None:
    rules = load_protocol("logistic+k=2").with_(search_samples=most)
    for train, test in shuffle(260, rules):
        fit = logistic_probe(rules).fit(split_of(CLASSES[count], "classification", train, test))
        chances, cost = written_out(X[train], CLASSES[count][train], X[test], most)
        np.testing.assert_allclose(fit.predictions[0], chances, atol=1e-6)
        assert fit.settings["C"] == cost


def test_several_labels_have_a_logistic_probe_each() -> None:
    marks = (SIGNAL > 0.3).astype(int)
    train, test = shuffle(260, load_protocol("logistic+k=1"))[0]
    fit = logistic_probe(load_protocol("logistic")).fit(split_of(marks, "multilabel", train, test))
    for column in range(4):
        chances, cost = written_out(X[train], marks[train, column], X[test])
        np.testing.assert_allclose(fit.predictions[0][:, column], chances[:, 1], atol=1e-6)
        assert fit.settings[f"C.{column}"] == cost


def test_a_class_too_small_for_the_folds_is_fitted_and_not_searched_on() -> None:
    y = np.digitize(SIGNAL[:, 0], [-0.3, 0.3])
    y[[3, 5]] = 3
    train, test = np.arange(200), np.arange(200, 260)
    fit = logistic_probe(load_protocol("logistic")).fit(split_of(y, "classification", train, test))
    np.testing.assert_allclose(fit.predictions[0], written_out(X[train], y[train], X[test])[0], atol=1e-6)
    assert (fit.predictions[0][:, 3] > 0).all()


def test_a_regression_has_no_logistic_probe() -> None:
    with pytest.raises(NotApplicableError, match="'logistic' is not for regression"):
        score(EMBEDDINGS, label(SIGNAL[:, 0]), "logistic")


@pytest.mark.parametrize("shots", [1, 5, 10, 20])
@pytest.mark.parametrize("count", CLASSES)
def test_few_shots_of_classes_written_out(shots: int, count: int) -> None:
    """So many of each class from the training part in a seeded order, and the logistic probe."""
    y, rules = CLASSES[count], load_protocol(f"shots-{shots}+k=2")
    for index, (train, test) in enumerate(shuffle(260, rules)):
        fit = FewShots(rules).fit(split_of(y, "classification", train, test, index))
        order = np.random.RandomState([42, index]).permutation(train)
        drawn = [row for place, row in enumerate(order) if (y[order[:place]] == y[row]).sum() < shots]
        assert (fit.settings["labels"], fit.settings["classes_short"]) == (shots * count, 0)
        chances, _ = written_out(X[drawn], y[drawn], X[test])
        np.testing.assert_allclose(fit.predictions[0], chances, atol=1e-6)


@pytest.mark.parametrize("shots", [5, 10, 20])
@pytest.mark.parametrize("ties", [False, True])
def test_few_shots_of_a_regression_written_out(shots: int, ties: bool) -> None:
    """One label from each of so many parts of the sorted ones; ridge has scikit-learn's values for its strength."""
    y = SIGNAL[:, 0] if not ties else np.round(SIGNAL[:, 0])
    rules = load_protocol(f"shots-{shots}")
    train, test = shuffle(260, rules)[0]
    fit = FewShots(rules).fit(split_of(y, "regression", train, test))
    order = np.random.RandomState([42, 0]).permutation(train)
    place = {row: number for number, row in enumerate(order)}
    ranked = sorted(order, key=lambda row: (np.float32(y[row]), place[row]))
    drawn = [min(part, key=place.__getitem__) for part in np.array_split(ranked, shots)]
    assert fit.settings == {"labels": shots, "classes_short": 0}
    seen, labels = X[drawn].astype(float), y[drawn].astype(np.float32)
    far = ridge.REACH * abs(seen - seen.mean(axis=0)).max(axis=0)
    unseen = np.clip(X[test] - seen.mean(axis=0), -far, far) + seen.mean(axis=0)
    distance = []
    for strength in STRENGTHS * shots:
        expected = make_pipeline(StandardScaler(), Ridge(alpha=strength)).fit(seen, labels).predict(unseen)
        distance.append(abs(expected - fit.predictions[0][:, 0]).max())
    assert min(distance) < 1e-6


def test_the_labels_of_a_regression_are_spread_over_the_range() -> None:
    """Of skewed labels plain draws mostly take the small ones."""
    y = np.sort(np.random.default_rng(0).lognormal(sigma=2, size=1000))[:, None]
    y = y[np.random.default_rng(1).permutation(1000)]
    ranks = np.searchsorted(np.sort(y[:, 0]), y[spread_over(y, 10), 0])
    assert sorted(ranks // 100) == list(range(10))
    assert len(spread_over(y[:4], 10)) == 4
    same = spread_over(np.zeros((100, 1)), 5)
    assert same.tolist() == [0, 20, 40, 60, 80], "the first of each fifth, in the order that was drawn"


@pytest.mark.parametrize("count", [2, 10, 45])
def test_one_shot_of_2_10_and_45_classes(count: int) -> None:
    rng = np.random.default_rng(count)
    y = rng.permutation(np.arange(900) % count)
    x = rng.standard_normal((count, 16))[y] * 2 + 0.3 * rng.standard_normal((900, 16))
    got = score(embed(x), label(y, "classification"), "shots-1+k=4")
    assert set(got.settings["labels"]) == {count}
    assert set(got.settings["classes_short"]) == {0}
    assert got.mean > 0.8
    more = score(embed(x + rng.standard_normal(x.shape)), label(y, "classification"), "shots-10+k=2")
    assert more.mean > score(embed(x + rng.standard_normal(x.shape)), label(y, "classification"), "shots-1+k=2").mean


@pytest.mark.parametrize("rare", [0, 1, 3])
def test_a_class_with_too_few_samples_gives_all_that_it_has(rare: int) -> None:
    """And it is said: of none, the class has no chance; the other classes give what was asked for."""
    y = np.digitize(SIGNAL[:, 0], [-0.3, 0.3])
    train, test = np.arange(200), np.arange(200, 260)
    y[test[:2]] = 3
    y[train[:rare]] = 3
    fit = FewShots(load_protocol("shots-5")).fit(split_of(y, "classification", train, test))
    assert (fit.settings["labels"], fit.settings["classes_short"]) == (15 + rare, 1)
    assert fit.predictions.shape == (1, 60, 4)
    assert (fit.predictions[0][:, 3] > 0).all() == (rare > 0)


def test_several_labels_give_so_many_samples_with_and_without_each() -> None:
    marks = (SIGNAL > [0, 0.5, 1.2, 99]).astype(int)  # the last label is nowhere
    train, test = shuffle(260, load_protocol("shots-5"))[0]
    fit = FewShots(load_protocol("shots-5")).fit(split_of(marks, "multilabel", train, test))
    short = sum((marks[train] == value).sum(axis=0) < 5 for value in (0, 1)).sum()
    assert 10 <= fit.settings["labels"] <= 40
    assert fit.settings["classes_short"] == short >= 1
    assert fit.predictions.shape == (1, len(test), 4)
    assert score(EMBEDDINGS, label(marks[:, :3], "multilabel"), "shots-20+k=2").mean > 0.7


def test_draws_differ_by_split_and_by_seed() -> None:
    """That a draw of few lies in one of more follows from the draws that are written out above."""
    part = np.arange(250), np.arange(250, 260)
    found = [
        FewShots(load_protocol(text)).fit(split_of(CLASSES[2], "classification", *part, index)).predictions
        for text, index in (("shots-5", 0), ("shots-5", 1), ("shots-5+seed=7", 0), ("shots-5", 0))
    ]
    assert [np.array_equal(found[0], other) for other in found[1:]] == [False, False, True]


def test_a_regression_with_one_label_predicts_it_and_with_equal_ones_does_not_fail() -> None:
    train, test = np.arange(250), np.arange(250, 260)
    for y in (SIGNAL[:, 0], np.where(np.arange(260) < 3, SIGNAL[:, 0], 0.0)):
        for shots in (1, 5):
            fit = FewShots(load_protocol(f"shots-{shots}")).fit(split_of(y, "regression", train, test))
            assert np.isfinite(fit.predictions).all()
            assert shots > 1 or np.ptp(fit.predictions) == 0


def test_fewer_labels_than_shots_are_all_used() -> None:
    y = SIGNAL[:12, 0]
    fit = FewShots(load_protocol("shots-20")).fit(split_of(y, "regression", np.arange(9), np.arange(9, 12)))
    assert fit.settings == {"labels": 9, "classes_short": 1}


def test_no_shots_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        score(EMBEDDINGS, label(CLASSES[2], "classification"), "shots-5+shots=0")
