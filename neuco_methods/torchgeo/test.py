"""The TorchGeo methods against a stand-in that has TorchGeo's interface: get_weight, get_model, weights with meta.

``tests/models`` runs them with TorchGeo itself, where it is installed.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from neuco_core.encode.encoding import make_encoder as make
from neuco_core.encode.requirements import check_bands, full_params
from neuco_core.errors import ChecksumError, DataError, PluginError, UnpinnedError, UsageError
from neuco_core.fetch.cache import hash_file
from neuco_core.testing import LANDSAT_BANDS, TinyCubes, check_encoder
from neuco_extensions.models.torchgeo import find_row, table, torchgeo_encoder, torchgeo_method
from neuco_methods.torchgeo import NETWORKS, neuco_methods

RESNET = NETWORKS["torchgeo_resnet18_moco"][0]
CUBES = TinyCubes(count=6, size=8)


class Network(nn.Module):
    def __init__(self, in_chans: int, num_classes: int) -> None:
        super().__init__()
        assert num_classes == 0
        self.conv = nn.Conv2d(in_chans, 512, 3)

    def forward_features(self, images: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(images))


def state() -> dict[str, torch.Tensor]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return {**Network(13, 0).state_dict(), "fc.weight": torch.zeros(3), "fc.bias": torch.zeros(3)}


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of weights, and a TorchGeo that knows it."""
    path = tmp_path / "weights.pth"
    torch.save(state(), path)
    models = ModuleType("torchgeo.models")
    vars(models).update(
        get_weight=lambda name: SimpleNamespace(meta={"in_chans": 13, "bands": ["B1"] * 13}),
        get_model=lambda name, **options: Network(**options),
    )
    monkeypatch.setitem(sys.modules, "torchgeo", ModuleType("torchgeo"))
    monkeypatch.setitem(sys.modules, "torchgeo.models", models)
    monkeypatch.setattr("neuco_core.encoders.import_torchvision", lambda: None)
    monkeypatch.setattr("neuco_extensions.models.torchgeo.check_digits", lambda row, path: None)
    return path


def encoder(checkpoint: Path, **params: object) -> object:
    method = torchgeo_method("x", RESNET)
    return torchgeo_encoder(checkpoint=checkpoint, **full_params(method, {"size": 8, **params}))


def test_keeps_the_promises_of_an_encoder(checkpoint: Path) -> None:
    for seasons in ("post", "pre"):
        assert check_encoder(partial(encoder, checkpoint, seasons=seasons), CUBES).shape == (6, 512)


def test_takes_the_thirteen_bands_by_name_and_leaves_the_cube_alone(checkpoint: Path) -> None:
    method = encoder(checkpoint)
    method.fit(CUBES)  # type: ignore[attr-defined]
    batch = CUBES.read(CUBES.ids())
    before = batch.values.copy()
    values = method.encode(batch)  # type: ignore[attr-defined]
    assert np.array_equal(batch.values, before)
    network = Network(13, 0)
    network.load_state_dict({key: value for key, value in state().items() if not key.startswith("fc.")})
    images = torch.from_numpy(batch.values[0, :, 2:15] / 10000)
    with torch.inference_mode():
        assert np.allclose(values[0], network.forward_features(images).mean(dim=(0, 2, 3)).numpy(), atol=1e-5)


def test_wrong_weights_are_refused(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save({"conv.bias": torch.zeros(512), "more": torch.zeros(1)}, checkpoint)
    with pytest.raises(PluginError, match="1 parts missing, 1 too many"):
        encoder(checkpoint).fit(CUBES)  # type: ignore[attr-defined]
    monkeypatch.undo()
    with pytest.raises(ChecksumError, match="begins with 59bfdff9"):
        encoder(checkpoint).fit(CUBES)  # type: ignore[attr-defined]


def test_a_file_whose_name_has_no_digits_is_pinned_by_its_source_alone(checkpoint: Path) -> None:
    row = find_row("ViTBase16_Weights.SENTINEL2_ALL_MAE")
    assert (row.digits, row.remote.pinned) == ("", False)
    assert find_row(RESNET).digits == "59bfdff9" != hash_file(checkpoint)[:8]


def test_the_table_has_all_weights_and_says_why_some_cannot_be_run() -> None:
    rows = table().values()
    assert (len(rows), sum(not row.lacking for row in rows)) == (76, 43)
    for row in rows:
        if not row.lacking:
            method = torchgeo_method("x", row.weights)
            assert method.bands == row.bands
            assert len(row.mean) in (1, len(row.bands))
            assert method.params["view"] == "whole"
    with pytest.raises(UsageError, match="trained on images of 8 bits"):
        find_row("Swin_V2_B_Weights.SENTINEL2_SI_RGB_SATLAS")
    with pytest.raises(UsageError, match="no weights 'ResNet9'"):
        find_row("ResNet9")


def test_weights_that_nobody_has_verified_say_what_to_do() -> None:
    for method in neuco_methods():
        with pytest.raises(UnpinnedError, match=f"neuco data pin --method {method.id.removesuffix('_pre')}`"):
            make(method, dict(method.params))


def test_six_bands_are_not_thirteen() -> None:
    for method in neuco_methods():
        with pytest.raises(DataError, match=r"needs 13 bands and dataset 'olinda' has 6: 13 are missing"):
            check_bands(method, "olinda", LANDSAT_BANDS)
