"""MOSAIKS: the features of a convolution written out, and both ways to bring seasons together."""

from __future__ import annotations

import numpy as np
import pytest

from neuco_core.errors import DataError, UsageError
from neuco_core.testing import GREY_BANDS, LANDSAT_BANDS, TinyCubes, check_encoder
from neuco_methods.mosaiks import encoder, make_encoder

SMALL = TinyCubes(count=6, bands=LANDSAT_BANDS, size=6)


@pytest.mark.parametrize("seasons", ["pre", "post"])
def test_keeps_the_promises_of_an_encoder(seasons: str) -> None:
    assert check_encoder(lambda: make_encoder(seasons, filters=64)).shape == (12, 128)
    landsat = TinyCubes(bands=LANDSAT_BANDS, seasons=("scene",), size=8)
    assert check_encoder(lambda: make_encoder(seasons), landsat).shape == (12, 1024)
    assert check_encoder(make_encoder, TinyCubes(bands=GREY_BANDS, seasons=("scene",), size=8)).shape == (12, 1024)


def test_a_feature_is_the_mean_of_the_thresholded_response() -> None:
    method = make_encoder(filters=5)
    method.fit(SMALL)
    image = method._scale(SMALL.read(SMALL.ids()).values[0])[1]
    weight, offset = method._weight.numpy().reshape(5, 6, 3, 3), method._offset.numpy()[:, 0]
    response = np.array(
        [[(weight * image[:, y : y + 3, x : x + 3]).sum(axis=(1, 2, 3)) + offset for x in range(4)] for y in range(4)]
    )
    expected = [np.maximum(sign * response, 0).mean(axis=(0, 1)) for sign in (1, -1)]
    assert np.allclose(method._features(image[None])[0], np.concatenate(expected), atol=1e-4)


def test_tiles_change_nothing_but_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    method = make_encoder(filters=5)
    method.fit(SMALL)
    images = method._scale(SMALL.read(SMALL.ids()).values[0])
    whole = method._features(images)
    for tile in (1, 9, 12):  # of 4 × 4 places: a line each; two lines; three, and one that is left
        monkeypatch.setattr(encoder, "TILE", tile)
        assert np.allclose(method._features(images), whole, atol=1e-5)


def test_features_have_one_scale() -> None:
    method = make_encoder(filters=32)
    method.fit(SMALL)
    values = method.encode(SMALL.read(SMALL.ids()))
    assert np.allclose(values.mean(axis=0), 0, atol=1e-4)
    spread = values.std(axis=0)
    assert np.allclose(spread[spread > 0.5], 1, atol=1e-3)


def test_one_season_makes_pre_and_post_the_same() -> None:
    one = TinyCubes(count=6, bands=LANDSAT_BANDS, seasons=("scene",), size=8)
    four = SMALL
    results = {}
    for source in (one, four):
        for seasons in ("pre", "post"):
            method = make_encoder(seasons, filters=16)
            method.fit(source)
            results[len(source.seasons), seasons] = method.encode(source.read(source.ids()))
    assert np.array_equal(results[1, "pre"], results[1, "post"])
    assert not np.allclose(results[4, "pre"], results[4, "post"], atol=0.1)


def test_another_seed_picks_other_patches() -> None:
    first, second = make_encoder(filters=8), make_encoder(filters=8, seed=7)
    for method in (first, second):
        method.fit(SMALL)
    assert not np.allclose(first._weight.numpy(), second._weight.numpy())


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(DataError, match="smaller than the kernel"):
        make_encoder(kernel=9).fit(SMALL)
    with pytest.raises(UsageError, match="at least 1"):
        make_encoder(filters=0)
