"""Protocols by name and as variants, and what sets each apart."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import ShuffleSplit

from neuco_core.errors import SpecError, UnknownIdError, UsageError
from neuco_core.protocol import PROTOCOLS, Protocol, load_protocol
from neuco_core.scoring.probes.linear import probabilities
from neuco_core.scoring.scorer import score
from neuco_core.scoring.splits import group, shuffle
from tests.scoring.make import embed, label, problem


def test_the_named_protocols() -> None:
    learned = ["neuco-2025", "neuco-strict", "ridge", "mlp-1", "mlp-2", "svm", "knn", "logistic"]
    few = ["shots-1", "shots-5", "shots-10", "shots-20"]
    assert list(PROTOCOLS) == [*learned, *few, "retrieval", "clustering"]
    paper = PROTOCOLS["neuco-2025"]
    assert (paper.k, paper.epochs, paper.lr, paper.batch_size, paper.seed) == (40, 20, 1e-3, 64, 42)
    assert (paper.weight_decay, paper.test_size, paper.select, paper.scale_on) == (0.01, 0.1, "best-on-test", "all")
    assert all(protocol.description for protocol in PROTOCOLS.values())


def test_a_variant_says_that_it_is_one_and_is_found_by_its_name() -> None:
    base = load_protocol("neuco-2025")
    variant = base.with_(lr=1e-4, k=50)
    assert (variant.name, variant.k, variant.lr) == ("neuco-2025+k=50,lr=0.0001", 50, 1e-4)
    assert load_protocol(variant.name) == variant != base == base.with_()
    assert variant.with_(k=7).name == "neuco-2025+k=7,lr=0.0001"
    with pytest.raises(SpecError, match="a whole number"):
        base.with_(k="many")


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("neuco-2025+lr=1", "lr", 1.0),
        ("neuco-2025+weight_decay=0", "weight_decay", 0.0),
        ("neuco-2025+standardize=false", "standardize", False),
        ("neuco-2025+embedding_dim=16", "embedding_dim", 16),
        ("neuco-2025+embedding_dim=None", "embedding_dim", None),
        ("neuco-2025+select=last,seed=7", "select", "last"),
        ("ridge+splitter=group", "splitter", "group"),
    ],
)
def test_values_get_the_type_of_their_field(text: str, field: str, value: object) -> None:
    got = getattr(load_protocol(text), field)
    assert got == value
    assert type(got) is type(value)


def test_what_is_no_field_is_a_parameter_of_the_probe() -> None:
    assert load_protocol("mlp-1+width=64").params == {"layers": 1, "width": 64}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("neuco-2052", "Did you mean 'neuco-2025'"),
        ("nonsense", "no protocol 'nonsense'"),
        ("neuco-2025+k", "expected field=value"),
        ("neuco-2025+k=1,k=2", "each field once"),
        ("neuco-2025+k=0", "at least 1"),
        ("neuco-2025+k=many", "bad k"),
        ("neuco-2025+K=3", "a parameter of the probe"),
        ("neuco-2025+name=x", "a parameter of the probe"),
    ],
)
def test_a_wrong_name_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises((UnknownIdError, UsageError, SpecError)) as caught:
        load_protocol(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("neuco-2025+width=3", "neither the protocol nor its probe 'linear' has 'width'"),
        ("neuco-2025+sigmoid=never", "torchmetrics or always"),
        ("mlp-1+width=wide", "expected int"),
        ("mlp-1+layers=0", "at least 1"),
        ("ridge+alpha=1", "no parameters"),
        ("svm+search_samples=1.5", "expected int"),
    ],
)
def test_a_probe_knows_its_parameters(text: str, message: str) -> None:
    embeddings, signal = problem(30)
    with pytest.raises(UsageError) as caught:
        score(embeddings, label(signal[:, 0]), text)
    assert message in str(caught.value)


def test_the_strict_protocol_takes_the_last_epoch_and_parity_the_best() -> None:
    embeddings, signal = problem(100, noise=2.0)
    for name, choose in (("neuco-2025", np.nanmax), ("neuco-strict", lambda curve: curve[-1])):
        got = score(embeddings, label(signal[:, 0]), load_protocol(name).with_(k=5, lr=0.05))
        assert got.per_split == pytest.approx([choose(curve) for curve in got.curves["metric"]])
        assert got.curves["metric"].shape == got.curves["train_loss"].shape == (5, 20)
        assert len(got.epochs) == 5


def test_the_strict_protocol_learns_nothing_from_the_test_part() -> None:
    """A wild value in a test part may change that split's score, but not what is predicted for the others."""
    embeddings, signal = problem(50)
    rules = load_protocol("neuco-strict").with_(k=1, epochs=3)
    wild = int(np.random.RandomState(42).permutation(50)[0])  # the first sample of the only test part
    before = score(embeddings, label(signal[:, 0]), rules, keep_models=True).models[0]
    values, y = embeddings.values.copy(), signal[:, 0].copy()
    values[wild], y[wild] = 1e3, 1e3
    after = score(embed(values), label(y), rules, keep_models=True).models[0]
    np.testing.assert_array_equal(before["weight"], after["weight"])
    np.testing.assert_array_equal(before["prediction"][1:], after["prediction"][1:])
    parity = load_protocol("neuco-2025").with_(k=1, epochs=3)
    leaked = score(embed(values), label(y), parity, keep_models=True).models[0]
    assert not np.array_equal(leaked["prediction"][1:], after["prediction"][1:])


