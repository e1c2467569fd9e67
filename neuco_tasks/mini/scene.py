"""What is on the ground and in the air of a sample, before any sensor looks at it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neuco_tasks.mini.spectra import BARE, BUILT, CEREAL, CLASSES, FOREST, GRASS, ROWCROP, SHRUB, WATER
from neuco_tasks.mini.stable import PIXELS, SIDE, Array, Stream, fields, parcels

# The five sets of places behind the label files; their sizes keep the proportions 2415 : 3355 : 4691 : 1140 : 1659.
POOLS = {"biomass": 219, "crops": 304, "landcover": 424, "clouds": 103, "heatisland": 150}
SAMPLES = sum(POOLS.values())

# How strongly each class is present, per pool, in units of the surfaces that compete for a pixel:
#                forest shrub grass rowcrop cereal built bare water
PRESENCE = {
    "biomass": (1.2, 0.4, 0.1, -1.0, -1.0, -1.6, -0.9, -1.2),
    "crops": (-0.4, -1.1, 0.1, 0.8, 0.5, -1.1, -1.3, -1.4),
    "landcover": (0.4, -0.3, 0.3, 0.0, 0.5, -0.7, -1.0, -0.9),
    "clouds": (0.3, 0.3, 0.2, -0.6, -0.4, -1.0, 0.2, 0.0),
    "heatisland": (-0.3, -0.8, 0.1, -1.0, -0.8, 1.5, -0.6, -0.6),
}
PARCELLED = np.isin(np.arange(8), (GRASS, ROWCROP, CEREAL))
GREEN = ~np.isin(np.arange(8), (BUILT, BARE, WATER))

# Difference from the air's temperature at noon in summer (K) and yearly course of the air (K), by season.
WARMTH = np.array([-1.0, 3.0, 3.0, 1.5, 5.0, 8.5, 10.0, -5.0])
COURSE = np.array([0.0, 9.0, 1.5, -9.0])


@dataclass(frozen=True)
class Scene:
    """Values per pixel have 1024 entries; values per season have 4."""

    pool: str
    classes: NDArray[np.int64]
    biomass: Array  # Mg/ha
    vigour: Array  # 0 dry and sparse to 1 lush
    air: Array  # K, per season
    phase: float  # how far the year is ahead, in seasons
    surface: Array  # K, in summer
    clouds: Array  # opacity, (season, pixel)
    lit: NDArray[np.bool_]  # False where the sensor saw nothing, (season, pixel)


def pool_of(index: int) -> str:
    for name, size in POOLS.items():
        if index < size:
            return name
        index -= size
    raise IndexError(index)


def make_scene(index: int, stream: Stream) -> Scene:
    pool = pool_of(index)
    warmth = float(stream.bell(1)[0]) * 0.6
    air = 287.0 + 7.0 * warmth + COURSE * (0.7 + 0.6 * stream.one()) + stream.bell(4)
    classes = _classes(pool, stream)
    vigour = _vigour(classes, warmth, stream)
    return Scene(
        pool=pool,
        classes=classes,
        biomass=_biomass(classes, stream),
        vigour=vigour,
        air=air,
        phase=0.3 * warmth + 0.15 * float(stream.bell(1)[0]),
        surface=_surface(classes, vigour, air[1], stream),
        clouds=_clouds(pool, stream),
        lit=_lit(stream),
    )


def _classes(pool: str, stream: Stream) -> NDArray[np.int64]:
    """Surfaces compete for each pixel; crops and pastures come in rectangles."""
    rank = fields(stream, len(CLASSES), (3, 6, 11))
    rank[PARCELLED] = 0.5 * rank[PARCELLED] + 0.8 * parcels(stream, 3)
    return np.asarray(np.argmax(rank + (np.array(PRESENCE[pool]) + 0.9 * stream.bell(len(CLASSES)))[:, None], axis=0))


def _vigour(classes: NDArray[np.int64], warmth: float, stream: Stream) -> Array:
    smooth, patchy = fields(stream, 1)[0], parcels(stream, 1)[0]
    local = np.where(PARCELLED[classes], 0.6 * patchy + 0.4 * smooth, smooth)
    return np.asarray(np.clip(0.6 - 0.12 * warmth + 0.14 * float(stream.bell(1)[0]) + 0.12 * local, 0.0, 1.0))


def _biomass(classes: NDArray[np.int64], stream: Stream) -> Array:
    """Above-ground biomass: stands differ between scenes by an order of magnitude, within them by half."""
    stand = 20.0 + 330.0 * stream.one() * stream.one() + 60.0 * stream.one()
    texture = fields(stream, 1, (5, 9, 17))[0]
    forest = stand * np.clip(1.0 + 0.35 * texture, 0.1, 2.5)
    level = np.zeros(len(CLASSES))
    level[[SHRUB, GRASS, ROWCROP, CEREAL]] = 18.0, 3.0, 5.0, 4.0
    return np.asarray(np.where(classes == FOREST, forest, level[classes] * np.clip(1.0 + 0.3 * texture, 0.1, 2.0)))


def _surface(classes: NDArray[np.int64], vigour: Array, air: float, stream: Stream) -> Array:
    """Summer surface temperature: the air, the cover of the ground, evaporation, and the heat around buildings."""
    evaporation = np.where(GREEN[classes], 6.0 * (0.6 - vigour), 0.0)
    crowd = _around(classes == BUILT)
    noise = 0.8 * fields(stream, 1)[0] + 0.8 * float(stream.bell(1)[0])
    return np.asarray(air + WARMTH[classes] + evaporation + 4.0 * crowd + noise)


def _around(mask: NDArray[np.bool_], reach: int = 4) -> Array:
    """The share of a mask in the square around each pixel, counted exactly."""
    count = np.pad(mask.reshape(SIDE, SIDE), reach, mode="edge").astype(np.int64).cumsum(0).cumsum(1)
    count = np.pad(count, ((1, 0), (1, 0)))
    width = 2 * reach + 1
    box = count[width:, width:] - count[:-width, width:] - count[width:, :-width] + count[:-width, :-width]
    return np.asarray((box / (width * width)).reshape(PIXELS))


def _clouds(pool: str, stream: Stream) -> Array:
    """Opacity: the highest part of a surface is cloud. Most places were chosen for clear skies, one pool was not."""
    u = stream.uniform(4)
    rare = u * u * u * u
    cover = np.clip(1.3 * u - 0.25 if pool == "clouds" else 0.6 * rare * rare - 0.02, 0.0, 1.0)
    height = fields(stream, 4, (3, 6, 11))
    rows = np.sort(height, axis=1)
    edge = rows[np.arange(4), np.minimum((PIXELS * (1.0 - cover)).astype(np.int64), PIXELS - 1)]
    thick = np.clip((height - edge[:, None]) * 1.6 + 0.25, 0.0, 1.0)
    return np.where((height > edge[:, None]) & (cover > 0)[:, None], thick, 0.0)


def _lit(stream: Stream) -> NDArray[np.bool_]:
    """In some samples the edge of a swath crosses the image, in one season or more."""
    present, reach = stream.one() < 0.12, stream.uniform(4)
    slope = 2.0 * stream.uniform(2) - 1.0
    y, x = np.divmod(np.arange(PIXELS), SIDE)
    across = slope[0] * (x / SIDE - 0.5) + slope[1] * (y / SIDE - 0.5)
    limit = np.where(reach < 0.45, 0.45 * (1.0 - 2.2 * reach), 2.0)
    return np.asarray((across[None, :] <= limit[:, None]) | np.bool_(not present))
