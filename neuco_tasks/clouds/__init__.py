"""Cloud cover over the four seasons of a place, from CloudSEN12."""

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream.common import ssl4eo_task


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield ssl4eo_task(
        "clouds",
        title="Cloud cover",
        description="Average cloud cover of the four seasons; labels from CloudSEN12",
        metric="r2",
        unit="%",
        files=("clouds_reg__regr.csv",),
        tags=("atmosphere",),
        r2=-2.293,
    )
