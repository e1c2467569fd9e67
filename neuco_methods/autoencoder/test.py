"""The autoencoder: training helps, the prior is a density, and the codes are whole numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from neuco_core.encode.encoding import one_thread
from neuco_core.errors import UsageError
from neuco_core.testing import GREY_BANDS, LANDSAT_BANDS, TinyCubes, check_encoder
from neuco_methods.autoencoder import make_encoder
from neuco_methods.autoencoder.model import FactorisedPrior, halvings

LANDSAT = TinyCubes(count=16, bands=LANDSAT_BANDS, size=8)


def error_after(steps: int) -> float:
    method = make_encoder(steps=steps)
    with one_thread():
        method.fit(LANDSAT)
        images = torch.from_numpy(method._images(LANDSAT))
        with torch.inference_mode():
            again = method.model.up(torch.round(method.model.down(images)))
    return float(((again - images) ** 2).mean())


@pytest.mark.parametrize(("seasons", "dim"), [("concat", 1024), ("post", 256), ("pre", 256)])
def test_keeps_the_promises_of_an_encoder(seasons: str, dim: int) -> None:
    assert check_encoder(lambda: make_encoder(seasons, steps=8, fidelity=100.0)).shape == (12, dim)


@pytest.mark.parametrize("size", [3, 5, 12, 40])
def test_odd_sizes_and_other_bands(size: int) -> None:
    source = TinyCubes(count=3, bands=GREY_BANDS, seasons=("scene",), size=size)
    method = make_encoder(steps=1)
    method.fit(source)
    values = method.encode(source.read(source.ids()))
    assert values.shape == (3, 256)
    again = method.model.up(torch.from_numpy(values).reshape(3, 16, 4, 4))
    assert again.shape == (3, 1, *[{3: 4, 5: 4, 12: 8, 40: 32}[size]] * 2)


def test_training_brings_the_image_back() -> None:
    assert error_after(150) < 0.7 * error_after(0)


def test_codes_are_whole_numbers_and_cost_bits() -> None:
    method = make_encoder(steps=60)
    with one_thread():
        method.fit(LANDSAT)
        batch = LANDSAT.read(LANDSAT.ids())
        values = method.encode(batch)
        bits = method.bits(batch)
    assert np.array_equal(values, np.round(values))
    assert bits.shape == (16,)
    assert (bits > 0).all()


def test_the_prior_spends_what_a_density_allows() -> None:
    prior = FactorisedPrior(2)
    with torch.no_grad():
        prior.mean.copy_(torch.tensor([0.3, -2.0]).reshape(2, 1, 1))
    whole = torch.arange(-60.0, 61.0).expand(2, 1, -1)
    mass = (2.0 ** -prior.bits(whole)).sum(dim=(1, 2))
    # A code can be read back only if the masses of all whole numbers add up to at most 1, the least mass apart.
    assert torch.allclose(mass, torch.ones(2), atol=1e-4)


def test_images_are_halved_down_to_the_grid() -> None:
    assert [halvings(size) for size in (4, 8, 16, 32)] == [0, 1, 2, 3]


def test_training_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    make_encoder(steps=1).fit(LANDSAT)
    assert torch.equal(before, torch.get_rng_state())


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match="positive"):
        make_encoder(channels=0)
