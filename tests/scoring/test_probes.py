"""Every probe on every kind of task, against what other software gives, and the same for any number of threads."""

from __future__ import annotations

import json
import math
import threading

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from neuco_core import load_method, load_task
from neuco_core.errors import ScoreError
from neuco_core.protocol import PROTOCOLS, Protocol, load_protocol
from neuco_core.scoring.probes import Split, ridge, svm
from neuco_core.scoring.probes.mlp import MLPProbe
from neuco_core.scoring.probes.ridge import STRENGTHS, RidgeProbe
from neuco_core.scoring.scorer import Score, score
from neuco_core.scoring.splits import join, shuffle
from tests.scoring.make import embed, label, problem, suited

QUICK = [p.with_(k=2, epochs=30, lr=0.02 if p.probe == "linear" else 0.005) for p in PROTOCOLS.values()]
LEARNERS = [p for p in suited(QUICK, "regression", "classification") if p.probe != "shots"]


def text(got: Score) -> str:
    return json.dumps(got.to_json(), allow_nan=False, sort_keys=True)


@pytest.mark.parametrize("rules", LEARNERS, ids=lambda p: p.name.partition("+")[0])
def test_every_kind_of_task(rules: Protocol) -> None:
    embeddings, signal = problem(80, dim=6, outputs=3, noise=0.1)
    one = score(embeddings, label(signal[:, 0]), rules)
    many = score(embeddings, label(signal[:, :2]), rules)
    two = score(embeddings, label(signal[:, 0] > 0, "classification"), rules)
    three = score(embeddings, label(signal.argmax(axis=1) * 10, "classification"), rules)
    least = 0.5 if rules.probe == "knn" else 0.6  # 72 samples in six dimensions are not very near
    assert min(one.mean, many.mean, two.mean, three.mean) > least
    assert list(one.metrics) == ["r2", "mse", "mae"]
    assert list(two.metrics) == ["f1", "accuracy", "precision", "recall", "roc_auc"]
    assert two.confusion is not None
    assert two.confusion.sum() == len(two.per_split) * 8
    assert three.classes == (0.0, 10.0, 20.0)
    assert math.isfinite(sum(three.metrics["roc_auc"]))


@pytest.mark.parametrize(
    ("rules", "kind"),
    [(rules, kind) for kind in ("regression", "classification") for rules in suited(QUICK, kind)],
    ids=lambda p: p if isinstance(p, str) else p.name.partition("+")[0],
)
def test_the_same_bytes_again_and_for_any_number_of_threads(rules: Protocol, kind: str) -> None:
    embeddings, signal = problem(50, dim=4)
    labels = label(signal[:, 0] if kind == "regression" else signal[:, 0] > 0, kind)
    first = text(score(embeddings, labels, rules, threads=1))
    assert text(score(embeddings, labels, rules, threads=2)) == first
    assert text(score(embeddings, labels, rules, threads=2)) == first


def test_two_outputs_are_averaged() -> None:
    embeddings, signal = problem(100, outputs=2)
    both = score(embeddings, label(signal), "ridge+k=3")
    single = [score(embeddings, label(signal[:, i]), "ridge+k=3") for i in (0, 1)]
    assert both.per_split == pytest.approx(np.mean([s.per_split for s in single], axis=0), abs=1e-6)


def test_binary_labels_need_not_be_0_and_1() -> None:
    embeddings, signal = problem(100)
    y = signal[:, 0] > 0
    expected = score(embeddings, label(y, "classification"), "neuco-2025+k=3")
    got = score(embeddings, label(np.where(y, 5.0, -2.0), "classification"), "neuco-2025+k=3")
    assert got.per_split == expected.per_split
    assert got.classes == (-2.0, 5.0)


def test_metrics_with_a_unit_are_in_the_labels_own() -> None:
    embeddings, signal = problem(100)
    small = score(embeddings, label(signal[:, 0]), "ridge+k=3")
    large = score(embeddings, label(1000 * signal[:, 0] + 5e4), "ridge+k=3")
    assert large.per_split == pytest.approx(small.per_split, abs=1e-5)
    assert large.metrics["mae"] == pytest.approx(np.array(small.metrics["mae"]) * 1000, rel=1e-4)


