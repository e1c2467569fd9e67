"""The TorchGeo adapter against a stand-in that has TorchGeo's interface: get_weight, get_model, weights with meta.

With TorchGeo itself installed, the same tests run against its real networks with random weights.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest
import torch
from torch import nn

from neuco_core.encode.run import check_bands
from neuco_core.errors import ChecksumError, DataError, FetchError, OfflineError, PluginError, UsageError
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
    url = "https://example.org/resnet18-59bfdff9.pth"

    def __init__(self, in_chans: int = 13, fetch: Callable[[], dict[str, Any]] = state) -> None:
        self.meta = {"model": "resnet18", "in_chans": in_chans}
        self._fetch = fetch

    @staticmethod
    def transforms(images: torch.Tensor) -> torch.Tensor:
        return images.div_(10000)  # in place, as some of TorchGeo's are

    def get_state_dict(self, **options: Any) -> dict[str, Any]:
        assert options == {"progress": False, "check_hash": True, "map_location": "cpu", "weights_only": True}
        return self._fetch()


@pytest.fixture
def torchgeo(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    known = SimpleNamespace(weights=Weights())

    def get_weight(name: str) -> Weights:
        if name != RESNET:
            raise ValueError(name)
        weights: Weights = known.weights
        return weights

    models = ModuleType("torchgeo.models")
    vars(models).update(get_weight=get_weight, get_model=lambda name, **options: Network(**options))
    monkeypatch.setitem(sys.modules, "torchgeo", ModuleType("torchgeo"))
    monkeypatch.setitem(sys.modules, "torchgeo.models", models)
    monkeypatch.delenv("NEUCO_OFFLINE", raising=False)
    return known


def raises(error: Exception) -> Callable[[], dict[str, Any]]:
    def fetch() -> dict[str, Any]:
        raise error

    return fetch


@pytest.mark.usefixtures("torchgeo")
def test_keeps_the_promises_of_an_encoder() -> None:
    for seasons in ("post", "pre"):
        assert check_encoder(partial(make_encoder, RESNET, seasons), CUBES).shape == (6, 512)


@pytest.mark.usefixtures("torchgeo")
def test_takes_the_thirteen_bands_by_name_and_leaves_the_cube_alone() -> None:
    method = make_encoder(RESNET)
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


def test_weights_out_of_reach_say_what_to_do(torchgeo: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    torchgeo.weights = Weights(fetch=raises(URLError("no route to host")))
    with pytest.raises(FetchError, match=r"cannot be downloaded: .*no route.*put it to .*resnet18-59bfdff9\.pth"):
        make_encoder(RESNET).fit(CUBES)
    monkeypatch.setenv("NEUCO_OFFLINE", "1")
    with pytest.raises(OfflineError, match="NEUCO_OFFLINE"):
        make_encoder(RESNET).fit(CUBES)


def test_wrong_weights_are_refused(torchgeo: SimpleNamespace) -> None:
    torchgeo.weights = Weights(fetch=raises(RuntimeError("invalid hash value")))
    with pytest.raises(ChecksumError, match="invalid hash"):
        make_encoder(RESNET).fit(CUBES)
    torchgeo.weights = Weights(fetch=lambda: {"conv.bias": torch.zeros(512), "more": torch.zeros(1)})
    with pytest.raises(PluginError, match="1 parts missing, 1 too many"):
        make_encoder(RESNET).fit(CUBES)
    torchgeo.weights = Weights(in_chans=3)
    with pytest.raises(UsageError, match=r"expected 13, got 3"):
        make_encoder(RESNET).fit(CUBES)
    with pytest.raises(UsageError, match="no weights 'ResNet9'"):
        make_encoder("ResNet9").fit(CUBES)


def test_six_bands_are_not_thirteen() -> None:
    for method in neuco_methods():
        with pytest.raises(DataError, match=r"needs 13 bands and dataset 'olinda' has 6: 13 are missing"):
            check_bands(method, "olinda", LANDSAT_BANDS)


def test_the_names_are_those_of_torchgeo() -> None:
    if importlib.util.find_spec("torchgeo") is None:
        # TorchGeo brings dozens of packages; the stand-in above has the part of its interface that is used.
        return
    from torchgeo.models import get_weight  # type: ignore[import-not-found]

    for weights, _, _ in NETWORKS.values():
        assert get_weight(weights).meta["in_chans"] == 13
