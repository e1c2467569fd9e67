"""Share of forest in a place, from CORINE."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream import common


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield Task(
        id="landcover_forest",
        title="Share of forest",
        description="Fraction of forest in the image; labels from CORINE land cover",
        dataset=common.DATASET,
        kind="regression",
        metric="r2",
        unit="fraction",
        source=common.labels("landcover_forest__regr.csv"),
        license=common.LICENSE,
        citation=common.CITATION,
        tags=(*common.TAGS, "land-cover", "vegetation"),
        baseline=common.paper_baseline(0.216),
    )
