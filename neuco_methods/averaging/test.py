"""The averaging baseline against its definition, band by band."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import zoom

from neuco_core.encoders import PUBLISHED_STATISTICS, resize
from neuco_core.errors import UsageError
from neuco_core.testing import GREY_BANDS, LANDSAT_BANDS, TinyCubes, check_encoder
from neuco_methods.averaging import make_encoder
from neuco_methods.averaging.encoder import channel_matrix

L1C = [band for band in PUBLISHED_STATISTICS if band.startswith("s2l1c/")]
L2A = [band for band in PUBLISHED_STATISTICS if band.startswith("s2l2a/")]
RADAR = ["s1/VV", "s1/VH"]
GROUPS = {
    "paper": [
        [band for band in L1C + L2A if band[-3:] not in ("B10", "B11", "B12")],
        ["s2l1c/B10"],
        ["s2l1c/B11", "s2l1c/B12", "s2l2a/B11", "s2l2a/B12"],
        RADAR,
    ],
    "notebook": [L1C[:9] + L2A[:9], L1C[9:10], L1C[10:] + L2A[10:], RADAR],
}


@pytest.mark.parametrize("variant", ["paper", "notebook"])
def test_is_the_paper_s_1024_numbers(variant: str) -> None:
    cubes = TinyCubes(size=33)
    batch = cubes.read(cubes.ids())
    scaled = {}
    for i, band in enumerate(cubes.bands):
        mean, std = PUBLISHED_STATISTICS[band]
        scaled[band] = resize((batch.values[:, :, i] - mean) / std, 8, 8)
    channels = [np.mean([scaled[band] for band in group], axis=0) for group in GROUPS[variant]]
    expected = np.stack(channels, axis=2).reshape(12, 1024)
    method = make_encoder(variant)
    method.fit(cubes)
    assert np.allclose(method.encode(batch), expected, atol=1e-4)


@pytest.mark.parametrize("size", [264, 32, 8])
def test_bilinear_is_scipy_s_zoom(size: int) -> None:
    image = np.random.default_rng(1).normal(size=(size, size))
    assert np.allclose(resize(image, 8, 8), zoom(image, 8 / size, order=1), atol=1e-5)


def test_landsat_has_two_channels() -> None:
    matrix = channel_matrix(LANDSAT_BANDS, "paper")
    assert np.allclose(matrix, [[0.25] * 4 + [0] * 2, [0] * 4 + [0.5] * 2])


@pytest.mark.parametrize(("bands", "dim"), [(None, 1024), (LANDSAT_BANDS, 128), (GREY_BANDS, 64)])
def test_keeps_the_promises_of_an_encoder(bands: tuple[str, ...] | None, dim: int) -> None:
    source = TinyCubes(bands=bands, seasons=("scene",), size=8) if bands else TinyCubes()
    assert check_encoder(make_encoder, source).shape[1] == dim


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(UsageError, match="paper, notebook"):
        make_encoder(bands="best")
