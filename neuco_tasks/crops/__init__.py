"""Share of soybean and corn in a place, from the Cropland Data Layer."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream import common


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield Task(
        id="crops",
        title="Share of soybean and corn",
        description="Combined fraction of soybean and corn in the image; labels from the USDA Cropland Data Layer",
        dataset=common.DATASET,
        kind="regression",
        metric="r2",
        unit="fraction",
        source=common.labels("crops__regr.csv"),
        license=common.LICENSE,
        citation=common.CITATION,
        tags=(*common.TAGS, "agriculture"),
        baseline=common.paper_baseline(-0.061),
    )
