"""Share of soybean and corn in a place, from the Cropland Data Layer."""

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream.common import ssl4eo_task


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield ssl4eo_task(
        "crops",
        title="Share of soybean and corn",
        description="Combined fraction of soybean and corn in the image; labels from the USDA Cropland Data Layer",
        metric="r2",
        unit="fraction",
        files=("crops__regr.csv",),
        tags=("agriculture",),
        r2=-0.061,
    )
