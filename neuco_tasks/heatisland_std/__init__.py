"""Spread of the summer surface temperature of cities, from Landsat-8."""

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream.common import ssl4eo_task


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield ssl4eo_task(
        "heatisland_std",
        title="Spread of the summer surface temperature of cities",
        description="Spread of the surface temperature of larger northern cities in summer; labels from Landsat-8",
        metric="r2",
        unit="K",
        files=("heat-island_std__regr.csv", "heatisland_std__regr.csv"),
        tags=("urban", "temperature", "texture"),
        r2=-1.157,
    )
