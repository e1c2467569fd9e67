"""Networks of the TorchGeo library that were trained on Sentinel-2; TorchGeo knows where their weights are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Method, Remote

NAMES = ("B01", "B02", "B03", "B04", "B05", "B06", "B07", "B08", "B8A", "B09", "B10", "B11", "B12")
BANDS = tuple(f"s2l1c/{name}" for name in NAMES)

# id → name of the weights in TorchGeo, dimensions, title, and where TorchGeo 0.8.1 says that they are. Of their sha256
# only the eight digits in the file's name are published, so they are not pinned: `neuco data pin --method ID` does it.
NETWORKS = {
    "torchgeo_resnet18_moco": (
        "ResNet18_Weights.SENTINEL2_ALL_MOCO",
        512,
        "ResNet-18, MoCo on SSL4EO-S12",
        "hf://torchgeo/resnet18_sentinel2_all_moco@5b8cddc9a14f3844350b7f40b85bcd32aed75918/"
        "resnet18_sentinel2_all_moco-59bfdff9.pth",
    ),
    "torchgeo_vit_small_moco": (
        "ViTSmall16_Weights.SENTINEL2_ALL_MOCO",
        384,
        "ViT-S/16, MoCo on SSL4EO-S12",
        "hf://torchgeo/vit_small_patch16_224_sentinel2_all_moco@1cb683f6c14739634cdfaaceb076529adf898c74/"
        "vit_small_patch16_224_sentinel2_all_moco-67c9032d.pth",
    ),
    "torchgeo_vit_small_dino": (
        "ViTSmall16_Weights.SENTINEL2_ALL_DINO",
        384,
        "ViT-S/16, DINO on SSL4EO-S12",
        "hf://torchgeo/vit_small_patch16_224_sentinel2_all_dino@5b41dd418a79de47ac9f5be3e035405a83818a62/"
        "vit_small_patch16_224_sentinel2_all_dino-36bcc127.pth",
    ),
}


def make_encoder(weights: str, checkpoint: Path, seasons: str = "post") -> Any:
    from neuco_methods.torchgeo.encoder import TorchGeoEncoder

    return TorchGeoEncoder(weights, checkpoint, seasons, BANDS)


@hookimpl
def neuco_methods() -> Iterator[Method]:
    for name, (weights, dim, title, address) in NETWORKS.items():
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
            weights={"checkpoint": Remote(address)},
            dim=dim,
            pretraining=("SSL4EO-S12",),
            preprocessing="256 × 256 pixels, centre 224 × 224, divided by 10,000",
        )
