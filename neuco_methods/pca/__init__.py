"""The principal components of the cubes themselves, fitted on the dataset that is encoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Method


def make_encoder(dim: int = 256, size: int = 8, whiten: bool = False, memory_mb: int = 256) -> Any:
    from neuco_methods.pca.encoder import PCAEncoder

    return PCAEncoder(dim, size, whiten, memory_mb)


@hookimpl
def neuco_methods() -> Iterator[Method]:
    yield Method(
        id="pca",
        title="Principal components",
        description="The leading principal components of cubes averaged to 8 × 8, fitted on the dataset.",
        license="Apache-2.0",
        citation="Ross, D. et al. (2008): Incremental Learning for Robust Visual Tracking, "
        "doi:10.1007/s11263-007-0075-7",
        tags=("fitted-on-dataset",),
        encoder=make_encoder,
        params={"dim": 256, "size": 8, "whiten": False, "memory_mb": 256},
        dim=256,
        pretraining=("self",),
        preprocessing="averaged to 8 × 8",
    )