@pytest.mark.parametrize(("n", "dim"), [(80, 12), (30, 50), (41, 36)])
@pytest.mark.parametrize("outputs", [1, 2])
def test_ridge_against_scikit_learn(n: int, dim: int, outputs: int) -> None:
    """For the strength that the probe chose, scikit-learn finds the same predictions."""
    embeddings, signal = problem(n, dim, outputs)
    train, test = np.arange(5, n), np.arange(5)
    split = Split(embeddings.values, signal.astype(np.float32), train, test, "regression", 0, 0)
    got = RidgeProbe(load_protocol("ridge")).fit(split).predictions[0]
    for output in range(outputs):
        distance = []
        for strength in STRENGTHS * len(train):
            model = make_pipeline(StandardScaler(), Ridge(alpha=strength))
            model.fit(embeddings.values[train].astype(float), split.y[train, output].astype(float))
            distance.append(abs(model.predict(embeddings.values[test].astype(float)) - got[:, output]).max())
        assert min(distance) < 1e-6


def test_ridge_with_units_that_rarely_fire(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each unit fires for some samples out of 200, for some far more than for the others: no split collapses."""
    embeddings, signal = problem(200, 8, noise=0.3)
    random = np.random.default_rng(1)
    rare = np.zeros((200, 24))
    for unit in range(24):
        fires = random.choice(200, 1 + unit % 4, replace=False)
        rare[fires, unit] = 10.0 ** random.uniform(-4, 1, len(fires))
    both = embed(np.concatenate([embeddings.values, rare], axis=1))
    plain, now = (score(features, label(signal[:, 0]), "ridge") for features in (embeddings, both))
    assert min(now.per_split) > 0.5
    assert now.mean > plain.mean - 0.1
    monkeypatch.setattr(ridge, "CARRIERS", 0.0)  # without what version 2 does about such units
    monkeypatch.setattr(ridge, "REACH", 1e100)
    assert min(score(both, label(signal[:, 0]), "ridge").per_split) < -10


@pytest.mark.parametrize(("share", "least"), [(0.02, 0.2), (0.05, 0.3), (0.1, 0.5), (0.3, 0.7), (0.5, 0.8)])
def test_ridge_finds_rare_samples(share: float, least: float) -> None:
    """The indicator of a rare class stays below one half: with that as the cut, F1 was 0 up to 5 %."""
    embeddings, signal = problem(1000, 16, noise=0.3)
    rare = signal[:, 0] > np.quantile(signal[:, 0], 1 - share)
    for labels in (label(rare, "classification"), label(np.stack([rare, ~rare], axis=1), "multilabel")):
        one = score(embeddings, labels, "ridge", metric="f1_macro" if labels.kind == "multilabel" else "f1")
        assert one.mean > least


def test_ridge_finds_a_rare_class_of_three() -> None:
    embeddings, signal = problem(1000, 16, noise=0.3)
    three = np.searchsorted(np.quantile(signal[:, 0], [0.04, 0.9]), signal[:, 0])
    assert score(embeddings, label(three, "classification"), "ridge").mean > 0.5


@pytest.mark.parametrize("kind", ["regression", "classification"])
@pytest.mark.parametrize("dim", [8, 300])
@pytest.mark.parametrize("size", [1e6, 1e30])
def test_what_ridge_learns_depends_on_no_test_row(kind: str, dim: int, size: float) -> None:
    """With one half of the test rows far off, the predictions of the other half stay as they are."""
    embeddings, signal = problem(200, dim)
    wild = embeddings.values.copy()
    wild[:10] = size * np.random.default_rng(3).standard_normal((10, dim))
    y, rows = signal if kind == "regression" else signal > 0.8, np.arange(200)
    plain, now = (
        _ridge_predictions(x, y.astype(np.float32), rows[20:], rows[:20], kind) for x in (embeddings.values, wild)
    )
    assert np.isfinite(now).all()
    np.testing.assert_allclose(now[10:], plain[10:], rtol=1e-9)


def test_ridge_keeps_a_feature_that_varies_far_more_in_the_test_part() -> None:
    embeddings, signal = problem(200, 8)
    values = embeddings.values.copy()
    values[:20, 0] *= 1e9
    y, rows = signal.astype(np.float32), np.arange(200)
    found = [_ridge_predictions(values * [on, *[1] * 7], y, rows[20:], rows[:20], "regression") for on in (1, 0)]
    assert abs(found[0] - found[1]).max() > 0.1


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_ridge_learns_nothing_of_samples_in_neither_part(kind: str) -> None:
    """With few labels, or a margin around the tested samples: as if those left out were not there at all."""
    embeddings, signal = problem(300, dim=6, noise=0.5)
    x, y = embeddings.values, (signal if kind == "regression" else signal > 0.3).astype(np.float32)
    train, test = np.arange(60), np.arange(200, 300)
    kept = np.concatenate([train, test])
    there = _ridge_predictions(x, y, train, test, kind)
    gone = _ridge_predictions(x[kept], y[kept], np.arange(60), np.arange(60, 160), kind)
    np.testing.assert_allclose(there, gone, rtol=1e-6, atol=1e-9)


def _ridge_predictions(x: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, kind: str) -> np.ndarray:
    split = Split(x.astype(np.float32), y, train, test, kind, 0 if kind == "regression" else 2, 0)
    return RidgeProbe(load_protocol("ridge")).fit(split).predictions[0]


def test_progress_is_told_split_by_split() -> None:
    embeddings, signal = problem(40)
    steps: list[tuple[int, int]] = []
    one = score(embeddings, label(signal[:, 0]), "neuco-2025+k=5,epochs=1", progress=lambda *at: steps.append(at))
    assert steps == [(i, 5) for i in range(1, 6)]
    assert one.models == (), "models are kept on demand"


def test_inputs_are_left_as_they_were() -> None:
    embeddings, signal = problem(40)
    values, y = embeddings.values.copy(), signal[:, 0].copy()
    frozen = embed(values)
    frozen.values.flags.writeable = False
    for kind in ("regression", "classification"):
        labels = label(y if kind == "regression" else y > 0, kind)
        labels.values.flags.writeable = False
        for rules in suited(QUICK, kind):
            score(frozen, labels, rules)
    np.testing.assert_array_equal(frozen.values, values)


@pytest.mark.parametrize("name", ["neuco-2025", "ridge", "mlp-2"])
def test_an_interrupt_ends_the_run_and_its_threads(name: str) -> None:
    embeddings, signal = problem(400, dim=32)
    before = set(threading.enumerate())
    done = []

    def interrupt(at: int, total: int) -> None:
        done.append(at)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score(
            embeddings, label(signal[:, 0]), load_protocol(name).with_(k=200, epochs=5), threads=2, progress=interrupt
        )
    assert done == [1]
    assert set(threading.enumerate()) <= before


def test_an_interrupted_split_ends_at_the_next_check() -> None:
    embeddings, signal = problem(60)
    y, rows = signal.astype(np.float32), np.arange(60)
    split = Split(embeddings.values, y, rows[6:], rows[:6], "regression", 0, 0)
    split.stop.set()
    with pytest.raises(ScoreError, match="interrupted"):
        MLPProbe(load_protocol("mlp-1")).fit(split)


@pytest.mark.slow
def test_the_edges_of_the_cost_rarely_win() -> None:
    """Before, costs ended at 1: 9 of 15 searches on such tasks ended there."""
    embeddings = load_method("band_statistics").embeddings("mini")
    scores = [score(embeddings, load_task(task), "svm+k=4") for task in ("mini_clouds", "mini_crops")]
    costs = [cost for one in scores for cost in one.settings["C"]]
    assert len(costs) == 8
    assert sum(cost in (svm.COSTS[0], svm.COSTS[-1]) for cost in costs) <= 1
    assert max(costs) > 1
    degrees = [degree for one in scores for degree in one.settings["degree"]]
    assert degrees.count(svm.DEGREES[-1]) <= 1


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_the_degree_follows_the_task(kind: str) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((150, 4)).astype(np.float32)
    for degree, signal in ((1, x[:, 0]), (2, x[:, 0] * x[:, 1])):
        y = signal + 0.05 * rng.standard_normal(150)
        one = score(embed(x), label(y if kind == "regression" else (y > 0).astype(float), kind), "svm+k=2")
        assert one.mean > 0.8
        assert min(one.settings["degree"]) >= (1 if degree == 1 else 2)


def test_several_outputs_have_settings_of_their_own() -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((60, 3)).astype(np.float32)
    both = score(embed(x), label(np.stack([x[:, 0], x[:, 1] ** 2], axis=1)), "svm+k=2")
    assert set(both.settings) == {"C.0", "degree.0", "C.1", "degree.1"}
    assert both.to_json()["settings"]["degree.1"] == [2.0, 2.0]


def test_ridge_is_not_the_best_linear_model_there_is() -> None:
    """As docs/ref/protocols.md says: leave-one-out is better on some splits and worse on others."""
    protocol = load_protocol("ridge+k=6")
    embeddings, signal = problem(200, 20, noise=1.0)
    labels = label(signal[:, 0])
    samples = join(embeddings, labels, protocol)
    x, y = samples.x.astype(np.float64), samples.y[:, 0]
    other = []
    for train, test in shuffle(len(y), protocol):
        model = make_pipeline(StandardScaler(), RidgeCV(STRENGTHS * len(train))).fit(x[train], y[train])
        other.append(model.score(x[test], y[test]))
    gaps = other - np.array(score(embeddings, labels, protocol).per_split)
    assert gaps.min() < 0 < gaps.max() < 0.1
