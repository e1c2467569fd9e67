"""A control: classes that the images cannot explain."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream import common


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield Task(
        id="random_cls",
        title="Random classes",
        description="Control task: 1 where the value of random_reg is above 10; no embedding should score",
        dataset=common.DATASET,
        kind="classification",
        metric="f1",
        source=common.labels("random_cls__cls.csv"),
        license=common.LICENSE,
        citation=common.CITATION,
        tags=(*common.TAGS, "control"),
        control=True,
    )
