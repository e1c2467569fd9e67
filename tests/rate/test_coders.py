"""Coders: what they give back, and what it costs."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from neuco_core.errors import DependencyError, ScoreError, UsageError
from neuco_extensions.rate.coders import CODERS, USUAL, code, expand

BLOCKS = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=20),
    elements=st.floats(-1000, 1000, width=32),
)


@pytest.fixture(scope="module")
def block() -> np.ndarray:
    random = np.random.default_rng(0)
    values = random.standard_normal((4000, 32)) * np.geomspace(0.2, 4, 32) + np.arange(32)
    return values.astype(np.float32)


def error(block: np.ndarray, rate: str) -> float:
    return float(np.sqrt(((code(block, rate).values - block) ** 2).mean()))


def test_bits_of_the_fixed_rates(block: np.ndarray) -> None:
    scales = 64 * 32 / 4000  # two float32 per dimension, shared by all samples
    bits = {rate: code(block, rate).bits for rate in ("float32", "float16", "int8", "binary")}
    assert bits == {"float32": 1024, "float16": 512, "int8": 256 + scales, "binary": 32 + scales}


def test_more_bits_are_nearer_and_float32_is_the_embedding_itself(block: np.ndarray) -> None:
    assert np.array_equal(code(block, "float32").values, block)
    errors = [error(block, rate) for rate in ("float32", "float16", "int8", "binary")]
    assert errors == sorted(errors)
    steps = [error(block, f"entropy={step:g}") for step in USUAL["entropy"]]
    assert steps == sorted(steps)
    bits = [code(block, f"entropy={step:g}").bits for step in USUAL["entropy"]]
    assert bits == sorted(bits, reverse=True)


def test_int8_is_within_half_a_step_and_binary_has_two_levels_per_dimension(block: np.ndarray) -> None:
    step = np.ptp(block, axis=0) / 255
    assert (np.abs(code(block, "int8").values - block) <= step / 2 + 1e-4).all()
    decoded = code(block, "binary").values
    assert {len(np.unique(column)) for column in decoded.T} == {2}
    assert ((decoded > np.median(decoded, axis=0)) == (block > np.median(block, axis=0))).all()


@pytest.mark.parametrize("step", USUAL["entropy"])
def test_entropy_coding_costs_what_information_theory_says(block: np.ndarray, step: float) -> None:
    """Not less than the entropy of the symbols (that would be a miscount), and little more."""
    coded = code(block, f"entropy={step:g}")
    mean = block.mean(axis=0, dtype=np.float64)
    width = step * (block - mean).std()
    symbols = np.rint((block - mean) / width)
    counts = [np.unique(column, return_counts=True)[1] / len(block) for column in symbols.T]
    entropy = -sum(float((p * np.log2(p)).sum()) for p in counts)
    bits = coded.bits - coded.side_bits / len(block)
    assert entropy - 0.01 <= bits <= 1.02 * entropy + 1
    assert coded.side_bits == 64 * 32 + 96
    assert np.abs(coded.values - block).max() <= width / 2 * 1.001


@settings(max_examples=60, deadline=None)
@given(BLOCKS, st.sampled_from(expand(tuple(CODERS))))
def test_any_block_comes_back_with_its_shape(values: np.ndarray, rate: str) -> None:
    coded = code(values, rate)
    assert coded.values.shape == values.shape
    assert coded.values.dtype == np.float32
    assert np.isfinite(coded.values).all()
    assert math.isfinite(coded.bits)
    assert coded.bits > 0


def test_what_cannot_be_coded_is_an_error(block: np.ndarray) -> None:
    with pytest.raises(ScoreError, match="float16"):
        code(block * 1e6, "float16")
    with pytest.raises(ScoreError, match="too fine"):
        code(block, "entropy=1e-7")


def test_rates_that_cannot_be() -> None:
    for name in ("int4", "float32=2", "", "entropy_coded"):
        with pytest.raises(UsageError, match="no such rate"):
            expand((name,))
    for number in ("0", "-1", "x", "inf", "nan"):
        with pytest.raises(UsageError, match="bad number in a rate"):
            expand((f"entropy={number}",))


def test_without_the_coder_the_error_says_what_to_install(block: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "constriction", None)
    with pytest.raises(DependencyError, match=r"pip install 'constriction"):
        code(block, "entropy=1")
