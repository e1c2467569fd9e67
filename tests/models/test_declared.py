"""What TorchGeo, TerraTorch and timm declare of their weights is held against what the network gets."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from neuco_core.contract.contract import Finding, run_check
from neuco_core.contract.probing import probe
from neuco_core.contract.subjects import MethodSubject
from neuco_core.cubes.cubes import select
from neuco_core.plugins.catalog import catalog, list_methods, load_method
from neuco_core.specs import Check, Method
from neuco_core.testing import TinyCubes
from neuco_extensions.models.images import Images, joined, numbers, words
from neuco_extensions.models.libraries import terratorch_network, timm_network
from neuco_extensions.models.network import NetworkEncoder
from neuco_extensions.models.torchgeo import bare_network, table, torchgeo_encoder
from neuco_methods.terratorch import make_encoder

MOCO = "ResNet18_Weights.SENTINEL2_ALL_MOCO"
PHOTO = {
    "network": "resnet18",
    "bands": "s2l1c/B04 s2l1c/B03 s2l1c/B02",
    "scale": 3000.0,
    "mean": "0.485 0.456 0.406",
    "std": "0.229 0.224 0.225",
}
PRITHVI = {
    "backbone": "prithvi_eo_tiny",
    "bands": "s2l2a/B02 s2l2a/B03 s2l2a/B04 s2l2a/B8A s2l2a/B11 s2l2a/B12",
    "mean": "1087 1342 1433 2734 1958 1363",
    "std": "2248 2179 2178 1850 1242 1049",
}


def torchgeo(**params: Any) -> tuple[Any, dict[str, Any]]:
    row = table()[MOCO]
    own = {key: row.params()[key] for key in ("weights", "bands", "scale", "mean", "std")}
    return lambda: bare_network(row), {**own, **params}


def finding(build: Any, params: dict[str, Any]) -> Finding:
    images = Images(
        words(params["bands"]),
        float(params.get("scale", 1.0)),
        mean=numbers(params["mean"], "mean"),
        std=numbers(params["std"], "std"),
        size=64,
    )
    encoder = NetworkEncoder(build, images, prefix=1)
    method = Method(id="named", encoder=lambda **_: encoder, params=params, requires=("torch",), pretraining=())
    subject = MethodSubject(method)
    vars(subject)["probes"] = probe(method, TinyCubes(count=9, seasons=("summer",)), "tiny")
    return run_check(catalog().all(Check)["models-library"], subject)


def test_torchgeo_has_bands_unit_and_statistics() -> None:
    right = finding(*torchgeo())
    assert (right.status, "13 channels as TorchGeo declares them" in right.detail) == ("ok", True), right
    wrong = {
        "the network gets s2l1c/B12 for s2l1c/B01": {"bands": joined(table()[MOCO].bands[::-1])},
        "look at scale and std": {"scale": 1.0},
        "other statistics of s2l1c/B01": {"mean": "0.2"},
    }
    for sentence, params in wrong.items():
        found = finding(*torchgeo(**params))
        assert found.status == "warning"
        assert sentence.lower() in found.detail.lower(), found.detail


def test_timm_has_statistics_and_the_order_of_colours() -> None:
    assert finding(lambda: timm_network("resnet18", None, 3), PHOTO).status == "ok"
    blue = finding(lambda: timm_network("resnet18", None, 3), {**PHOTO, "bands": joined(words(PHOTO["bands"])[::-1])})
    assert "the network gets s2l1c/B02 for s2l1c/B04" in blue.detail
    clip = {**PHOTO, "mean": "0.481 0.458 0.408", "std": "0.269 0.261 0.276"}
    assert "timm declares other statistics" in finding(lambda: timm_network("resnet18", None, 3), clip).detail


def test_terratorch_has_statistics_beside_its_networks() -> None:
    def build() -> Any:
        return terratorch_network("prithvi_eo_tiny", None, img_size=64, num_frames=1)

    assert finding(build, PRITHVI).status == "ok"
    first = finding(build, {**PRITHVI, "mean": "775 1081 1229 2497 2204 1611", "std": "1282 1270 1399 1368 1292 1155"})
    assert "TerraTorch declares" in first.detail, "those of Prithvi 1.0"


@pytest.mark.parametrize("params", [{"weights": "Nobody_Weights.KNOWS"}, {}])
def test_weights_that_no_library_knows_are_not_judged(params: dict[str, Any]) -> None:
    build, own = torchgeo()
    kept = {key: value for key, value in own.items() if key != "weights"}
    assert finding(build, {**kept, **params}).status == "skipped"


def of_torchgeo(path: Path, **params: Any) -> Any:
    row = table()[params["weights"]]
    torch.save(bare_network(row).state_dict(), path)
    return torchgeo_encoder(checkpoint=path, **params)


def of_terratorch(path: Path, **params: Any) -> Any:
    network = terratorch_network(params["backbone"], None, modalities=["S2L2A", "S1GRD"], merge_method=params["merge"])
    torch.save(network.state_dict(), path)
    return make_encoder(checkpoint=path, **params)


@pytest.mark.parametrize("name", [m.id for m in list_methods() if {"torchgeo", "terratorch"} & set(m.requires)])
def test_shipped_networks_are_used_as_their_libraries_declare(
    name: str, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With random weights: those that were trained are to be had from the network only."""
    monkeypatch.setattr("neuco_extensions.models.torchgeo.check_digits", lambda row, path: None)
    shipped = load_method(name)
    build = partial(of_torchgeo if "torchgeo" in shipped.requires else of_terratorch, checkpoint)
    method = replace(shipped, encoder=build, weights={}, pretraining=())
    subject = MethodSubject(method)
    source = select(TinyCubes(count=9, seasons=("summer", "fall")), method.bands)
    vars(subject)["probes"] = probe(method, source, "tiny")
    for check in ("method-sane", "method-network", "models-library"):
        found = run_check(catalog().all(Check)[check], subject)
        assert found.status == "ok", found
