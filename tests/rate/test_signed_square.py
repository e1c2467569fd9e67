"""Signed roots that are read linearly are named; what is linear is not."""

from __future__ import annotations

import numpy as np
import pytest

from neuco_core import load_protocol, score
from neuco_core.tables.embeddings import Embeddings, make_embeddings, read_embeddings
from neuco_core.tables.labels import read_labels
from neuco_extensions.rate.signed_square import read_linearly
from tests.coded.test_coders import AEF


def roots(values: np.ndarray) -> np.ndarray:
    return np.rint(np.sign(values) * np.sqrt(np.abs(values)) * 127.5).clip(-127, 127)


@pytest.fixture(scope="module")
def bell() -> np.ndarray:
    return np.random.default_rng(4).standard_normal((500, 48)).astype(np.float32)


@pytest.mark.parametrize("unit", [1.0, 127.5, 127.0])
def test_signed_roots_on_a_linear_grid_are_named(bell: np.ndarray, unit: float) -> None:
    values = 0.8 * bell / np.abs(bell).max()
    assert "signed roots read linearly" in read_linearly((roots(values) / unit).astype(np.float32))
    unit_vectors = bell / np.linalg.norm(bell, axis=1, keepdims=True)
    assert "squared they are unit vectors" in read_linearly((roots(unit_vectors) / unit).astype(np.float32))


def test_what_is_linear_or_was_decoded_is_not_named(bell: np.ndarray) -> None:
    values = bell / np.abs(bell).max()
    assert read_linearly(values) == ""
    assert read_linearly((np.rint(values * 127) / 127).astype(np.float32)) == ""
    assert read_linearly(np.rint(values * 127).astype(np.float32)) == ""
    q = roots(values)
    assert read_linearly((np.sign(q) * (q / 127.5) ** 2).astype(np.float32)) == ""
    assert read_linearly(np.random.default_rng(0).integers(0, 2, (300, 20)).astype(np.float32)) == ""


# Justified: these rows may not be redistributed; the test on made-up rows always runs.
@pytest.mark.skipif(not AEF.is_dir(), reason="the AlphaEarth rows are not here")
def test_alphaearth_read_linearly_is_named_and_costs_quality() -> None:
    right = read_embeddings(AEF / "embeddings" / "alphaearth64.csv")
    wrong = make_embeddings(right.ids, (roots(right.values) / 127.5).astype(np.float32))
    assert read_linearly(right.values) == ""
    assert "squared they are unit vectors" in read_linearly(wrong.values)
    labels = [read_labels(path, task=path.stem, kind="regression") for path in sorted(AEF.glob("labels/*__regr.csv"))]
    rules = load_protocol("ridge").with_(k=5)

    def mean(embeddings: Embeddings) -> float:
        return float(np.mean([score(embeddings, of_task, rules).mean for of_task in labels]))

    assert mean(right) > mean(wrong) + 0.01
