"""Uniform numbers in [-1, 1) made from a hash of the seed and the sample's id."""

from __future__ import annotations

import hashlib

import numpy as np

from neuco_core.cubes.cubes import CubeBatch


class RandomEncoder:
    """The same id gives the same row on every machine, in any order and batch."""

    needs_cubes = False

    def __init__(self, dim: int, seed: int) -> None:
        self.dim = dim
        self.seed = seed

    def encode(self, batch: CubeBatch) -> np.ndarray:
        return np.stack([self._row(sample_id) for sample_id in batch.ids])

    def _row(self, sample_id: str) -> np.ndarray:
        # A hash with output of any length instead of a generator: no library's stream of numbers to depend on.
        digest = hashlib.shake_256(f"{self.seed}/{sample_id}".encode()).digest(4 * self.dim)
        words = np.frombuffer(digest, dtype="<u4") >> 8
        return (words * 2.0**-23 - 1).astype(np.float32)
