"""Networks of the TorchGeo library that were trained on Sentinel-2; its table says where their weights are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Method
from neuco_extensions.models.torchgeo import torchgeo_method

DESCRIPTION = "Features of a network trained on Sentinel-2, their mean over the whole image, "
SEASONS = {"post": "averaged over the seasons.", "pre": "of the seasons' mean image."}
CITATION = "Stewart, A. J. et al. (2022): TorchGeo, arXiv:2111.08872; "
SSL4EO = "Wang, Y. et al. (2023): SSL4EO-S12, arXiv:2211.07044"
DOFA = "Xiong, Z. et al. (2024): Neural Plasticity-Inspired Multimodal Foundation Model for EO, arXiv:2403.15356"

# id → the row of TorchGeo's table, dimensions, parameters of the network, title, version, citation. The first three
# gave class tokens of a crop in version 1.
NETWORKS: dict[str, tuple[str, int, int, str, int, str]] = {
    "torchgeo_resnet18_moco": (
        "ResNet18_Weights.SENTINEL2_ALL_MOCO",
        512,
        11_207_872,
        "ResNet-18, MoCo on SSL4EO-S12",
        2,
        SSL4EO,
    ),
    "torchgeo_vit_small_moco": (
        "ViTSmall16_Weights.SENTINEL2_ALL_MOCO",
        384,
        22_648_704,
        "ViT-S/16, MoCo on SSL4EO-S12",
        2,
        SSL4EO,
    ),
    "torchgeo_vit_small_dino": (
        "ViTSmall16_Weights.SENTINEL2_ALL_DINO",
        384,
        22_648_704,
        "ViT-S/16, DINO on SSL4EO-S12",
        2,
        SSL4EO,
    ),
    "torchgeo_resnet50_moco": (
        "ResNet50_Weights.SENTINEL2_ALL_MOCO",
        1024,
        23_539_392,
        "ResNet-50, MoCo on SSL4EO-S12",
        1,
        SSL4EO,
    ),
    "torchgeo_resnet50_dino": (
        "ResNet50_Weights.SENTINEL2_ALL_DINO",
        1024,
        23_539_392,
        "ResNet-50, DINO on SSL4EO-S12",
        1,
        SSL4EO,
    ),
    "torchgeo_dofa_base": ("DOFABase16_Weights.DOFA_MAE", 768, 111_312_128, "DOFA base, Sentinel-2 L1C", 1, DOFA),
}
PRE = tuple(name for name in NETWORKS if name != "torchgeo_resnet18_moco")  # the rows of the paper's Table 4


@hookimpl
def neuco_methods() -> Iterator[Method]:
    for name in NETWORKS:
        yield make_method(name)
    for name in PRE:
        yield make_method(name, "pre")


def make_method(name: str, seasons: str = "post") -> Method:
    weights, dim, count, title, version, paper = NETWORKS[name]
    fields: dict[str, Any] = {"params": {"seasons": seasons}, "dim": dim, "n_parameters": count}
    return torchgeo_method(
        name if seasons == "post" else f"{name}_pre",
        weights,
        title=title if seasons == "post" else f"{title}, seasons averaged first",
        description=DESCRIPTION + SEASONS[seasons],
        license="CC-BY-4.0",
        citation=CITATION + paper,
        tags=("pretrained", "sentinel-2"),
        version=version if seasons == "post" else 1,
        **fields,
    )
