"""Synthetic cubes in the shape of SSL4EO-S12-downstream with the same eleven tasks: embedded, for trying things out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from neuco_core import Baseline, Dataset, Remote, Task, hookimpl

if TYPE_CHECKING:
    from neuco_core.cubes.cubes import CubeSource

L1C = ("B01", "B02", "B03", "B04", "B05", "B06", "B07", "B08", "B8A", "B09", "B10", "B11", "B12")
BANDS = ("s1/VV", "s1/VH", *(f"s2l1c/{b}" for b in L1C), *(f"s2l2a/{b}" for b in L1C if b != "B10"))
LICENSE = "Apache-2.0"
CITATION = "Synthetic, made by neuco; the tasks follow NeuCo-Bench, arXiv:2510.17914"
TAGS = ("earth-observation", "embedded", "synthetic")

# File → sha256 and size of what `python -m neuco_tasks.mini.labels` writes.
FILES = {
    "biomass": ("18c2df9db75c9163e0e0b260f0d019988563b67b9671fc572c9aa2cf77ea3d60", 17753),
    "crops": ("9be6b802898b329d8abd3dbbf1d0dad4ccc772b8096764028535cedb98827c9a", 21804),
    "landcover": ("dc994cb2c78e8c334dfb3526db75bf4d8e44747495b54c5506291ffe274ec479", 33254),
    "clouds": ("4f7513929337cf52ae37d6b2aef512e5abc8343a4e05101c914f2be67fb47183", 8024),
    "heatisland": ("a6ff3ea1a378259555d7c8e1a5bace03a322b04c10500a01d71cbe84c50e82fb", 12158),
    "nodata": ("50672ef7b28fcdd9930c78ff7a3149925cdb692c0630d933cee8c3a0f5443ba7", 80966),
}

# Task → kind, metric, unit, file, column's meaning, tags.
TASKS = {
    "biomass_mean": ("regression", "r2", "Mg/ha", "biomass", "mean above-ground biomass", ("vegetation",)),
    "biomass_std": (
        "regression",
        "r2",
        "Mg/ha",
        "biomass",
        "spread of the above-ground biomass",
        ("vegetation", "texture"),
    ),
    "crops": ("regression", "r2", "fraction", "crops", "share of row crops", ("agriculture",)),
    "landcover_agriculture": (
        "regression",
        "r2",
        "fraction",
        "landcover",
        "share of cropland",
        ("land-cover", "agriculture"),
    ),
    "landcover_forest": ("regression", "r2", "fraction", "landcover", "share of forest", ("land-cover", "vegetation")),
    "clouds": ("regression", "r2", "%", "clouds", "cloud cover over the four seasons", ("atmosphere",)),
    "heatisland_mean": (
        "regression",
        "r2",
        "K",
        "heatisland",
        "mean surface temperature in summer",
        ("urban", "temperature"),
    ),
    "heatisland_std": (
        "regression",
        "r2",
        "K",
        "heatisland",
        "spread of the surface temperature in summer",
        ("urban", "temperature", "texture"),
    ),
    "nodata": ("regression", "r2", "fraction", "nodata", "share of pixels without data", ("quality",)),
    "random_reg": ("regression", "r2", "1", "clouds", "random numbers, mostly zero", ("control",)),
    "random_cls": ("classification", "f1", "", "clouds", "1 where the random number is above 10", ("control",)),
}

# Task → score of `averaging`, as `python benchmarks/baselines.py` measures it; its tolerance is the same for all.
# A baseline at the level of a guess proves nothing about the labels: there, another method's.
STRONGER = {"heatisland_mean": "band_statistics"}
TOLERANCE = 0.01
BASELINES = {
    "biomass_mean": 0.267,
    "biomass_std": 0.103,
    "clouds": 0.76,
    "crops": 0.411,
    "heatisland_mean": 0.208,
    "heatisland_std": 0.056,
    "landcover_agriculture": 0.156,
    "landcover_forest": 0.102,
    "nodata": 0.034,
    "random_cls": 0.094,
    "random_reg": -0.086,
}


def open_cubes() -> CubeSource:
    from neuco_tasks.mini.cubes import MiniCubes

    return MiniCubes()


@hookimpl
def neuco_datasets() -> Iterator[Dataset]:
    yield Dataset(
        id="mini",
        title="Mini, synthetic cubes like SSL4EO-S12",
        description="Synthetic: 1,200 generated cubes of 27 bands, 4 seasons and 32 × 32 pixels; no sensor saw them",
        bands=BANDS,
        seasons=("spring", "summer", "fall", "winter"),
        cubes=open_cubes,
        synthetic=True,
        protocol="ridge",
        license=LICENSE,
        citation=CITATION,
        tags=TAGS,
    )


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    for name, (kind, metric, unit, file, what, tags) in TASKS.items():
        sha256, size = FILES[file]
        yield Task(
            id=f"mini_{name}",
            title=f"Mini (synthetic): {what}",
            description=f"Synthetic: {what}, known exactly because the scene was generated",
            dataset="mini",
            kind=kind,
            metric=metric,
            unit=unit,
            source=Remote(f"pkg://neuco_tasks.mini/labels/{file}.csv", sha256=sha256, size=size),
            columns=(name,),
            baseline=Baseline(
                method=STRONGER.get(name, "averaging"),
                score=BASELINES[name],
                tolerance=TOLERANCE,
                protocol="ridge",
                source="benchmarks/baselines.py",
            ),
            control="control" in tags,
            license=LICENSE,
            citation=CITATION,
            tags=(*TAGS, *tags),
        )