def test_ridge_finds_what_a_short_training_does_not() -> None:
    embeddings, signal = problem(300, dim=40, noise=0.1)
    linear = score(embeddings, label(signal[:, 0]), load_protocol("neuco-2025").with_(k=5))
    ridge = score(embeddings, label(signal[:, 0]), load_protocol("ridge").with_(k=5))
    assert ridge.mean > 0.95 > linear.mean
    assert ridge.curves == {}


def test_logits_between_0_and_1_are_probabilities_only_in_parity() -> None:
    logits = np.array([[[0.2], [0.6]], [[-0.2], [0.6]]], np.float32)
    np.testing.assert_allclose(probabilities(logits, always=False)[..., 0], [[0.2, 0.6], [0.45, 0.65]], atol=5e-3)
    np.testing.assert_allclose(probabilities(logits, always=True)[..., 0], [[0.55, 0.65], [0.45, 0.65]], atol=5e-3)


def test_splits_by_group_keep_groups_together() -> None:
    groups = np.repeat(np.arange(12), 5)
    splits = group(60, Protocol(name="case", k=6, test_size=0.25), groups)
    for train, test in splits:
        assert set(groups[train]).isdisjoint(groups[test])
        assert len(set(groups[test])) == 3
        assert sorted([*train, *test]) == list(range(60))
    embeddings, signal = problem(60)
    got = score(embeddings, label(signal[:, 0], groups=groups), "ridge+splitter=group,k=6,test_size=0.25")
    assert got.samples["test"] == 15


def test_the_sizes_of_a_score_are_means_over_its_splits() -> None:
    """Groups differ in size, and the first split says little: intervals take the share of the test part from these."""
    embeddings, signal = problem(80)
    groups = np.repeat(np.arange(8), [40, 12, 8, 6, 5, 4, 3, 2])
    protocol = load_protocol("ridge+k=12,splitter=group,test_size=0.25")
    found = score(embeddings, label(signal[:, 0], groups=groups), protocol).samples
    sizes = [len(test) for _, test in group(80, protocol, groups)]
    assert found["test"] == round(np.mean(sizes)) != sizes[0]
    assert found["train"] + found["test"] == 80


def test_a_sample_near_a_tested_group_is_in_neither_part() -> None:
    own = np.repeat(np.arange(12), 5)
    near = (own + 1) % 12
    groups = np.array([f"{a}|{b}" for a, b in zip(own, near, strict=True)])
    for train, test in group(60, Protocol(name="case", k=6, test_size=0.25), groups):
        assert len(test) == 15
        assert set(own[train]).isdisjoint(own[test])
        assert set(near[train]).isdisjoint(own[test])
        assert set(range(60)) - {*train, *test} == set(
            np.flatnonzero(np.isin(near, own[test]) & ~np.isin(own, own[test]))
        )


def test_splits_by_group_need_groups_and_enough_of_them() -> None:
    embeddings, signal = problem(60)
    with pytest.raises(Exception, match="needs groups"):
        score(embeddings, label(signal[:, 0]), "ridge+splitter=group")
    with pytest.raises(Exception, match="too few groups"):
        score(embeddings, label(signal[:, 0], groups=np.zeros(60)), "ridge+splitter=group")


def test_shuffle_splits_are_those_of_scikit_learn() -> None:
    for n in (11, 30, 643, 1000):
        expected = ShuffleSplit(n_splits=3, test_size=0.1, random_state=42).split(np.zeros(n))
        for ours, theirs in zip(shuffle(n, Protocol(name="case", k=3)), expected, strict=True):
            np.testing.assert_array_equal(ours[0], theirs[0])
            np.testing.assert_array_equal(ours[1], theirs[1])
