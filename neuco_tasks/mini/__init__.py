"""Synthetic cubes in the shape of SSL4EO-S12-downstream with the same eleven tasks: embedded, for trying things out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from neuco_core import Dataset, Remote, Task, hookimpl

if TYPE_CHECKING:
    from neuco_core.data.cubes import CubeSource

L1C = ("B01", "B02", "B03", "B04", "B05", "B06", "B07", "B08", "B8A", "B09", "B10", "B11", "B12")
BANDS = ("s1/VV", "s1/VH", *(f"s2l1c/{b}" for b in L1C), *(f"s2l2a/{b}" for b in L1C if b != "B10"))
LICENSE = "Apache-2.0"
TAGS = ("earth-observation", "embedded", "synthetic")

# File → sha256 and size of what `python -m neuco_tasks.mini.labels` writes.
FILES = {
    "biomass": ("18ce6be8809616caf8f3709c9c44f6546615bf6a22f9224ec51beaec79bd994c", 14756),
    "crops": ("19c961a3798572dfa092817f7e87f534d57d0bdb3e3dadde27644378c01fcb72", 18147),
    "landcover": ("ad4fc71ccafb2c037a6a44c0a3c08ec65f230b6c9bf198d968c8b23a74ab3029", 27756),
    "clouds": ("200fe09f185fd6c2ec71ea76aab86c96c692810367895a79c4b2d4e41e9e04c7", 6718),
    "heatisland": ("99c1269e14fe59a1f1373a8e5d739b6845711b69aafd4b6d13fba2a8c1ff260a", 10133),
    "nodata": ("c6495cb997b6910f892724e0186492b7360bda1c78bc4657f76b4447d3343bd5", 67478),
}

# Task → kind, unit, file, column's meaning, tags.
TASKS = {
    "biomass_mean": ("regression", "Mg/ha", "biomass", "mean above-ground biomass", ("vegetation",)),
    "biomass_std": ("regression", "Mg/ha", "biomass", "spread of the above-ground biomass", ("vegetation", "texture")),
    "crops": ("regression", "fraction", "crops", "share of row crops", ("agriculture",)),
    "landcover_agriculture": (
        "regression",
        "fraction",
        "landcover",
        "share of cropland",
        ("land-cover", "agriculture"),
    ),
    "landcover_forest": ("regression", "fraction", "landcover", "share of forest", ("land-cover", "vegetation")),
    "clouds": ("regression", "%", "clouds", "cloud cover over the four seasons", ("atmosphere",)),
    "heatisland_mean": (
        "regression",
        "K",
        "heatisland",
        "mean surface temperature in summer",
        ("urban", "temperature"),
    ),
    "heatisland_std": (
        "regression",
        "K",
        "heatisland",
        "spread of the surface temperature in summer",
        ("urban", "temperature", "texture"),
    ),
    "nodata": ("regression", "fraction", "nodata", "share of pixels without data", ("quality",)),
    "random_reg": ("regression", "", "clouds", "random numbers, mostly zero", ("control",)),
    "random_cls": ("classification", "", "clouds", "1 where the random number is above 10", ("control",)),
}


def open_cubes() -> CubeSource:
    from neuco_tasks.mini.cubes import MiniCubes

    return MiniCubes()


@hookimpl
def neuco_datasets() -> Iterator[Dataset]:
    yield Dataset(
        id="mini",
        title="Mini, synthetic cubes like SSL4EO-S12",
        description="Synthetic: 1,000 generated cubes of 27 bands, 4 seasons and 32 × 32 pixels; no sensor saw them",
        bands=BANDS,
        seasons=("spring", "summer", "fall", "winter"),
        cubes=open_cubes,
        synthetic=True,
        license=LICENSE,
        tags=TAGS,
    )


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    for name, (kind, unit, file, what, tags) in TASKS.items():
        sha256, size = FILES[file]
        yield Task(
            id=f"mini_{name}",
            title=f"Mini (synthetic): {what}",
            description=f"Synthetic: {what}, known exactly because the scene was generated",
            dataset="mini",
            kind=kind,
            unit=unit,
            source=Remote(f"pkg://neuco_tasks.mini/labels/{file}.csv", sha256=sha256, size=size),
            columns=(name,),
            control="control" in tags,
            license=LICENSE,
            tags=(*TAGS, *tags),
        )
