"""Spread of the above-ground biomass of a place, from GEDI."""

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream.common import ssl4eo_task


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield ssl4eo_task(
        "biomass_std",
        title="Spread of the above-ground biomass",
        description="Standard deviation of the above-ground biomass density within the image; labels from GEDI L4A",
        metric="r2",
        unit="Mg/ha",
        files=("biomass_std__regr.csv",),
        tags=("vegetation", "texture"),
        r2=-0.426,
    )
