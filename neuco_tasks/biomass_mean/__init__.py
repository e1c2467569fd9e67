"""Mean above-ground biomass of a place, from GEDI."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream import common


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield Task(
        id="biomass_mean",
        title="Mean above-ground biomass",
        description="Above-ground biomass density, averaged over the image; labels from GEDI L4A",
        dataset=common.DATASET,
        kind="regression",
        metric="r2",
        unit="Mg/ha",
        source=common.labels("biomass_mean__regr.csv"),
        license=common.LICENSE,
        citation=common.CITATION,
        tags=(*common.TAGS, "vegetation"),
        baseline=common.paper_baseline(-0.552),
    )
