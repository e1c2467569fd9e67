"""A module as an encoder: what it sees, how its features are pooled, and that batches do not matter."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from neuco_core.encode.encoding import Encoding
from neuco_core.errors import DataError, NeucoError, PluginError, UsageError
from neuco_core.specs import Method
from neuco_core.testing import TinyCubes, check_encoder
from neuco_extensions.models.images import Images, joined, numbers, tile_starts, words
from neuco_extensions.models.network import NetworkEncoder, reduced
from neuco_extensions.models.state import load_state, read_state

CUBES = TinyCubes(count=5, size=16)
RADAR = Images(("s1",), mean=(-12.0, -20.0), std=(5.0,), size=12)


class Tokens(nn.Module):
    """A class token of zeros, then a token for each pixel."""

    num_prefix_tokens = 1

    def forward_features(self, images: torch.Tensor) -> torch.Tensor:
        patches = images.flatten(2).transpose(1, 2)
        return torch.cat([torch.zeros_like(patches[:, :1]), patches], dim=1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.forward_features(images)[:, 1:].amax(dim=1)


def convolution() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(2, 8, 3), nn.BatchNorm2d(8))


def encode(build: Any, images: Any, **options: Any) -> np.ndarray:
    encoder = NetworkEncoder(build, images, **options)
    encoder.fit(CUBES)
    return encoder.encode(CUBES.read(CUBES.ids()))


@pytest.mark.parametrize("view", ["whole", "tiles", "crop", "native"])
def test_keeps_the_promises_of_an_encoder(view: str) -> None:
    images = Images(("s1/VH", "s1/VV"), 2.0, size=12, view=view)
    for seasons, dim in (("post", 8), ("pre", 8), ("concat", 32)):
        make = partial(NetworkEncoder, convolution, images, seasons=seasons)
        assert check_encoder(make, CUBES).shape == (5, dim)


def test_a_batch_on_a_device_gives_what_single_samples_give(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other device can be had here; the code for one runs if the processor goes by another name."""
    alone = encode(convolution, RADAR)
    encoder = NetworkEncoder(convolution, RADAR)
    encoder.fit(CUBES)
    encoder.to("cpu:0")
    together = encoder.encode(CUBES.read(CUBES.ids()))
    assert np.abs(together - alone).max() < 1e-5 * alone.std()


def test_normalisation_and_order_of_bands() -> None:
    batch = CUBES.read(CUBES.ids())
    images = Images(("s1/VH", "s1/VV"), 2.0, 1.0, (3.0, 4.0), (5.0, 6.0), view="native")
    expected = ((batch.pick("s1/VH", "s1/VV") + 1) / 2 - np.reshape([3, 4], (2, 1, 1))) / np.reshape([5, 6], (2, 1, 1))
    assert np.allclose(encode(Tokens, images), expected.mean(axis=(1, 3, 4)), atol=1e-5)
    assert np.allclose(encode(Tokens, images, pooling="max"), expected.max(axis=(3, 4)).mean(axis=1), atol=1e-5)
    assert np.array_equal(encode(Tokens, images, pooling="network"), encode(Tokens, images, pooling="max"))
    assert not encode(Tokens, images, pooling="class").any()


def test_tiles_see_the_whole_image_and_a_crop_does_not() -> None:
    edge = np.zeros((1, 2, 264, 264), np.float32)
    edge[..., 0] = 1  # only in the first column
    seen = {view: Images(("s1",), view=view).prepare(torch.from_numpy(edge)) for view in ("whole", "tiles", "crop")}
    assert {view: count for view, (_, count) in seen.items()} == {"whole": 1, "tiles": 4, "crop": 1}
    assert {view: bool(part.any()) for view, (part, _) in seen.items()} == {"whole": True, "tiles": True, "crop": False}
    assert [tile_starts(length, 224) for length in (224, 264, 500)] == [[0], [0, 40], [0, 138, 276]]


