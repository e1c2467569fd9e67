"""Six ways in which images get worse, each at five levels; the same images every time."""

from __future__ import annotations

import hashlib

import numpy as np

from neuco_core.cubes.cubes import CubeBatch
from neuco_core.encoders import resize, shrink

KINDS = {
    "noise": "noise of 20 to 100 % of each band's spread",
    "haze": "each optical band drawn towards a bright value by 15 to 75 %",
    "lost bands": "10 to 50 % of the bands at their mean",
    "cloud": "a bright square over 10 to 50 % of the optical bands",
    "shift": "the image moved by one to five pixels, or by 3 to 15 % of its width if that is more",
    "resolution": "pixels 2 to 6 times as wide",
}
LEVELS = (1, 2, 3, 4, 5)


class Damage:
    """Makes images worse. ``usual`` are images by which is known what is usual of a band.

    What is drawn by lot depends on the sample and the kind alone.
    """

    def __init__(self, usual: CubeBatch) -> None:
        values = usual.values
        parts = (part(axis=(0, 1, 3, 4), dtype=np.float64) for part in (values.mean, values.std))
        self._mean, self._std = (part[:, None, None] for part in parts)
        self._optical = np.array([not band.startswith("s1/") for band in usual.bands])

    def __call__(self, batch: CubeBatch, kind: str, level: int) -> np.ndarray:
        cubes = []
        for name, cube in zip(batch.ids, batch.values.astype(np.float64), strict=True):
            random = np.random.default_rng(list(hashlib.sha256(f"{name} {kind}".encode()).digest()))
            cubes.append(worse(cube, kind, level, random, self._mean, self._std, self._optical))
        return np.stack(cubes).astype(np.float32)


def worse(
    cube: np.ndarray,
    kind: str,
    level: int,
    random: np.random.Generator,
    mean: np.ndarray,
    std: np.ndarray,
    optical: np.ndarray,
) -> np.ndarray:
    """A cube (season, band, y, x) made worse; ``mean`` and ``std`` are (band, 1, 1), ``optical`` says which are."""
    height, width = cube.shape[-2:]
    if kind == "noise":
        return np.asarray(cube + 0.2 * level * std * random.standard_normal(cube.shape))
    if kind == "shift":
        step = min(round(level * max(1.0, 0.03 * width)), width - 1)
        return np.concatenate([cube[..., step:], np.repeat(cube[..., -1:], step, axis=-1)], axis=-1)
    if kind == "resolution":
        return resize(shrink(cube, max(1, round(min(height, width) / (1 + level)))), height, width).astype(np.float64)
    cube, bright = cube.copy(), (mean + 2 * std)[optical]
    if kind == "lost bands":
        lost = random.permutation(cube.shape[1])[: max(1, round(0.1 * level * cube.shape[1]))]
        cube[:, lost] = mean[lost]
    elif kind == "haze":
        cube[:, optical] = (1 - 0.15 * level) * cube[:, optical] + 0.15 * level * bright
    else:
        tall, wide = (max(1, round(np.sqrt(0.1 * level) * length)) for length in (height, width))
        top, left = int(random.integers(height - tall + 1)), int(random.integers(width - wide + 1))
        patch = np.zeros((height, width), dtype=bool)
        patch[top : top + tall, left : left + wide] = True
        cube[:, optical] = np.where(patch, bright, cube[:, optical])
    return cube
