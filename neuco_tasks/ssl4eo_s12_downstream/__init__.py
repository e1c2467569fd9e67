"""SSL4EO-S12-downstream: the cubes behind NeuCo-Bench's tasks. They are too big to fetch unasked; link a copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from neuco_core import Dataset, hookimpl
from neuco_tasks.ssl4eo_s12_downstream import common

if TYPE_CHECKING:
    from neuco_core.cubes.cubes import CubeSource


def open_cubes() -> CubeSource:
    from neuco_core.errors import DataError
    from neuco_core.fetch.links import dataset_root, variable

    root = dataset_root(common.DATASET)
    if root is None:
        raise DataError(
            "no local copy of the cubes is known",
            where=common.DATASET,
            hint=f"Download {common.HOME} and run `neuco data link {common.DATASET} FOLDER`, "
            f"or set {variable(common.DATASET)}",
        )
    from neuco_core.cubes.ssl4eo import SSL4EOCubes

    return SSL4EOCubes(root)


@hookimpl
def neuco_datasets() -> Iterator[Dataset]:
    yield Dataset(
        id=common.DATASET,
        title="SSL4EO-S12-downstream",
        description="13,260 places seen by Sentinel-1 and Sentinel-2 (L1C and L2A) in four seasons, 264 × 264 pixels",
        bands=common.BANDS,
        seasons=common.SEASONS,
        cubes=open_cubes,
        protocol="neuco-2025",
        related=common.RELATED,
        footprint=2640.0,
        no_positions="it is published without coordinates, by design",
        license=common.LICENSE,
        citation=f"{common.CITATION}; {common.CUBES_CITATION}",
        tags=("earth-observation", "real"),
    )
