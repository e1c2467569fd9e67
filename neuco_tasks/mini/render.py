"""From a scene to the 27 bands that Sentinel-1 and Sentinel-2 would record, in four seasons."""

from __future__ import annotations

import numpy as np

from neuco_tasks.mini.scene import GREEN, Scene
from neuco_tasks.mini.spectra import (
    BANDS,
    BARE,
    BUILT,
    CLEAR,
    CLOUD,
    FOREST,
    MICROMETRES,
    OPEN_FOREST,
    PATH,
    SNOW,
    WATER,
    backscatter,
    reflectance,
)
from neuco_tasks.mini.stable import PIXELS, SIDE, Array, Array32, Stream, decay, decibel, power

SUN = np.array([1.0, 1.04, 0.96, 0.88])  # brightness of the seasons
# One number per band brings the mean over the dataset to that of SSL4EO-S12 (dB for radar, factors for the rest).
RADAR_OFFSET = np.array([0.07, -0.6])
GAIN_L1C = np.array([0.961, 0.937, 0.903, 0.95, 0.932, 0.898, 0.927, 0.927, 0.937, 0.966, 1.214, 0.964, 0.931])
GAIN_L2A = np.array([0.786, 0.844, 0.865, 0.923, 0.943, 0.913, 0.919, 0.947, 0.922, 0.958, 0.969, 0.966])


def render(scene: Scene, stream: Stream) -> Array32:
    """(season, band, y, x): radar in dB, reflectance in whole DN, 0 where there are no data."""
    cube = np.empty((4, len(BANDS), PIXELS), dtype=np.float32)
    snow = _snow(scene, stream)
    cube[:, :2] = _radar(scene, snow, stream)
    ground = _ground(scene, snow, stream)
    cube[:, 2:15], cube[:, 15:] = _products(scene, ground, stream)
    texture = np.float32(1.0) + np.float32(0.025) * stream.grain(4, 25, PIXELS)
    cube[:, 2:] = np.rint(np.maximum(cube[:, 2:] * texture, np.float32(1.0)))
    cube[:, 2:] *= scene.lit[:, None, :]
    return cube.reshape(4, len(BANDS), SIDE, SIDE)


def _year(table: Array, phase: float) -> Array:
    """The table of a place whose year runs ahead of the mean one, or behind it."""
    part = min(abs(phase), 1.0)
    return table * (1.0 - part) + np.roll(table, -1 if phase > 0 else 1, axis=0) * part


def _snow(scene: Scene, stream: Stream) -> Array:
    """Share of the ground under snow, (season, pixel); crowns hide it and water swallows it."""
    depth = np.clip((273.5 - scene.air - 0.8 * stream.bell(4)) * 0.3, 0.0, 1.0)
    shows = np.ones(8)
    shows[[FOREST, BUILT, WATER]] = 0.4, 0.7, 0.15
    return depth[:, None] * shows[scene.classes]


def _radar(scene: Scene, snow: Array, stream: Stream) -> Array:
    """Water-cloud model: the canopy scatters, and dims what comes from the ground; biomass does more of both."""
    table = _year(backscatter(), scene.phase)
    wet = 0.9 * stream.bell(4)[:, None, None] - 1.5 * snow[:, None, :]
    level = table[:, :, scene.classes] + np.where(scene.classes == WATER, 0.0, wet)
    canopy = power(np.array([-9.6, -14.6]))[:, None]
    soil = power(np.array([-13.5, -21.5])[:, None] + wet)
    through = decay(scene.biomass * np.array([[1.0 / 110], [1.0 / 140]]))
    woods = decibel(canopy * (1.0 - through) + soil * through)
    level = np.where(scene.classes == FOREST, woods, level)
    return np.asarray(level + RADAR_OFFSET[:, None] + 0.7 * stream.bell(4, 2, 1) + 1.3 * stream.grain(4, 2, PIXELS))


def _ground(scene: Scene, snow: Array, stream: Stream) -> Array32:
    """Surface reflectance, (season, L2A band, pixel)."""
    tilt = (MICROMETRES - 1.0)[:, None] * 0.05 * stream.bell(1, 8) + 0.07 * stream.bell(1, 8)
    table = (_year(reflectance(), scene.phase) * (1.0 + tilt) * SUN[:, None, None]).astype(np.float32)
    ground: Array32 = table[:, :, scene.classes]
    dry = np.where(GREEN[scene.classes], 0.55 * (1.0 - scene.vigour), 0.0).astype(np.float32)
    ground += (table[:, :, BARE, None] - ground) * dry
    thin = np.where(scene.classes == FOREST, decay(scene.biomass * (1.0 / 90)), 0.0)
    ground *= (1.0 + OPEN_FOREST[:, None] * thin).astype(np.float32)
    ground += (SNOW.astype(np.float32)[:, None] - ground) * snow.astype(np.float32)[:, None, :]
    return ground


def _products(scene: Scene, ground: Array32, stream: Stream) -> tuple[Array, Array]:
    """Top of the atmosphere (13 bands) and surface reflectance (12), both with clouds and their shadows."""
    opacity = scene.clouds.astype(np.float32)[:, None, :]
    shadow = np.roll(scene.clouds.reshape(4, SIDE, SIDE), (2, 3), axis=(1, 2)).reshape(4, 1, PIXELS)
    white = (CLOUD * (0.85 + 0.3 * stream.uniform(4, 1)))[:, :, None].astype(np.float32)
    seen = ground * (1.0 - 0.45 * shadow * (1.0 - opacity)).astype(np.float32)
    seen += (white - seen) * opacity
    haze, vapour = 0.6 + 0.8 * stream.uniform(4, 1, 1), stream.uniform(4, 1, 1)
    clear = np.repeat(CLEAR[None, :, None], 4, axis=0)
    clear[:, 9] *= 1.5 - vapour[:, 0]
    top = seen * clear.astype(np.float32) + (PATH[:, None] * haze).astype(np.float32) * (1.0 - opacity)
    high = stream.uniform(4, 1, 1)
    cirrus = 6.0 + 8.0 * (1.0 - vapour) + 260.0 * opacity * high * high
    top = np.concatenate([top[:, :10], cirrus.astype(np.float32), top[:, 10:]], axis=1)
    return top * GAIN_L1C[:, None], seen * GAIN_L2A[:, None]
