"""Real Landsat-7 patches of Olinda, Brazil, with elevation labels: embedded, so they work offline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from neuco_core import Baseline, Dataset, Remote, Task, hookimpl

if TYPE_CHECKING:
    from neuco_core.cubes.cubes import CubeSource

LABELS = Remote(
    "pkg://neuco_tasks.olinda/labels.csv",
    sha256="eed25c31d4d1996147d1d4ccd2383faca5b60383cc87add57ee10d8469b0906b",
    size=171369,
)
LICENSE = "Apache-2.0"
CITATION = (
    "Pebesma, E. and others: stars: Spatiotemporal Arrays, Raster and Vector Data Cubes, 10.32614/CRAN.package.stars"
)

# Task → score of `averaging`, as `python benchmarks/baselines.py` measures it; its tolerance is the same for all.
TOLERANCE = 0.01
BASELINES = {
    "elevation_mean": 0.386,
    "elevation_std": 0.276,
    "sea_level": 0.951,
}


def open_cubes() -> CubeSource:
    from neuco_tasks.olinda.cubes import OlindaCubes

    return OlindaCubes()


@hookimpl
def neuco_datasets() -> Iterator[Dataset]:
    yield Dataset(
        id="olinda",
        title="Olinda, Landsat-7 patches",
        description="1,849 patches of 8 × 8 pixels from one Landsat-7 ETM+ scene of Olinda, Brazil",
        bands=("etm/B1", "etm/B2", "etm/B3", "etm/B4", "etm/B5", "etm/B7"),
        seasons=("scene",),
        cubes=open_cubes,
        footprint=8 * 28.5,
        protocol="ridge",
        license=LICENSE,
        citation=CITATION,
        tags=("earth-observation", "embedded", "real"),
    )


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield _task("elevation_mean", "regression", "r2", "m", "mean elevation of a patch", ("terrain",))
    yield _task(
        "elevation_std",
        "regression",
        "r2",
        "m",
        "standard deviation of the elevation in a patch",
        ("terrain", "texture"),
    )
    yield _task(
        "sea_level", "classification", "f1", "", "1 where the mean elevation is below 1 m", ("terrain", "water")
    )


def _task(column: str, kind: str, metric: str, unit: str, what: str, tags: tuple[str, ...]) -> Task:
    return Task(
        id=f"olinda_{column}",
        title=f"Olinda: {what}",
        description=f"{what[0].upper()}{what[1:]}, from the elevation model that comes with the scene",
        dataset="olinda",
        kind=kind,
        metric=metric,
        unit=unit,
        source=LABELS,
        columns=(column,),
        group_column="block",
        baseline=Baseline(
            method="averaging",
            score=BASELINES[column],
            tolerance=TOLERANCE,
            protocol="ridge",
            source="benchmarks/baselines.py",
        ),
        license=LICENSE,
        citation=CITATION,
        tags=("earth-observation", "embedded", "real", *tags),
    )
