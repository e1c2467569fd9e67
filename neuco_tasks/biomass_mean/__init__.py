"""Mean above-ground biomass of a place, from GEDI."""

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream.common import ssl4eo_task


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield ssl4eo_task(
        "biomass_mean",
        title="Mean above-ground biomass",
        description="Above-ground biomass density, averaged over the image; labels from GEDI L4A",
        metric="r2",
        unit="Mg/ha",
        files=("biomass_mean__regr.csv",),
        tags=("vegetation",),
        r2=-0.552,
    )
