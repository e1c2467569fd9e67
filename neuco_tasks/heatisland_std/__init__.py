"""Spread of the summer surface temperature of cities, from Landsat-8."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream import common


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield Task(
        id="heatisland_std",
        title="Spread of the summer surface temperature of cities",
        description="Spread of the surface temperature of larger northern cities in summer; labels from Landsat-8",
        dataset=common.DATASET,
        kind="regression",
        metric="r2",
        unit="K",
        source=common.labels("heat-island_std__regr.csv", "heatisland_std__regr.csv"),
        license=common.LICENSE,
        citation=common.CITATION,
        tags=(*common.TAGS, "urban", "temperature", "texture"),
        baseline=common.paper_baseline(-1.157),
    )
