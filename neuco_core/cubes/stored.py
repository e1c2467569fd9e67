"""Batches in the types of their files, and sources of which only a part is read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

import numpy as np

from neuco_core.cubes.cubes import CubeBatch, CubeSource
from neuco_core.errors import DataError
from neuco_core.tables.csv import shown


class StoredBatch(CubeBatch):
    """Samples as they are stored: each a list of arrays (season, band, y, x), whose bands follow one another.

    16-bit integers take half the memory of float32. ``values`` are made when somebody asks for them; ``samples`` makes
    those of one sample at a time.
    """

    def __init__(
        self,
        ids: tuple[str, ...],
        values: Sequence[Sequence[np.ndarray]] | np.ndarray,
        bands: tuple[str, ...],
        seasons: tuple[str, ...],
    ) -> None:
        cubes = [[cube] for cube in values] if isinstance(values, np.ndarray) else values
        for name, value in (("ids", ids), ("bands", bands), ("seasons", seasons), ("_cubes", cubes)):
            object.__setattr__(self, name, value)

    _cubes: Sequence[Sequence[np.ndarray]]

    @cached_property
    def values(self) -> np.ndarray:
        first = self._cubes[0]
        values = np.empty((len(self.ids), len(self.seasons), len(self.bands), *first[0].shape[-2:]), np.float32)
        for cube, target in zip(self._cubes, values, strict=True):
            _fill(target, cube)
        return values

    def samples(self) -> Iterator[np.ndarray]:
        if "values" in self.__dict__:
            yield from self.values
            return
        for cube in self._cubes:
            sample = np.empty((len(self.seasons), len(self.bands), *cube[0].shape[-2:]), np.float32)
            _fill(sample, cube)
            yield sample

    def rows(self, start: int, stop: int) -> CubeBatch:
        return StoredBatch(self.ids[start:stop], self._cubes[start:stop], self.bands, self.seasons)

    @property
    def size(self) -> tuple[int, int]:
        height, width = self._cubes[0][0].shape[-2:]
        return height, width

    def at(self, y: np.ndarray, x: np.ndarray) -> CubeBatch:
        cubes = [[part[..., y[:, None], x] for part in cube] for cube in self._cubes]
        return StoredBatch(self.ids, cubes, self.bands, self.seasons)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for cube in self._cubes for part in cube)

    @classmethod
    def joined(cls, batches: Sequence[CubeBatch]) -> CubeBatch:
        """Several batches as one; none of those that are stored is copied."""
        first, ids = batches[0], tuple(name for batch in batches for name in batch.ids)
        sizes = {tuple(cube[0].shape[-2:]) for batch in batches for cube in _cubes_of(batch)}
        if len(sizes) != 1:
            got = shown(sorted(f"{height} × {width}" for height, width in sizes))
            raise DataError("cubes of different sizes in one batch", where="cubes", got=got)
        return cls(ids, [cube for batch in batches for cube in _cubes_of(batch)], first.bands, first.seasons)


def _cubes_of(batch: CubeBatch) -> Sequence[Sequence[np.ndarray]]:
    return batch._cubes if isinstance(batch, StoredBatch) else [[cube] for cube in batch.values]


def _fill(target: np.ndarray, cube: Sequence[np.ndarray]) -> None:
    """Put the bands of all parts side by side; numpy converts them on the way."""
    start = 0
    for part in cube:
        target[:, start : start + part.shape[1]] = part
        start += part.shape[1]


class Selection:
    """Some bands, seasons and samples of a source, in its order. Its version is that of the whole: a part is no other
    data.
    """

    def __init__(
        self, source: CubeSource, bands: Sequence[str] = (), seasons: Sequence[str] = (), ids: Collection[str] = ()
    ) -> None:
        self.source, self._only = source, ids
        self.bands = tuple(
            band for band in source.bands if not bands or band in bands or band.partition("/")[0] in bands
        )
        self.seasons = tuple(season for season in source.seasons if not seasons or season in seasons)
        self.parallel = bool(getattr(source, "parallel", True))

    @property
    def version(self) -> str:
        return self.source.version

    def ids(self) -> tuple[str, ...]:
        ids = self.source.ids()
        return tuple(name for name in ids if name in self._only) if self._only else ids

    def read(self, ids: Sequence[str]) -> CubeBatch:
        some = getattr(self.source, "read_some", None)
        if some is not None:
            batch: CubeBatch = some(ids, self.bands, self.seasons)
            return batch
        return self.source.read(ids).select(self.bands, self.seasons)


def select(source: CubeSource, bands: Sequence[str], seasons: Sequence[str] = ()) -> CubeSource:
    """The source, or what was chosen of it; nothing chosen means everything."""
    part = Selection(source, bands, seasons)
    return source if (part.bands, part.seasons) == (source.bands, source.seasons) else part
