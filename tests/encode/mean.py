"""The encoder of these tests, in a module of its own: its code is looked at for every key of the cache."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neuco_core.cubes.cubes import CubeBatch
from neuco_core.specs import Method
from neuco_core.testing import TinyCubes


class Mean:
    """The mean of each band, with a note of what was asked of it."""

    log: ClassVar[list[str]] = []

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def fit(self, source: TinyCubes) -> None:
        self.log.append("fit")

    def encode(self, batch: CubeBatch) -> np.ndarray:
        self.log.append(f"encode {len(batch.ids)}")
        return np.asarray(batch.values.mean(axis=(1, 3, 4)) * self.scale, dtype=np.float32)


def make(scale: float = 1.0) -> Mean:
    return Mean(scale)


MEAN = Method(id="mean", encoder=make, params={"scale": 1.0})
