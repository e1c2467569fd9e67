"""Data that breaks scorers: each case has one defined outcome, and none of them is a silent 0."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from neuco_core.errors import DataError, ScoreError, UsageError
from neuco_core.protocol import PROTOCOLS, Protocol, load_protocol
from neuco_core.scoring.metrics import constant, r2_steps
from neuco_core.scoring.quality import odd_splits, split_count
from neuco_core.scoring.scorer import score
from neuco_core.tables.embeddings import Embeddings
from neuco_core.tables.labels import Labels
from tests.scoring.make import embed, label, names, problem, suited

QUICK = load_protocol("neuco-2025").with_(k=4, epochs=3)
STRICT = load_protocol("neuco-strict").with_(k=4, epochs=3)
ALL = [p.with_(k=3, epochs=2) for p in PROTOCOLS.values()]
REGRESSION = suited(ALL, "regression")


def test_test_parts_without_variance_count_as_zero_in_parity_and_are_left_out_in_strict() -> None:
    """Mostly-zero labels, as in the real tasks nodata and random_reg."""
    embeddings, _ = problem(60)
    y = np.zeros(60)
    y[:2] = 1.0, 0.5
    parity = score(embeddings, label(y), load_protocol("neuco-2025").with_(k=20))
    flat = parity.splits["no_variance"]
    assert 0 < flat < 20
    assert parity.splits["undefined"] == 0
    assert sum(value in (0.0, 1.0) for value in parity.per_split) >= flat
    strict = score(embeddings, label(y), load_protocol("neuco-strict").with_(k=20))
    assert strict.splits == {"no_variance": flat, "undefined": flat}
    assert sum(map(math.isnan, strict.per_split)) == flat
    assert strict.to_json()["per_split"].count(None) == flat
    assert strict.mean == pytest.approx(np.nanmean(strict.per_split))


def test_every_test_part_without_variance_is_an_error_where_they_are_left_out() -> None:
    embeddings, _ = problem(40)
    y = np.zeros(40)
    y[np.random.RandomState(42).permutation(40)[-1]] = 1  # in the training part of the only split
    with pytest.raises(ScoreError, match="none of the splits"):
        score(embeddings, label(y), STRICT.with_(k=1))


def test_a_class_missing_in_a_test_part() -> None:
    embeddings, _ = problem(60)
    y = np.zeros(60)
    y[:3] = 1
    parity = score(embeddings, label(y, "classification"), load_protocol("neuco-2025").with_(k=20))
    flat = parity.splits["one_class"]
    assert 0 < flat < 20
    assert all(math.isfinite(value) for value in parity.per_split)
    assert sum(map(math.isnan, parity.metrics["roc_auc"])) == flat
    assert parity.confusion is not None
    assert parity.confusion.sum() == 20 * 6
    strict = score(embeddings, label(y, "classification"), load_protocol("neuco-strict").with_(k=20))
    assert strict.splits == {"one_class": flat, "undefined": flat}
    assert '"roc_auc": [' in json.dumps(strict.to_json(), allow_nan=False)


def test_a_class_missing_in_every_training_part_still_has_a_column() -> None:
    embeddings, signal = problem(30)
    y = np.digitize(signal[:, 0], [-0.5, 0.5]).astype(float)
    y[np.random.RandomState(42).permutation(30)[:2]] = 7.0  # a class of its own, all of it in the only test part
    for rules in (p.with_(k=1) for p in suited(ALL, "classification")):
        if rules.name.startswith("clustering"):
            continue  # one class in the test part: see test_clustering
        got = score(embeddings, label(y, "classification"), rules)
        assert got.confusion is None or got.confusion.shape == (4, 4)
        assert got.classes == (0.0, 1.0, 2.0, 7.0)


def test_one_wild_label_stays_in_and_is_not_cut() -> None:
    embeddings, signal = problem(80)
    y = signal[:, 0].copy()
    y[5] = 1e9
    got = score(embeddings, label(y), QUICK)
    assert all(map(math.isfinite, got.per_split))
    assert got.splits["no_variance"] > 0, "all other labels are nearly the same after scaling"


@pytest.mark.parametrize("n", [1, 2, 10, 11, 19])
@pytest.mark.parametrize("rules", [QUICK, STRICT], ids=["parity", "strict"])
def test_few_samples(n: int, rules: Protocol) -> None:
    """Up to ten, a test part is one sample, of which R² is not defined; one alone cannot be split."""
    embeddings, signal = problem(n)
    if n > 10:
        got = score(embeddings, label(signal[:, 0]), rules)
        assert (got.samples["test"], got.samples["train"], math.isfinite(got.q)) == (2, n - 2, True)
        return
    message = f"r2 is defined for none of the splits; got {n} samples" if n > 1 else "."
    with pytest.raises((ScoreError, DataError), match=message):
        score(embeddings, label(signal[:, 0]), rules)


def test_one_dimension() -> None:
    x = np.linspace(-1, 1, 50)
    for rules in REGRESSION:
        got = score(embed(x[:, None]), label(2 * x + 1), rules)
        assert math.isfinite(got.q)


def test_one_split_has_no_spread() -> None:
    embeddings, signal = problem()
    got = score(embeddings, label(signal[:, 0]), QUICK.with_(k=1))
    assert (got.std, len(got.per_split)) == (0.0, 1)
    assert got.q == pytest.approx(100 * got.mean)


def test_ids_that_look_like_numbers_are_texts() -> None:
    embeddings, signal = problem(30)
    ids = [f"{i:03d}" for i in range(30)]
    got = score(embed(embeddings.values, ids), label(signal[:, 0], ids=ids), QUICK)
    assert got.samples["used"] == 30


def test_embeddings_with_a_constant_value() -> None:
    """Nothing to learn from: every protocol ends at or below the mean of the training labels."""
    _, signal = problem(60)
    for rules in REGRESSION:
        got = score(embed(np.full((60, 4), 0.1)), label(signal[:, 0]), rules)
        assert all(value <= 0.05 for value in got.per_split)


def test_some_constant_dimensions_change_nothing_for_ridge() -> None:
    embeddings, signal = problem(60)
    wide = np.hstack([embeddings.values, np.full((60, 3), 7.5)])
    rules = load_protocol("ridge").with_(k=3)
    expected = score(embeddings, label(signal[:, 0]), rules).per_split
    assert score(embed(wide), label(signal[:, 0]), rules).per_split == pytest.approx(expected, abs=1e-9)


def test_fewer_and_more_dimensions_than_asked_for() -> None:
    embeddings, signal = problem(40, dim=6)
    padded = embed(np.hstack([embeddings.values, np.zeros((40, 2))]))
    rules = QUICK.with_(embedding_dim=8)
    assert (
        score(embeddings, label(signal[:, 0]), rules).per_split == score(padded, label(signal[:, 0]), rules).per_split
    )


def test_samples_are_counted() -> None:
    embeddings, signal = problem(50)
    labels = label(signal[:30, 0], ids=(*names(60)[20:50],))
    fewer = embed(embeddings.values[:40], names(40))
    got = score(fewer, labels, QUICK).samples
    assert got["used"] == 20
    assert (got["labels"], got["labels_without_embedding"]) == (30, 10)
    assert (got["embeddings"], got["embeddings_without_label"]) == (40, 20)
    assert (got["train"], got["test"]) == (18, 2)


def test_the_same_to_the_bit_where_no_threshold_counts() -> None:
    rng = np.random.default_rng(1)
    truth = rng.random((50, 2)).astype(np.float32)
    steps = truth + 0.3 * rng.standard_normal((4, 50, 2))
    assert (r2_steps(truth, steps, strict=True) == r2_steps(truth, steps)).all()


def test_labels_that_are_the_same_but_for_rounding_are_constant() -> None:
    same = np.full(9, 0.1, np.float32)
    assert constant(same).all()
    assert constant(np.nextafter(same, 1, dtype=np.float32) * np.array([1] * 8 + [1 + 1e-9])).all()
    assert not constant(np.append(same, np.float32(0.1001))).any()
    assert math.isnan(r2_steps(same, same[None], strict=True)[0])


EMBEDDINGS, SIGNAL = problem(30)
Y = SIGNAL[:, 0]
FAR = np.full((30, 8), -3e38)
FAR[0] = 3e38  # whose distance to the mean is more than float32 can hold
DIVERGES = load_protocol("neuco-2025+standardize=false,normalize_labels=false,lr=1e+30,k=2,epochs=3")
REFUSED: dict[str, tuple[Embeddings, Labels, Protocol, str]] = {
    "an id twice": (EMBEDDINGS, label(Y, ids=(*names(29), "s00003")), QUICK, "'s00003' more than once"),
    "no id in common": (EMBEDDINGS, label(Y, ids=[f"{i}x" for i in range(30)]), QUICK, "share no id"),
    "constant labels": (EMBEDDINGS, label([3] * 30), QUICK, "30 joined labels are all 3"),
    "one class": (EMBEDDINGS, label([3] * 30, "classification"), QUICK, "30 joined labels are all 3"),
    "constant where joined": (EMBEDDINGS, label([3] * 30 + [1] * 9), QUICK, "30 joined labels are all 3"),
    "classes by 2 columns": (EMBEDDINGS, label(SIGNAL[:, [0, 0]] > 0, "classification"), QUICK, "several labels per"),
    "too many dimensions": (EMBEDDINGS, label(Y), QUICK.with_(embedding_dim=5), "at most 5"),
    "overflow": (embed(FAR), label(Y), QUICK, "not finite"),
    "training that diverges": (embed(EMBEDDINGS.values * 1e20), label(Y), DIVERGES, "none of the splits"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_scored_is_an_error_and_not_zero(name: str) -> None:
    embeddings, labels, rules, words = REFUSED[name]
    with pytest.raises((DataError, ScoreError), match=words):
        score(embeddings, labels, rules)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("rules", ALL, ids=lambda p: p.name)
def test_embeddings_that_are_not_finite_are_refused(bad: float, rules: Protocol) -> None:
    """The reader refuses them as well; this is for values that never saw a reader."""
    embeddings, signal = problem(30)
    embeddings.values[4, 2] = bad
    kind = "regression" if rules in REGRESSION else "classification"
    with pytest.raises(DataError, match="not finite"):
        score(embeddings, label(signal[:, 0] > 0 if rules not in REGRESSION else signal[:, 0], kind), rules)


def test_large_values_and_bad_numbers_of_threads() -> None:
    values = np.where(EMBEDDINGS.values > 0, np.float32(3e38), np.float32(-3e38))
    assert math.isfinite(score(embed(values), label(Y), QUICK).q)
    with pytest.raises(UsageError, match="threads"):
        score(EMBEDDINGS, label(Y), QUICK, threads=0)


def test_odd_parts_in_words() -> None:
    assert list(odd_splits({"no_variance": 0, "undefined": 0}, 40)) == []
    assert list(odd_splits({"one_class": 10, "undefined": 10}, 40)) == [
        "10 of 40 test parts have no score: their labels are of one class"
    ]
    assert list(odd_splits({"no_variance": 3, "undefined": 0}, 8)) == [
        "3 of 8 test parts are scored even so: their labels are all the same"
    ]
    assert list(odd_splits({"no_variance": 1, "undefined": 3}, 8)) == [
        "1 of 8 test parts have no score: their labels are all the same",
        "2 of 8 splits have no score: the metric is not defined there",
    ]
    assert split_count(score(EMBEDDINGS, label(Y), "ridge+k=3").per_split) == "3"


def test_splits_that_repeat_are_said_to() -> None:
    embeddings, signal = problem(120, 4)
    labels = replace(label(signal[:, 0]), groups=np.repeat(["a", "b"], 60))
    few = score(embeddings, labels, "ridge+splitter=group,k=10")
    assert few.splits["repeated"] == 8
    said = "8 of 10 test parts are those of other splits: spread and intervals are too small"
    assert list(odd_splits(few.splits, 10)) == [said]
    many = replace(labels, groups=np.repeat(np.arange(30).astype(str), 4))
    assert "repeated" not in score(embeddings, many, "ridge+splitter=group,k=10").splits
