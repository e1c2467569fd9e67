"""Incremental principal components of small, scaled cubes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from neuco_core.data.cubes import CubeBatch, CubeSource
from neuco_core.data.encode_bands import encode_each, fit_standardizer, shrink
from neuco_core.errors import DataError, UsageError


class PCAEncoder:
    """Reads the dataset once in parts that fit ``memory_mb``; the samples go in by sorted id."""

    def __init__(self, dim: int = 256, size: int = 8, whiten: bool = False, memory_mb: int = 256) -> None:
        if dim < 1 or size < 1 or memory_mb < 1:
            raise UsageError("dim, size and memory_mb must be at least 1", got=(dim, size, memory_mb))
        self.dim = dim
        self.size = size
        self.whiten = whiten
        self.memory_mb = memory_mb

    def fit(self, source: CubeSource) -> None:
        from sklearn.decomposition import IncrementalPCA

        self._scale = fit_standardizer(source)
        ids = sorted(source.ids())
        if len(ids) < 2:
            raise DataError("principal components need at least 2 samples", got=len(ids))
        width = self._vector(source.read(ids[:1]).values[0]).size
        dim = min(self.dim, width, len(ids) - 1)
        # Each step decomposes the components so far and the new rows together, in double precision.
        rows = max(dim, self.memory_mb * 2**20 // (8 * width) - dim)
        model = IncrementalPCA(n_components=dim)
        for part in split_evenly(ids, rows):
            model.partial_fit(np.stack([self._vector(source.read([name]).values[0]) for name in part]))
        scale = np.sqrt(np.maximum(model.explained_variance_, 1e-12)) if self.whiten else np.ones(dim)
        self._mean = model.mean_
        self._components = model.components_ / scale[:, None]

    def encode(self, batch: CubeBatch) -> np.ndarray:
        return encode_each(batch, lambda sample: self._components @ (self._vector(sample) - self._mean))

    def _vector(self, sample: np.ndarray) -> np.ndarray:
        return shrink(self._scale(sample), self.size).reshape(-1).astype(np.float64)


def split_evenly(ids: list[str], most: int) -> list[list[str]]:
    """Parts of about equal length: a short last one would have fewer rows than components."""
    parts = max(1, len(ids) // most)
    edges = np.linspace(0, len(ids), parts + 1).astype(int)
    return [ids[start:stop] for start, stop in pairwise(edges)]
