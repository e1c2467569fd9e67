"""A control: numbers that the images cannot explain."""

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream.common import ssl4eo_task


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield ssl4eo_task(
        "random_reg",
        title="Random numbers",
        description="Control task: random values, most of them 0; no embedding should score",
        metric="r2",
        unit="1",
        files=("random_reg__regr.csv",),
        tags=("control",),
        control=True,
    )
