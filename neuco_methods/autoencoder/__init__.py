"""A small learned compressor, trained on the dataset itself: the paper's factorised-prior model in miniature."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Method

WAYS = {
    "autoencoder": ("concat", "the codes of the seasons side by side"),
    "autoencoder_post": ("post", "the codes of the seasons averaged"),
    "autoencoder_pre": ("pre", "the code of the seasons' mean image"),
}
PARAMS = {"channels": 16, "steps": 300, "fidelity": 10.0, "seed": 42}


def make_encoder(
    seasons: str = "concat", channels: int = 16, steps: int = 300, fidelity: float = 10.0, seed: int = 42
) -> Any:
    from neuco_methods.autoencoder.encoder import AutoencoderEncoder

    return AutoencoderEncoder(seasons, channels, steps, fidelity, seed)


@hookimpl
def neuco_methods() -> Iterator[Method]:
    for name, (seasons, words) in WAYS.items():
        yield Method(
            id=name,
            title=f"Autoencoder with entropy bottleneck, {seasons}",
            description=f"A convolutional compressor with a factorised prior, trained on the dataset; {words}.",
            license="Apache-2.0",
            citation="Ballé, J., Laparra, V. and Simoncelli, E. P. (2017): End-to-end Optimized Image Compression, "
            "arXiv:1611.01704",
            tags=("fitted-on-dataset", "trained"),
            encoder=make_encoder,
            params={"seasons": seasons, **PARAMS},
            requires=("torch",),
            dim=1024 if seasons == "concat" else 256,
            machine_spread=0.05,
            pretraining=("self",),
            preprocessing="at most 32 × 32 pixels",
        )
