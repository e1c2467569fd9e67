"""Six ways in which images get worse, each at five levels; the same images every time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from neuco_core.cubes.cubes import CubeBatch, CubeSource
from neuco_core.encoders import resize, shrink
from neuco_core.versions import versioned

KINDS = {
    "noise": "noise of 20 to 100 % of each band's spread",
    "haze": "each optical band drawn towards a bright value by 15 to 75 %",
    "lost bands": "10 to 50 % of the bands at their mean",
    "cloud": "a bright square over 10 to 50 % of the optical bands",
    "shift": "the image moved by one to five pixels, or by 3 to 15 % of its width if that is more",
    "resolution": "pixels 2 to 6 times as wide",
}
LEVELS = (1, 2, 3, 4, 5)


class Stressed:
    """A source whose images get worse on reading, as ``kind`` and ``level`` say; without a kind they are as they were.

    What is usual of a band is taken from ``ids``.
    """

    def __init__(self, source: CubeSource, ids: Sequence[str]) -> None:
        self.source, self.kind, self.level = source, "", 0
        self.version, self.bands, self.seasons = source.version, source.bands, source.seasons
        self.parallel = bool(getattr(source, "parallel", True))
        pixels = np.stack([source.read([name]).values[0] for name in ids]).astype(np.float64)
        self._mean, self._std = (part(axis=(0, 1, 3, 4))[:, None, None] for part in (pixels.mean, pixels.std))

    def ids(self) -> tuple[str, ...]:
        return self.source.ids()

    def read(self, ids: Sequence[str]) -> CubeBatch:
        batch = self.source.read(ids)
        if not self.kind:
            return batch
        worse = [self._worse(name, cube.astype(np.float64)) for name, cube in zip(ids, batch.values, strict=True)]
        return replace(batch, values=np.stack(worse).astype(np.float32))

    def _worse(self, name: str, cube: np.ndarray) -> np.ndarray:
        """One cube (season, band, y, x). What is drawn by lot depends on the sample and the kind alone."""
        seed = hashlib.sha256(f"{name} {self.kind}".encode()).digest()
        random = np.random.default_rng(list(seed))
        optical = np.array([not band.startswith("s1/") for band in self.bands])
        return worse(cube, self.kind, self.level, random, self._mean, self._std, optical)


@versioned(1)
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
    if kind == "lost bands":
        count = max(1, round(0.1 * level * cube.shape[1]))
        lost = random.permutation(cube.shape[1])[:count]
        cube = cube.copy()
        cube[:, lost] = mean[lost]
        return cube
    if kind == "shift":
        step = min(round(level * max(1.0, 0.03 * width)), width - 1)
        return np.concatenate([cube[..., step:], np.repeat(cube[..., -1:], step, axis=-1)], axis=-1)
    if kind == "resolution":
        return resize(shrink(cube, max(1, round(min(height, width) / (1 + level)))), height, width).astype(np.float64)
    cube = cube.copy()
    bright = (mean + 2 * std)[optical]
    if kind == "haze":
        cube[:, optical] = (1 - 0.15 * level) * cube[:, optical] + 0.15 * level * bright
        return cube
    tall, wide = (max(1, round(np.sqrt(0.1 * level) * length)) for length in (height, width))
    top, left = int(random.integers(height - tall + 1)), int(random.integers(width - wide + 1))
    patch = np.zeros((height, width), dtype=bool)
    patch[top : top + tall, left : left + wide] = True
    cube[:, optical] = np.where(patch, bright, cube[:, optical])
    return cube
