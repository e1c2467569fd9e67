"""Fraction of empty pixels of a place: a check of quality, not of understanding."""

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream.common import ssl4eo_task


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield ssl4eo_task(
        "nodata",
        title="Fraction of empty pixels",
        description="Fraction of zero pixels in the Sentinel-2 images, over all places of the dataset",
        metric="r2",
        unit="fraction",
        files=("nodata__regr.csv",),
        tags=("quality",),
    )
