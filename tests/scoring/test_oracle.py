"""The compiled kernel against a torch loop, over sizes and settings that nobody chose."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from neuco_core.protocol import Protocol
from neuco_core.scoring import kernel
from neuco_core.scoring.probes import Split
from neuco_core.scoring.probes.linear import LinearProbe, WordStream, probabilities, softmax
from neuco_core.scoring.splits import shuffle
from tests.scoring.oracle import Trained, train_splits

LOSSES: dict[str, nn.Module] = {
    "regression": nn.MSELoss(),
    "binary": nn.BCEWithLogitsLoss(),
    "classes": nn.CrossEntropyLoss(),
}


def make_data(kind: str, n: int, dim: int, outputs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, dim)).astype(np.float32)
    signal = x @ rng.standard_normal((dim, outputs)) / np.sqrt(dim) + 0.3 * rng.standard_normal((n, outputs))
    if kind == "regression":
        return x, ((signal - signal.min()) / np.ptp(signal)).astype(np.float32)
    if kind == "binary":
        return x, (signal > 0).astype(np.float32)
    return x, signal.argmax(axis=1).astype(np.float32).reshape(-1, 1)


def train_here(x: np.ndarray, y: np.ndarray, rules: Protocol, kind: str, outputs: int) -> list[Trained]:
    probe, stream, results = LinearProbe(rules.with_(sigmoid="always")), WordStream(rules.seed), []
    classes = {"regression": 0, "binary": 2, "classes": outputs}[kind]
    kind = "classification" if classes else kind
    for index, (train, test) in enumerate(shuffle(len(x), rules)):
        words = stream.take(probe.words(x.shape[1], outputs, len(train), len(test)))
        fit = probe.fit(Split(x, y, train, test, kind, classes, index, words))
        assert fit.train_loss is not None
        assert fit.test_loss is not None
        results.append(Trained(fit.predictions, fit.train_loss, fit.test_loss))
    return results


def train_torch(x: np.ndarray, y: np.ndarray, rules: Protocol, kind: str, outputs: int) -> list[Trained]:
    targets = y[:, 0].astype(np.int64) if kind == "classes" else y
    options = {"seed": rules.seed, "epochs": rules.epochs, "batch_size": rules.batch_size, "lr": rules.lr}
    trained = train_splits(x, targets, shuffle(len(x), rules), loss=LOSSES[kind], outputs=outputs, **options)  # type: ignore[arg-type]
    if kind == "regression":
        return trained
    if kind == "classes":
        return [replace(one, outputs=softmax(one.outputs)) for one in trained]
    positive = [probabilities(one.outputs, always=True) for one in trained]
    return [replace(one, outputs=np.append(1 - p, p, axis=2)) for one, p in zip(trained, positive, strict=True)]


def agree(got: list[Trained], expected: list[Trained]) -> None:
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one.outputs, other.outputs, atol=2e-4, rtol=2e-4)
        np.testing.assert_allclose(one.train_loss, other.train_loss, atol=2e-4, rtol=2e-4)
        np.testing.assert_allclose(one.test_loss, other.test_loss, atol=2e-4, rtol=2e-4)


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    kind=st.sampled_from(sorted(LOSSES)),
    n=st.integers(2, 150),
    dim=st.integers(1, 70),
    outputs=st.integers(1, 4),
    rules=st.builds(
        partial(Protocol, name="case"),
        k=st.integers(1, 3),
        epochs=st.integers(1, 4),
        batch_size=st.integers(1, 80),
        lr=st.sampled_from([1e-4, 1e-3, 1e-2]),
        seed=st.integers(0, 2**32 - 1),
    ),
)
def test_same_training_as_torch(kind: str, n: int, dim: int, outputs: int, rules: Protocol) -> None:
    outputs = {"regression": outputs, "binary": 1, "classes": outputs + 2}[kind]
    x, y = make_data(kind, n, dim, outputs, rules.seed)
    expected = train_torch(x, y, rules, kind, outputs)
    agree(train_here(x, y, rules, kind, outputs), expected)


@pytest.mark.parametrize("dim", [1, 3, 4, 5, 16, 1024])
def test_same_training_at_the_paper_settings(dim: int) -> None:
    x, y = make_data("regression", 333, dim, 1, 7)
    rules = Protocol(name="case", k=2, epochs=20)
    agree(train_here(x, y, rules, "regression", 1), train_torch(x, y, rules, "regression", 1))


@pytest.mark.parametrize("kind", sorted(LOSSES))
@pytest.mark.parametrize("scale", [1e-30, 1e4, 1e18])
def test_extreme_inputs_train_as_in_torch(kind: str, scale: float) -> None:
    """Tiny ones vanish, huge ones overflow to infinity; either way as in torch, with no trap and no zero."""
    x, y = make_data(kind, 60, 8, 1 if kind != "classes" else 3, 3)
    x = (x * np.float32(scale)).astype(np.float32)
    outputs = 3 if kind == "classes" else 1
    rules = Protocol(name="case", k=1, epochs=3)
    got = train_here(x, y, rules, kind, outputs)[0].outputs
    expected = train_torch(x, y, rules, kind, outputs)[0].outputs
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-4 * max(scale, 1))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_nan_stays_a_nan(bad: float) -> None:
    x, y = make_data("regression", 60, 8, 1, 3)
    rules = Protocol(name="case", k=1, epochs=2)
    x[shuffle(60, rules)[0][0][5], 2] = bad
    out = train_here(x, y, rules, "regression", 1)[0]
    assert np.isnan(out.outputs).all()
    assert np.isnan(train_torch(x, y, rules, "regression", 1)[0].outputs).all()


def test_words_are_those_of_torch() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(42)
        order = torch.randperm(1000).numpy()
    words = WordStream(42).take(999)
    rows = list(range(1000))
    for i, word in enumerate(words.tolist()):
        j = i + word % (1000 - i)
        rows[i], rows[j] = rows[j], rows[i]
    assert rows == order.tolist()
    stream = WordStream(42)
    stream.move_to(500)
    np.testing.assert_array_equal(stream.take(10), words[500:510])
    assert stream.position == 510


def test_one_compiled_version_serves_every_score() -> None:
    assert len(kernel.fit.signatures) == 1, "another type of argument costs another compilation"
