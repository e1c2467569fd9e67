"""Incremental principal components of small, scaled cubes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from neuco_core.cubes.cubes import CubeBatch, CubeSource
from neuco_core.encoders import encode_each, fit_standardizer, shrink
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
        self._scale = fit_standardizer(source)
        ids = sorted(source.ids())
        if len(ids) < 2:
            raise DataError("principal components need at least 2 samples", got=len(ids))
        width = self._vector(source.read(ids[:1]).values[0]).size
        dim = min(self.dim, width, len(ids) - 1)
        # A step decomposes the components so far and the new rows together, in double precision.
        rows = max(dim, self.memory_mb * 2**20 // (8 * width) - dim)
        model = Components(width, dim)
        for part in split_evenly(ids, rows):
            model.add(np.stack([self._vector(source.read([name]).values[0]) for name in part]))
        self._mean = model.mean
        self._components = model.axes / model.spread()[:, None] if self.whiten else model.axes

    def encode(self, batch: CubeBatch) -> np.ndarray:
        return encode_each(batch, lambda sample: self._components @ (self._vector(sample) - self._mean))

    def _vector(self, sample: np.ndarray) -> np.ndarray:
        return shrink(self._scale(sample), self.size).reshape(-1).astype(np.float64)


class Components:
    """Leading principal axes of rows that come in parts (Ross et al. 2008).

    The decomposition goes through the small matrix of products of rows: far less work than that of the rows
    themselves when a row is far longer than there are rows, and exact enough for the leading axes.
    """

    def __init__(self, width: int, dim: int) -> None:
        self.dim = dim
        self.count = 0
        self.mean = np.zeros(width)
        self.axes = np.zeros((0, width))
        self.singular = np.zeros(0)

    def add(self, rows: np.ndarray) -> None:
        new = rows.mean(axis=0)
        total = self.count + len(rows)
        between = np.sqrt(self.count * len(rows) / total) * (self.mean - new)
        stack = np.concatenate([self.singular[:, None] * self.axes, rows - new, between[None]])
        values, vectors = np.linalg.eigh(stack @ stack.T)
        leading = np.argsort(values)[::-1][: self.dim]
        self.singular = np.sqrt(np.maximum(values[leading], 1e-12))
        self.axes = vectors[:, leading].T @ stack / self.singular[:, None]
        # The sign of an axis is free; the largest entry is made positive, so that it is always the same.
        largest = np.abs(self.axes).argmax(axis=1)
        self.axes *= np.sign(self.axes[np.arange(len(largest)), largest])[:, None]
        self.mean = (self.count * self.mean + len(rows) * new) / total
        self.count = total

    def spread(self) -> np.ndarray:
        """The standard deviation along each axis."""
        return np.asarray(self.singular / np.sqrt(self.count - 1))


def split_evenly(ids: list[str], most: int) -> list[list[str]]:
    """Parts of about equal length: a short last one would have fewer rows than components."""
    parts = max(1, len(ids) // most)
    edges = np.linspace(0, len(ids), parts + 1).astype(int)
    return [ids[start:stop] for start, stop in pairwise(edges)]
