"""Band statistics against numpy, one band at a time."""

from __future__ import annotations

import numpy as np
import pytest

from neuco_core.encoders import PUBLISHED_STATISTICS
from neuco_core.errors import UsageError
from neuco_core.testing import LANDSAT_BANDS, TinyCubes, check_encoder
from neuco_methods.band_statistics import make_encoder


def encode(cubes: TinyCubes, seasons: str) -> np.ndarray:
    method = make_encoder(seasons)
    method.fit(cubes)
    return np.asarray(method.encode(cubes.read(cubes.ids())))


@pytest.mark.parametrize(("seasons", "dim"), [("concat", 972), ("post", 243), ("pre", 243)])
def test_keeps_the_promises_of_an_encoder(seasons: str, dim: int) -> None:
    assert check_encoder(lambda: make_encoder(seasons)).shape[1] == dim
    landsat = TinyCubes(bands=LANDSAT_BANDS, seasons=("scene",), size=8)
    assert check_encoder(lambda: make_encoder(seasons), landsat).shape[1] == 54


def test_the_numbers_are_those_of_numpy() -> None:
    cubes = TinyCubes()
    season, band = 2, 5
    mean, std = PUBLISHED_STATISTICS[cubes.bands[band]]
    image = (cubes.read(cubes.ids()).values[3, season, band] - mean) / std
    expected = [image.mean(), image.std(), image.min(), *np.percentile(image, [5, 25, 50, 75, 95]), image.max()]
    start = (season * 27 + band) * 9
    assert np.allclose(encode(cubes, "concat")[3, start : start + 9], expected, atol=1e-5)


def test_post_is_the_mean_over_the_seasons() -> None:
    cubes = TinyCubes()
    each = encode(cubes, "concat").reshape(12, 4, 243)
    assert np.allclose(encode(cubes, "post"), each.mean(axis=1), atol=1e-5)
    assert not np.allclose(encode(cubes, "pre"), encode(cubes, "post"), atol=0.01)


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(UsageError, match="pre, post, concat"):
        make_encoder("sometimes")
