"""Mean summer surface temperature of cities, from Landsat-8."""

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream.common import ssl4eo_task


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield ssl4eo_task(
        "heatisland_mean",
        title="Mean summer surface temperature of cities",
        description="Mean surface temperature of larger northern cities in summer; labels from Landsat-8",
        metric="r2",
        unit="K",
        files=("heat-island_mean__regr.csv", "heatisland_mean__regr.csv"),
        tags=("urban", "temperature"),
        r2=-0.962,
    )
