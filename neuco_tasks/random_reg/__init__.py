"""A control: numbers that the images cannot explain."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream import common


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield Task(
        id="random_reg",
        title="Random numbers",
        description="Control task: random values, most of them 0; no embedding should score",
        dataset=common.DATASET,
        kind="regression",
        metric="r2",
        unit="1",
        source=common.labels("random_reg__regr.csv"),
        license=common.LICENSE,
        citation=common.CITATION,
        tags=(*common.TAGS, "control"),
        control=True,
    )
