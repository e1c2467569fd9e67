"""Cloud cover over the four seasons of a place, from CloudSEN12."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream import common


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield Task(
        id="clouds",
        title="Cloud cover",
        description="Average cloud cover of the four seasons; labels from CloudSEN12",
        dataset=common.DATASET,
        kind="regression",
        metric="r2",
        unit="%",
        source=common.labels("clouds_reg__regr.csv"),
        license=common.LICENSE,
        citation=common.CITATION,
        tags=(*common.TAGS, "atmosphere"),
        baseline=common.paper_baseline(-2.293),
    )
