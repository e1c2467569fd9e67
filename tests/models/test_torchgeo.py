"""The table of TorchGeo's weights against TorchGeo: bands, normalisation, networks and what the adapter gives."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
import torch
from torchgeo.models import get_weight

from benchmarks import torchgeo_table
from neuco_core.encode.encoding import one_thread
from neuco_core.encode.requirements import full_params
from neuco_core.testing import TinyCubes, check_encoder
from neuco_extensions.models.images import Images
from neuco_extensions.models.network import WithWavelengths
from neuco_extensions.models.torchgeo import TABLE, Weights, bare_network, find_row, table, torchgeo_encoder
from neuco_methods.torchgeo import NETWORKS, neuco_methods

RUNNABLE = [row for row in table().values() if not row.lacking]
LARGE = ("vit_large_patch16_224", "vit_huge_patch14_224", "dofa_large_patch16_224")  # gigabytes; built on no memory
CUBES = TinyCubes(count=2, size=32)


def test_the_table_is_what_torchgeo_has() -> None:
    assert torchgeo_table.text() == TABLE.read_text(encoding="utf-8")


@pytest.mark.parametrize("row", RUNNABLE, ids=lambda row: row.weights)
def test_images_are_prepared_as_the_library_does(row: Weights) -> None:
    """With the library's own view the numbers are those of its transforms."""
    images = torch.rand(2, len(row.bands), 264, 264, generator=torch.Generator().manual_seed(1)) * 3000
    view = row.view if row.view != "centre" else "native"
    ours = Images(row.bands, row.scale, 0.0, row.mean, row.std, row.size, view).prepare(images)[0]
    if row.model.startswith("dofa"):
        assert get_weight(row.weights).transforms(images).shape[-2:] == (row.size, row.size)  # cut, and nothing else
        return
    assert torch.allclose(ours, get_weight(row.weights).transforms(images.clone()), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("row", RUNNABLE, ids=lambda row: row.weights)
def test_networks_take_the_bands_of_the_table(row: Weights) -> None:
    with torch.device("meta"):  # shapes without memory: the largest has 600 million parameters
        model = bare_network(row)
    if not row.model.startswith("dofa"):
        weight = (model.patch_embed.proj if hasattr(model, "patch_embed") else model.conv1).weight
        assert weight.shape[1] == len(row.bands) == get_weight(row.weights).meta["in_chans"]
        stated = [str(name).upper() for name in get_weight(row.weights).meta["bands"]]
        assert [band.partition("/")[2].replace("B0", "B") for band in row.bands] == [
            name.replace("B0", "B") for name in stated
        ]


def save(row: Weights, path: Path, seed: int = 0) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = bare_network(row)
    head = {"fc.weight": torch.zeros(3, 4)} if "resnet" in row.model else {"head.weight": torch.zeros(3, 4)}
    torch.save({**model.state_dict(), **head}, path)
    return model.eval()


@pytest.mark.parametrize("name", NETWORKS)
def test_shipped_methods_give_rows_of_their_size(name: str, checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuco_extensions.models.torchgeo.check_digits", lambda row, path: None)  # random weights
    method = next(method for method in neuco_methods() if method.id == name)
    model = save(find_row(method.params["weights"]), checkpoint)
    assert sum(part.numel() for part in model.parameters()) == method.n_parameters
    encoder = torchgeo_encoder(checkpoint=checkpoint, **full_params(method, {}))
    encoder.fit(CUBES)
    batch = CUBES.read(CUBES.ids()[:1])
    values = encoder.encode(batch)
    assert values.shape == (1, method.dim)
    images = Images(("s2l1c",), method.params["scale"], size=224).prepare(torch.from_numpy(batch.pick("s2l1c")[0]))[0]
    with torch.inference_mode():
        if "resnet" in name:
            pooled = model.forward_features(images).mean(dim=(2, 3)).mean(dim=0).numpy()
            expected = pooled.reshape(-1, len(pooled) // method.dim).mean(axis=1)
        elif "vit" in name:
            expected = model.forward_features(images)[:, 1:].mean(dim=(0, 1)).numpy()
        else:
            return
    assert np.allclose(values[0], expected, rtol=1e-4, atol=1e-5)


def test_a_resnet_keeps_the_promises_of_an_encoder(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuco_extensions.models.torchgeo.check_digits", lambda row, path: None)
    method = next(neuco_methods())
    save(find_row(method.params["weights"]), checkpoint)
    params = full_params(method, {"size": 32, "view": "native"})
    assert check_encoder(lambda: torchgeo_encoder(checkpoint=checkpoint, **params), TinyCubes(3, size=32)).shape == (
        3,
        512,
    )


def test_dofa_gives_the_tokens_that_it_pools_itself(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuco_extensions.models.torchgeo.check_digits", lambda row, path: None)
    row = find_row("DOFABase16_Weights.DOFA_MAE")
    model = WithWavelengths(save(row, checkpoint), row.bands)
    images = torch.rand(1, 13, 224, 224, generator=torch.Generator().manual_seed(2))
    with one_thread(), torch.inference_mode():
        tokens = model.forward_features(images)
        assert tokens.shape == (1, 197, 768)
        pooled = model.model.forward_features(images, model.waves)
        assert torch.allclose(model.model.fc_norm(tokens[:, 1:].mean(dim=1)), pooled, atol=1e-5)


def test_dofa_gives_each_thread_the_tokens_of_its_own_images(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuco_extensions.models.torchgeo.check_digits", lambda row, path: None)
    row = find_row("DOFABase16_Weights.DOFA_MAE")
    model = WithWavelengths(save(row, checkpoint), row.bands)
    each = torch.rand(2, 1, 13, 224, 224, generator=torch.Generator().manual_seed(2))

    def tokens(images: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            return model.forward_features(images)

    alone = [tokens(images) for images in each]
    together = Barrier(2)  # both are in the network at once, and both are out of its last block before either goes on

    def meet(module: Any, images: Any) -> None:
        together.wait(60)

    for module in (model.model.blocks[0], model.model.fc_norm):
        module.register_forward_pre_hook(meet)
    with one_thread(), ThreadPoolExecutor(2) as pool:
        assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(alone, pool.map(tokens, each), strict=True))
