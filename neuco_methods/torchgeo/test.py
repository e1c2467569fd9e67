"""The TorchGeo adapter against a stand-in that has TorchGeo's interface: get_weight, get_model, weights with meta.

With TorchGeo itself installed, the same tests run against its real networks with random weights.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from neuco_core.encode.run import check_bands
from neuco_core.encode.run import make_encoder as make
from neuco_core.encoders import import_torchvision
from neuco_core.errors import ChecksumError, DataError, PluginError, UnpinnedError, UsageError
from neuco_core.fetch.cache import hash_file
from neuco_core.testing import LANDSAT_BANDS, TinyCubes, check_encoder
from neuco_methods.torchgeo import NETWORKS, make_encoder, neuco_methods

RESNET = NETWORKS["torchgeo_resnet18_moco"][0]
CUBES = TinyCubes(count=6, size=8)


class Network(nn.Module):
    def __init__(self, in_chans: int, num_classes: int) -> None:
        super().__init__()
        assert num_classes == 0
        self.conv = nn.Conv2d(in_chans, 512, 3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(images)).mean(dim=(2, 3))


def state() -> dict[str, torch.Tensor]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return {**Network(13, 0).state_dict(), "fc.weight": torch.zeros(3), "fc.bias": torch.zeros(3)}


class Weights:
    def __init__(self, digits: str, in_chans: int = 13) -> None:
        self.meta = {"model": "resnet18", "in_chans": in_chans}
        self.url = f"https://example.org/resnet18-{digits}.pth"

    @staticmethod
    def transforms(images: torch.Tensor) -> torch.Tensor:
        return images.div_(10000)  # in place, as some of TorchGeo's are


def save(path: Path, parts: dict[str, torch.Tensor]) -> str:
    """A file of weights; gives the digits that TorchGeo would put into its name."""
    torch.save(parts, path)
    return hash_file(path)[:8]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "weights.pth"


@pytest.fixture
def torchgeo(monkeypatch: pytest.MonkeyPatch, checkpoint: Path) -> SimpleNamespace:
    known = SimpleNamespace(weights=Weights(save(checkpoint, state())))

    def get_weight(name: str) -> Weights:
        if name != RESNET:
            raise ValueError(name)
        weights: Weights = known.weights
        return weights

    models = ModuleType("torchgeo.models")
    vars(models).update(get_weight=get_weight, get_model=lambda name, **options: Network(**options))
    monkeypatch.setitem(sys.modules, "torchgeo", ModuleType("torchgeo"))
    monkeypatch.setitem(sys.modules, "torchgeo.models", models)
    monkeypatch.setattr("neuco_methods.torchgeo.encoder.import_torchvision", lambda: None)
    return known


@pytest.mark.usefixtures("torchgeo")
def test_keeps_the_promises_of_an_encoder(checkpoint: Path) -> None:
    for seasons in ("post", "pre"):
        assert check_encoder(partial(make_encoder, RESNET, checkpoint, seasons), CUBES).shape == (6, 512)


@pytest.mark.usefixtures("torchgeo")
def test_takes_the_thirteen_bands_by_name_and_leaves_the_cube_alone(checkpoint: Path) -> None:
    method = make_encoder(RESNET, checkpoint)
    method.fit(CUBES)
    batch = CUBES.read(CUBES.ids())
    before = batch.values.copy()
    values = method.encode(batch)
    assert np.array_equal(batch.values, before)
    network = Network(13, 0)
    network.load_state_dict({key: value for key, value in state().items() if not key.startswith("fc.")})
    images = torch.from_numpy(batch.values[0, :, 2:15] / 10000)
    with torch.inference_mode():
        assert np.allclose(values[0], network(images).mean(dim=0).numpy(), atol=1e-5)


def test_wrong_weights_are_refused(torchgeo: SimpleNamespace, checkpoint: Path) -> None:
    torchgeo.weights = Weights("00000000")
    with pytest.raises(ChecksumError, match="begins with 00000000"):
        make_encoder(RESNET, checkpoint).fit(CUBES)
    torchgeo.weights = Weights(save(checkpoint, {"conv.bias": torch.zeros(512), "more": torch.zeros(1)}))
    with pytest.raises(PluginError, match="1 parts missing, 1 too many"):
        make_encoder(RESNET, checkpoint).fit(CUBES)
    torchgeo.weights = Weights("00000000", in_chans=3)
    with pytest.raises(UsageError, match=r"expected 13, got 3"):
        make_encoder(RESNET, checkpoint).fit(CUBES)
    with pytest.raises(UsageError, match="no weights 'ResNet9'"):
        make_encoder("ResNet9", checkpoint).fit(CUBES)


def test_weights_that_nobody_has_verified_say_what_to_do() -> None:
    for method in neuco_methods():
        with pytest.raises(UnpinnedError, match=f"neuco data pin --method {method.id}"):
            make(method, dict(method.params))


def test_six_bands_are_not_thirteen() -> None:
    for method in neuco_methods():
        with pytest.raises(DataError, match=r"needs 13 bands and dataset 'olinda' has 6: 13 are missing"):
            check_bands(method, "olinda", LANDSAT_BANDS)


def test_the_real_networks_take_weights_of_the_same_form(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("torchgeo") is None:
        # TorchGeo brings dozens of packages; the stand-in above has the part of its interface that is used.
        return
    import_torchvision()
    from torchgeo.models import get_model, get_weight  # type: ignore[import-not-found]

    for weights, dim, _, address in NETWORKS.values():
        entry = get_weight(weights)
        assert entry.url.removeprefix("https://hf.co/").replace("/resolve/", "@") == address.removeprefix("hf://")
        digits = save(checkpoint, get_model(entry.meta["model"], in_chans=13, num_classes=0).state_dict())
        # Random weights have another hash than the one in the file's name.
        known = SimpleNamespace(url=f"x-{digits}.pth", meta=entry.meta, transforms=entry.transforms)
        monkeypatch.setattr("neuco_methods.torchgeo.encoder.find_weights", {weights: known}.get)
        encoder = make_encoder(weights, checkpoint)
        encoder.fit(CUBES)
        assert encoder.encode(CUBES.read(CUBES.ids()[:1])).shape == (1, dim)
