"""Networks of the TorchGeo library that were trained on Sentinel-2; TorchGeo knows where their weights are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Method

NAMES = ("B01", "B02", "B03", "B04", "B05", "B06", "B07", "B08", "B8A", "B09", "B10", "B11", "B12")
BANDS = tuple(f"s2l1c/{name}" for name in NAMES)

# id → name of the weights, dimensions, title.
NETWORKS = {
    "torchgeo_resnet18_moco": ("ResNet18_Weights.SENTINEL2_ALL_MOCO", 512, "ResNet-18, MoCo on SSL4EO-S12"),
    "torchgeo_vit_small_moco": ("ViTSmall16_Weights.SENTINEL2_ALL_MOCO", 384, "ViT-S/16, MoCo on SSL4EO-S12"),
    "torchgeo_vit_small_dino": ("ViTSmall16_Weights.SENTINEL2_ALL_DINO", 384, "ViT-S/16, DINO on SSL4EO-S12"),
}


def make_encoder(weights: str, seasons: str = "post") -> Any:
    from neuco_methods.torchgeo.encoder import TorchGeoEncoder

    return TorchGeoEncoder(weights, seasons, BANDS)


@hookimpl
def neuco_methods() -> Iterator[Method]:
    for name, (weights, dim, title) in NETWORKS.items():
        yield Method(
            id=name,
            title=title,
            description="Pooled features of a network trained on Sentinel-2 L1C, averaged over the seasons.",
            license="CC-BY-4.0",
            citation="Wang, Y. et al. (2023): SSL4EO-S12, arXiv:2211.07044; Stewart, A. J. et al. (2022): TorchGeo, "
            "arXiv:2111.08872",
            tags=("pretrained", "sentinel-2"),
            encoder=make_encoder,
            params={"weights": weights, "seasons": "post"},
            bands=BANDS,
            requires=("torch", "torchgeo"),
            dim=dim,
        )
