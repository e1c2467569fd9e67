"""The labels of mini, from the scenes themselves. `python -m neuco_tasks.mini.labels` writes them again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from neuco_tasks.mini.cubes import pool_indices, sample_id, scene
from neuco_tasks.mini.scene import SAMPLES, Scene
from neuco_tasks.mini.spectra import CEREAL, FOREST, ROWCROP
from neuco_tasks.mini.stable import Array, Stream

CONTROL_STREAM = 1_000_000  # the random labels must not share numbers with any scene


def mean_and_std(values: Array) -> tuple[float, float]:
    """Exactly rounded sums, so that the order of adding cannot matter."""
    mean = math.fsum(values.tolist()) / values.size
    return mean, math.sqrt(math.fsum(((values - mean) ** 2).tolist()) / values.size)


def biomass(_index: int, what: Scene) -> tuple[float, ...]:
    return mean_and_std(what.biomass)


def crops(_index: int, what: Scene) -> tuple[float, ...]:
    return (float(np.mean(what.classes == ROWCROP)),)


def landcover(_index: int, what: Scene) -> tuple[float, ...]:
    agriculture = (what.classes == ROWCROP) | (what.classes == CEREAL)
    return float(np.mean(agriculture)), float(np.mean(what.classes == FOREST))


def clouds(index: int, what: Scene) -> tuple[float, ...]:
    """Percent of pixels under cloud over the four seasons; and two controls, mostly 0 and a few of them true."""
    cover = 100.0 * float(np.mean(what.clouds > 0))
    draw = Stream(CONTROL_STREAM + index).uniform(2)
    control = 0.0 if draw[0] < 0.85 else cover if draw[0] > 0.95 else 100.0 * float(draw[1])
    return cover, control, float(control > 10)


def heatisland(_index: int, what: Scene) -> tuple[float, ...]:
    return mean_and_std(what.surface)


def nodata(_index: int, what: Scene) -> tuple[float, ...]:
    return (1.0 - float(np.mean(what.lit)),)


# File → its columns, the samples it covers, and where the values come from.
FILES: dict[str, tuple[tuple[str, ...], Iterable[int], Callable[[int, Scene], tuple[float, ...]]]] = {
    "biomass": (("biomass_mean", "biomass_std"), pool_indices("biomass"), biomass),
    "crops": (("crops",), pool_indices("crops"), crops),
    "landcover": (("landcover_agriculture", "landcover_forest"), pool_indices("landcover"), landcover),
    "clouds": (("clouds", "random_reg", "random_cls"), pool_indices("clouds"), clouds),
    "heatisland": (("heatisland_mean", "heatisland_std"), pool_indices("heatisland"), heatisland),
    "nodata": (("nodata",), range(SAMPLES), nodata),
}


def label_text(name: str) -> str:
    """One label file, as it is committed."""
    columns, indices, values = FILES[name]
    lines = [",".join(("id", *columns))]
    for index in indices:
        row = values(index, scene(index))
        lines.append(",".join((sample_id(index), *(f"{value:.4f}".rstrip("0").rstrip(".") for value in row))))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for name in FILES:
        path = Path(__file__).with_name("labels") / f"{name}.csv"
        path.write_bytes(label_text(name).encode())
        print(path)
