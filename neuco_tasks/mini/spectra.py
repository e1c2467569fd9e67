"""What the surfaces look like: measured class medians, and the numbers that turn them into the two products."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources

import numpy as np

from neuco_tasks.mini.stable import Array

SEASONS = ("spring", "summer", "fall", "winter")
L1C = ("B01", "B02", "B03", "B04", "B05", "B06", "B07", "B08", "B8A", "B09", "B10", "B11", "B12")
L2A = tuple(band for band in L1C if band != "B10")
BANDS = ("s1/VV", "s1/VH", *(f"s2l1c/{band}" for band in L1C), *(f"s2l2a/{band}" for band in L2A))
CLASSES = ("forest", "shrub", "grass", "rowcrop", "cereal", "built", "bare", "water")
FOREST, SHRUB, GRASS, ROWCROP, CEREAL, BUILT, BARE, WATER = range(8)

MICROMETRES = np.array([0.443, 0.490, 0.560, 0.665, 0.705, 0.740, 0.783, 0.842, 0.865, 0.945, 1.610, 2.190])
# How much light the air adds (DN) and lets through, per L2A band, at middling haze. B09 lies in a water-vapour band.
PATH = np.array([1080.0, 760, 420, 240, 180, 140, 110, 90, 80, 40, 12, 6])
CLEAR = np.array([0.70, 0.74, 0.80, 0.86, 0.88, 0.93, 0.95, 0.92, 0.97, 0.32, 0.95, 0.90])
CLOUD = np.array([6400.0, 6300, 6100, 6200, 6300, 6500, 6600, 6700, 6700, 6600, 4300, 3200])
SNOW = np.array([7600.0, 7600, 7400, 7200, 7100, 6900, 6700, 6500, 6300, 5800, 1000, 800])
# Relative gain of a forest pixel without biomass over a full one: soil and litter show, above all in SWIR.
OPEN_FOREST = np.array([0.5, 0.55, 0.6, 0.9, 0.7, 0.15, 0.0, -0.05, -0.05, 0.0, 0.75, 1.1])


@cache
def reflectance() -> Array:
    """Surface reflectance as DN, (season, L2A band, class)."""
    table = np.empty((4, 12, 8))
    for name, season, values in _rows():
        blue, nir = values["B02"], values["B08"]
        # Not measured: B01 lies just below B02; B8A is 1.07 × B08 in the habitats measured in full, and B09 beside it.
        values |= {"B01": 0.85 * blue, "B8A": 1.07 * nir, "B09": 1.05 * nir}
        table[SEASONS.index(season), :, CLASSES.index(name)] = [values[band] for band in L2A]
    return table


@cache
def backscatter() -> Array:
    """Radar backscatter in dB, (season, VV and VH, class)."""
    table = np.empty((4, 2, 8))
    for name, season, values in _rows():
        table[SEASONS.index(season), :, CLASSES.index(name)] = values["VV"], values["VH"]
    return table


def _rows() -> list[tuple[str, str, dict[str, float]]]:
    text = resources.files("neuco_tasks.mini").joinpath("spectra.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    return [(row.pop("cls"), row.pop("season"), {band: float(value) for band, value in row.items()}) for row in rows]
