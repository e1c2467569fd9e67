"""Fraction of empty pixels of a place: a check of quality, not of understanding."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream import common


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield Task(
        id="nodata",
        title="Fraction of empty pixels",
        description="Fraction of zero pixels in the Sentinel-2 images, over all places of the dataset",
        dataset=common.DATASET,
        kind="regression",
        metric="r2",
        unit="fraction",
        source=common.labels("nodata__regr.csv"),
        license=common.LICENSE,
        citation=common.CITATION,
        tags=(*common.TAGS, "quality"),
    )
