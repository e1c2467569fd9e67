"""Principal components: orthogonal, ordered by variance, and equal to a plain decomposition."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import IncrementalPCA

from neuco_core.encoders import shrink
from neuco_core.errors import DataError
from neuco_core.testing import GREY_BANDS, LANDSAT_BANDS, TinyCubes, check_encoder
from neuco_methods.pca import make_encoder
from neuco_methods.pca.encoder import Components, split_evenly

LANDSAT = TinyCubes(count=40, bands=LANDSAT_BANDS, seasons=("scene",), size=8)


def test_keeps_the_promises_of_an_encoder() -> None:
    assert check_encoder(make_encoder).shape == (12, 11)
    assert check_encoder(lambda: make_encoder(dim=8), LANDSAT).shape == (40, 8)
    assert check_encoder(make_encoder, TinyCubes(bands=GREY_BANDS, seasons=("scene",), size=8)).shape == (12, 11)


def test_equals_a_plain_decomposition() -> None:
    method = make_encoder(dim=10)
    method.fit(LANDSAT)
    batch = LANDSAT.read(LANDSAT.ids())
    flat = method._scale(batch.values).reshape(40, -1).astype(np.float64)
    centred = flat - flat.mean(axis=0)
    _, singular, axes = np.linalg.svd(centred, full_matrices=False)
    values = method.encode(batch)
    assert np.allclose(np.abs(values), np.abs(centred @ axes[:10].T), atol=1e-3)
    assert np.allclose(np.linalg.norm(values, axis=0), singular[:10], rtol=1e-4)


def test_parts_that_fit_little_memory_keep_most_of_the_variance() -> None:
    # A row of 6 × 48 × 48 doubles takes 0.1 MB, so that 1 MB holds few of the 40.
    source = TinyCubes(count=40, bands=LANDSAT_BANDS, seasons=("scene",), size=48)
    variances = []
    for memory in (1, 256):
        method = make_encoder(dim=5, size=48, memory_mb=memory)
        method.fit(source)
        variances.append(float(method.encode(source.read(source.ids())).var(axis=0).sum()))
    assert variances[0] == pytest.approx(variances[1], rel=0.02)


def test_parts_give_what_scikit_learn_gives() -> None:
    rows = np.random.default_rng(0).normal(size=(90, 30)) * np.linspace(5, 1, 30) + 3
    ours, theirs = Components(30, 6), IncrementalPCA(n_components=6)
    for start in (0, 30, 60):
        ours.add(rows[start : start + 30])
        theirs.partial_fit(rows[start : start + 30])
    assert np.allclose(ours.mean, theirs.mean_)
    assert np.allclose(ours.singular, theirs.singular_values_)
    assert np.allclose(np.abs(ours.axes), np.abs(theirs.components_), atol=1e-8)


def test_whitened_components_have_equal_variance() -> None:
    method = make_encoder(dim=6, whiten=True)
    method.fit(LANDSAT)
    assert np.allclose(method.encode(LANDSAT.read(LANDSAT.ids())).std(axis=0, ddof=1), 1, rtol=1e-3)


def test_shrinking_averages_cells_and_leaves_small_images() -> None:
    image = np.arange(256.0).reshape(1, 1, 16, 16)
    assert np.allclose(shrink(image, 8)[0, 0, 0, 0], image[0, 0, :2, :2].mean())
    assert np.allclose(shrink(np.ones((1, 1, 33, 9)), 8), 1)
    assert shrink(image, 32) is image


def test_no_part_is_shorter_than_asked() -> None:
    parts = split_evenly([str(i) for i in range(257)], 64)
    assert min(map(len, parts)) >= 64
    assert [name for part in parts for name in part] == [str(i) for i in range(257)]


def test_one_sample_is_refused() -> None:
    with pytest.raises(DataError, match="at least 2"):
        make_encoder().fit(TinyCubes(count=1))
