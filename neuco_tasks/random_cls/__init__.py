"""A control: classes that the images cannot explain."""

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream.common import ssl4eo_task


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield ssl4eo_task(
        "random_cls",
        title="Random classes",
        description="Control task: 1 where the value of random_reg is above 10; no embedding should score",
        kind="classification",
        metric="f1",
        files=("random_cls__cls.csv",),
        tags=("control",),
        control=True,
    )
