"""Spread of the above-ground biomass of a place, from GEDI."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream import common


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield Task(
        id="biomass_std",
        title="Spread of the above-ground biomass",
        description="Standard deviation of the above-ground biomass density within the image; labels from GEDI L4A",
        dataset=common.DATASET,
        kind="regression",
        metric="r2",
        unit="Mg/ha",
        source=common.labels("biomass_std__regr.csv"),
        license=common.LICENSE,
        citation=common.CITATION,
        tags=(*common.TAGS, "vegetation", "texture"),
        baseline=common.paper_baseline(-0.426),
    )
