"""Try an encoder without any dataset: small synthetic cubes, and the promises that every encoder makes."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from neuco_core.cubes.cubes import CubeBatch
from neuco_core.encode.run import one_thread
from neuco_core.encoders import MAX_DIM, PUBLISHED_STATISTICS
from neuco_core.errors import PluginError
from neuco_core.specs import Dataset

SSL4EO_BANDS = tuple(PUBLISHED_STATISTICS)
LANDSAT_BANDS = tuple(f"etm/B{number}" for number in (1, 2, 3, 4, 5, 7))
GREY_BANDS = ("grey/0",)
SEASONS = ("spring", "summer", "fall", "winter")


class TinyCubes:
    """A few cubes of slopes and noise, each made from its id alone."""

    def __init__(
        self,
        count: int = 12,
        bands: Sequence[str] = SSL4EO_BANDS,
        seasons: Sequence[str] = SEASONS,
        size: int = 16,
        version: str = "1",
    ) -> None:
        self.version = version
        self.bands = tuple(bands)
        self.seasons = tuple(seasons)
        self.size = size
        self._ids = tuple(hashlib.sha256(str(i).encode()).hexdigest()[:12] for i in range(count))

    def ids(self) -> tuple[str, ...]:
        return self._ids

    def read(self, ids: Sequence[str]) -> CubeBatch:
        return CubeBatch(tuple(ids), np.stack([self._one(name) for name in ids]), self.bands, self.seasons)

    def shuffled(self) -> TinyCubes:
        """The same samples, listed the other way round."""
        other = TinyCubes(len(self._ids), self.bands, self.seasons, self.size, self.version)
        other._ids = self._ids[::-1]
        return other

    def dataset(self, name: str = "tiny") -> Dataset:
        return Dataset(id=name, bands=self.bands, seasons=self.seasons, cubes=lambda: self, synthetic=True)

    def _one(self, name: str) -> np.ndarray:
        random = np.random.default_rng(int(name, 16))
        shape = (len(self.seasons), len(self.bands), self.size, self.size)
        slope = np.linspace(-1, 1, self.size)[:, None] * random.normal(size=(*shape[:2], 1, 1))
        values = random.normal(size=(*shape[:2], 1, 1)) + slope + random.normal(scale=0.3, size=shape)
        pairs = np.array([PUBLISHED_STATISTICS.get(band, (60.0, 20.0)) for band in self.bands])
        return np.asarray(values * pairs[:, 1, None, None] + pairs[:, 0, None, None], dtype=np.float32)


def run(factory: Callable[[], Any], source: TinyCubes, batch_size: int = 64) -> np.ndarray:
    """Fit, if it learns, and encode all samples: rows in the order of the sorted ids."""
    ids = source.ids()
    parts = [ids[start : start + batch_size] for start in range(0, len(ids), batch_size)]
    with one_thread("torch" in sys.modules):
        encoder = factory()
        if hasattr(encoder, "fit"):
            encoder.fit(source)
        values = np.concatenate([np.asarray(encoder.encode(source.read(part))) for part in parts])
    return np.asarray(values[np.argsort(ids)])


def check_encoder(factory: Callable[[], Any], source: TinyCubes | None = None) -> np.ndarray:
    """Hold an encoder to its promises and return what it gave; the first one broken is a ``PluginError``."""
    source = source or TinyCubes()
    values = run(factory, source)
    _promise(values.dtype == np.float32, "float32 values", values.dtype)
    _promise(values.ndim == 2 and len(values) == len(source.ids()), "one row for each sample", values.shape)
    _promise(1 <= values.shape[1] <= MAX_DIM, f"1 to {MAX_DIM} values", values.shape[1])
    _promise(bool(np.isfinite(values).all()), "finite values", "others")
    _promise(len(np.unique(values, axis=0)) == len(values), "different rows for different samples", "equal ones")
    for what, again in (
        ("when it runs again", run(factory, source)),
        ("with another batch size", run(factory, source, batch_size=5)),
        ("when the samples come in another order", run(factory, source.shuffled())),
    ):
        _promise(np.array_equal(values, again), f"the same values {what}", "others")
    return values


def _promise(kept: bool, expected: str, got: object) -> None:
    if not kept:
        raise PluginError("an encoder breaks its promise", expected=expected, got=got)
