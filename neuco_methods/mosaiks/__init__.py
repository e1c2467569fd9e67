"""Random convolutional features: how much each image looks like patches picked from the dataset at random."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Method

WHEN = {
    "mosaiks": ("post", "each season encoded, then averaged"),
    "mosaiks_pre": ("pre", "the seasons averaged first, then encoded"),
}


def make_encoder(seasons: str = "post", filters: int = 512, kernel: int = 3, seed: int = 42) -> Any:
    from neuco_methods.mosaiks.encoder import MosaiksEncoder

    return MosaiksEncoder(seasons, filters, kernel, seed)


@hookimpl
def neuco_methods() -> Iterator[Method]:
    for name, (seasons, words) in WHEN.items():
        yield Method(
            id=name,
            title=f"MOSAIKS, {seasons}-encoding average",
            description=f"Random convolutional features of 512 patches and both signs, {words}: 1,024 numbers.",
            license="Apache-2.0",
            citation="Rolf, E. et al. (2021): A generalizable and accessible approach to machine learning with global "
            "satellite imagery, Nature Communications 12, doi:10.1038/s41467-021-24638-z",
            tags=("no-training", "fitted-on-dataset"),
            encoder=make_encoder,
            params={"seasons": seasons, "filters": 512, "kernel": 3, "seed": 42},
            requires=("torch",),
            dim=1024,
            pretraining=("self",),
        )