def test_several_inputs_go_by_name() -> None:
    class Two(nn.Module):
        def forward(self, images: dict[str, torch.Tensor]) -> list[torch.Tensor]:
            return [images["radar"], images["radar"] + images["optical"][:, :2]]

    inputs = {"radar": RADAR, "optical": Images(("s2l1c/B02", "s2l1c/B03"), 1000.0, size=12)}
    parts = [encode(nn.Identity, part) for part in inputs.values()]
    assert np.allclose(encode(Two, inputs), parts[0] + parts[1], atol=1e-4)
    with pytest.raises(UsageError, match="one view and one size"):
        NetworkEncoder(Two, {"radar": RADAR, "optical": Images(("s2l1c",), size=11)})


def test_two_thousand_features_become_a_thousand() -> None:
    rows = np.arange(4 * 2048, dtype=np.float32).reshape(4, 2048)
    assert np.array_equal(reduced(rows, 1024, "average"), rows.reshape(4, 1024, 2).mean(axis=2))
    assert reduced(rows, 2048, "average") is rows
    assert reduced(rows, 5, "average").shape == (4, 5)
    random = np.random.default_rng(0).standard_normal((2, 2048)).astype(np.float32)
    short = reduced(random, 1024, "project")
    assert abs(np.linalg.norm(short[0] - short[1]) / np.linalg.norm(random[0] - random[1]) - 1) < 0.1
    assert np.array_equal(reduced(random[1:], 1024, "project")[0], short[1])


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Images((), 1.0), "bands"),
        (lambda: Images(("s1",), 0.0), "scale"),
        (lambda: Images(("s1",), std=(0.0,)), "std"),
        (lambda: Images(("s1",), view="half"), "one of whole, tiles, crop, native"),
        (lambda: numbers("1 two", "mean"), "bad parameter mean"),
        (lambda: encode(Tokens, Images(("s1",), mean=(1.0, 2.0, 3.0))), "1 or 2 numbers"),
        (lambda: NetworkEncoder(Tokens, RADAR, pooling="sum"), "one of mean, max, class, network"),
        (lambda: NetworkEncoder(Tokens, RADAR, dim=2048), "1 to 1024"),
        (lambda: encode(nn.Identity, RADAR, pooling="class"), "no class of what the network gives"),
        (lambda: encode(nn.Identity, RADAR, pooling="network"), "the network does not pool"),
        (lambda: encode(lambda: nn.Flatten(2), RADAR), "NetworkEncoder.*prefix=1"),
        (lambda: encode(lambda: nn.Flatten(1), RADAR), "pooling=network"),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, error: str) -> None:
    with pytest.raises(NeucoError, match=error):
        make()


def test_texts_of_parameters_are_read_back() -> None:
    values = (0.5, 1612.9, 10000.0, -20.293, 0.0763333333)
    assert numbers(joined(values), "mean") == values
    assert words(joined(("s1/VV", "s1/VH"))) == ("s1/VV", "s1/VH")


def test_half_a_network_is_refused(tmp_path: Path) -> None:
    file, model = tmp_path / "weights", convolution()
    state = model.state_dict()
    torch.save({"epoch": 3, "state_dict": state}, file)
    assert read_state(file).keys() == state.keys()
    assert load_state(convolution(), read_state(file)).state_dict().keys() == state.keys()
    with pytest.raises(PluginError, match="1 parts missing, 1 too many"):
        load_state(model, {**{name: state[name] for name in list(state)[1:]}, "head.weight": state["0.bias"]})
    load_state(model, {**state, "head.weight": state["0.bias"]}, drop=("head.",))
    load_state(model, {**state, "decoder.weight": state["0.bias"]}, surplus=True)
    with pytest.raises(PluginError, match=r"0\.bias has another shape"):
        load_state(model, {**state, "0.bias": torch.zeros(3)})
    with pytest.raises(DataError, match="no such part"):
        read_state(file, within="teacher")
    torch.save({"model": nn.Identity()}, file)  # pickled code, not tensors
    with pytest.raises(DataError, match="weights cannot be read"):
        read_state(file)


def test_the_operations_of_an_adapted_network_are_counted() -> None:
    made = partial(NetworkEncoder, convolution, RADAR)  # 12 × 12 pixels, of which a convolution of 3 × 3 leaves 10 × 10
    method = Method(id="radar", encoder=made, requires=("torch",), bands=("s1/VV", "s1/VH"), tolerance=1e-4)
    assert Encoding(method, CUBES, {}).flops(CUBES.ids()[0]) == 2 * len(CUBES.seasons) * 2 * 9 * 8 * 10 * 10
