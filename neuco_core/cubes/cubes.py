"""Inputs as data cubes: batches, what a dataset's source offers, and views of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from neuco_core.errors import DataError, UsageError
from neuco_core.tables.csv import shown

if TYPE_CHECKING:
    import xarray

    from neuco_core.specs import Dataset


@dataclass(frozen=True, init=False)
class CubeBatch:
    """Some samples at once: ``values`` is float32, (sample, season, band, y, x); bands are ``modality/BAND``.

    A source may give samples as they are stored: each a list of arrays (season, band, y, x), whose bands follow one
    another. 16-bit integers take half the memory of float32: ``values`` are made when somebody asks for them, and
    ``samples`` makes those of one sample at a time.
    """

    ids: tuple[str, ...]
    values: np.ndarray
    bands: tuple[str, ...]
    seasons: tuple[str, ...]
    _cubes: Sequence[Sequence[np.ndarray]] = field(init=False, compare=False)

    def __init__(
        self,
        ids: tuple[str, ...],
        values: np.ndarray | Sequence[Sequence[np.ndarray]],
        bands: tuple[str, ...],
        seasons: tuple[str, ...],
    ) -> None:
        stored = not isinstance(values, np.ndarray)
        cubes: Any = values if stored else [[cube] for cube in values]
        sizes = {cube[0].shape[-2:] for cube in cubes}
        if len(sizes) > 1:
            got = shown(sorted(f"{height} × {width}" for height, width in sizes))
            raise DataError("cubes of different sizes in one batch", where="cubes", got=got)
        vars(self).update(ids=ids, bands=bands, seasons=seasons, _cubes=cubes)
        if not stored:
            vars(self)["values"] = values

    @cached_property  # type: ignore[no-redef]
    def values(self) -> np.ndarray:
        values = np.empty((len(self.ids), len(self.seasons), len(self.bands), *self.size), np.float32)
        for cube, target in zip(self._cubes, values, strict=True):
            np.concatenate(cube, axis=1, out=target, casting="unsafe")
        return values

    def __repr__(self) -> str:
        height, width = self.size
        counts = f"{len(self.ids)} samples, {len(self.seasons)} seasons, {len(self.bands)} bands"
        return f"{type(self).__name__}({counts}, {height} × {width} pixels)"

    def pick(self, *names: str) -> np.ndarray:
        """The values of some bands, in the order asked for: ``s2l1c/B04``, or ``s2l1c`` for all of a modality."""
        places = [place for name in names for place in self._places(name)]
        return self.values[:, :, places]

    def select(self, bands: Sequence[str] = (), seasons: Sequence[str] = ()) -> CubeBatch:
        """The batch with some of its bands (or modalities) and seasons only; all of them if none is named."""
        places = [place for name in bands or self.bands for place in self._places(name)]
        absent = [season for season in seasons if season not in self.seasons]
        if absent:
            raise DataError(f"no season {absent[0]!r}", where="cubes", got="seasons " + shown(self.seasons))
        chosen = tuple(seasons) or self.seasons
        values = self.values[:, [self.seasons.index(season) for season in chosen]][:, :, places]
        return CubeBatch(self.ids, values, tuple(self.bands[place] for place in places), chosen)

    def samples(self) -> Iterator[np.ndarray]:
        """Each sample by itself: float32, (season, band, y, x)."""
        if "values" in vars(self):
            yield from self.values
            return
        for cube in self._cubes:
            yield np.concatenate(cube, axis=1, dtype=np.float32, casting="unsafe")

    def rows(self, start: int, stop: int) -> CubeBatch:
        """Some of the samples, by their places."""
        held = vars(self).get("values", self._cubes)
        return CubeBatch(self.ids[start:stop], held[start:stop], self.bands, self.seasons)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the images, in pixels."""
        height, width = self._cubes[0][0].shape[-2:]
        return height, width

    def at(self, y: np.ndarray, x: np.ndarray) -> CubeBatch:
        """The pixels at some lines and columns only."""
        cubes = [[part[..., y[:, None], x] for part in cube] for cube in self._cubes]
        return CubeBatch(self.ids, cubes, self.bands, self.seasons)

    @property
    def nbytes(self) -> int:
        """Bytes of the values as they are held."""
        return sum(part.nbytes for cube in self._cubes for part in cube)

    @classmethod
    def joined(cls, batches: Sequence[CubeBatch]) -> CubeBatch:
        """Several batches as one; none of those that are stored is copied."""
        ids = tuple(name for batch in batches for name in batch.ids)
        cubes = [cube for batch in batches for cube in batch._cubes]
        return cls(ids, cubes, batches[0].bands, batches[0].seasons)

    def _places(self, name: str) -> list[int]:
        band_indices = [
            index for index, band in enumerate(self.bands) if band == name or band.partition("/")[0] == name
        ]
        if not band_indices:
            raise DataError(f"no band or modality {name!r}", where="cubes", got="bands " + shown(self.bands, 30))
        return band_indices

    def xarray(self) -> xarray.DataArray:
        """The batch with named samples, seasons, bands and modalities.

        ``x`` and ``y`` count pixels from the lower left corner, so that a plot shows the first row at the top.
        """
        import xarray as xr

        height, width = self.values.shape[-2:]
        coords = {
            "y": np.arange(height)[::-1] + 0.5,
            "x": np.arange(width) + 0.5,
            "id": list(self.ids),
            "season": list(self.seasons),
            "band": list(self.bands),
            "modality": ("band", [band.partition("/")[0] for band in self.bands]),
        }
        return xr.DataArray(self.values, coords=coords, dims=("id", "season", "band", "y", "x"))


class CubeSource(Protocol):
    """What ``Dataset.cubes()`` returns. ``version`` changes whenever any value may change, and only then.

    ``read`` is called by several threads at a time, unless the source says ``parallel = False``. A source that can do
    with less work if only some bands and seasons are wanted also has ``read_some(ids, bands, seasons)``, which gives
    them in the source's own order.

    A source of images that have a place on the Earth also has ``place(id)``, which gives it or None
    (``neuco_core.cubes.images.Place``).

    A source of files may also have ``damaged()``: it reads every byte, and gives each file with what is wrong with it
    or "". ``neuco data check DATASET`` calls it, and reads every sample of a source that has none.
    """

    @property
    def version(self) -> str: ...

    @property
    def bands(self) -> tuple[str, ...]: ...

    @property
    def seasons(self) -> tuple[str, ...]: ...

    def ids(self) -> tuple[str, ...]: ...

    def read(self, ids: Sequence[str]) -> CubeBatch: ...


class Selection:
    """Some bands, seasons and samples of a source, in its order. Its version is that of the whole."""

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
        if (self.bands, self.seasons) == (self.source.bands, self.source.seasons):
            return self.source.read(ids)
        if not hasattr(self.source, "read_some"):
            return self.source.read(ids).select(self.bands, self.seasons)
        batch: CubeBatch = self.source.read_some(ids, self.bands, self.seasons)
        return batch


def select(source: CubeSource, bands: Sequence[str], seasons: Sequence[str] = ()) -> CubeSource:
    """The source, or what was chosen of it; nothing chosen means everything."""
    if not bands and not seasons:
        return source
    part = Selection(source, bands, seasons)
    return source if (part.bands, part.seasons) == (source.bands, source.seasons) else part


class Changed(Selection):
    """A source whose images are changed as they are read: ``change`` gives the values in place of a batch's."""

    change: Callable[[CubeBatch], np.ndarray] | None = None

    def read(self, ids: Sequence[str]) -> CubeBatch:
        batch = super().read(ids)
        if self.change is None:
            return batch
        # As batches are that were read: torch takes no array that runs backwards.
        return replace(batch, values=np.ascontiguousarray(self.change(batch)))


class Renamed:
    """A dataset's cubes under names that say nothing but their order, by which an encoder may learn."""

    def __init__(self, source: CubeSource) -> None:
        self.source = source
        self.version, self.bands, self.seasons = source.version, source.bands, source.seasons
        names = {sample: f"sample-{number:08d}" for number, sample in enumerate(sorted(source.ids()))}
        self._ids = tuple(names[sample] for sample in source.ids())
        self._samples = {name: sample for sample, name in names.items()}

    def ids(self) -> tuple[str, ...]:
        return self._ids

    def read(self, ids: Sequence[str]) -> CubeBatch:
        return replace(self.source.read([self._samples[name] for name in ids]), ids=tuple(ids))


def batches(source: CubeSource, size: int, ids: Iterable[str] | None = None) -> Iterator[CubeBatch]:
    """The samples of a source (or those named), ``size`` at a time, the last batch with what is left."""
    if size < 1:
        raise UsageError("bad batch size", expected="at least 1", got=size)
    names = source.ids() if ids is None else tuple(ids)
    for start in range(0, len(names), size):
        yield source.read(names[start : start + size])


def damaged(source: CubeSource) -> Iterator[tuple[str, str]]:
    """Read all of a source: each file, or each sample of a source without files, and what is wrong with it or ""."""
    if hasattr(source, "damaged"):
        yield from ((str(path), reason) for path, reason in source.damaged())
        return
    for name in source.ids():
        try:
            source.read([name])
        except DataError as error:
            yield name, str(error)
        else:
            yield name, ""


def open_sample(source: CubeSource, name: str) -> xarray.DataArray:
    """A sample as (season, band, y, x), with its coordinates on the Earth if the source knows them."""
    cube = source.read([name]).xarray().isel(id=0)
    place = source.place(name) if hasattr(source, "place") else None
    if place is None:
        return cube
    cube = cube.assign_attrs(crs=place.crs, transform=place.transform)
    centres = place.centres(*cube.shape[-2:])
    return cube if centres is None else cube.assign_coords(x=centres[0], y=centres[1])


def source_of(dataset: Dataset) -> CubeSource:
    """The dataset's cubes, opened."""
    if dataset.cubes is None:
        raise DataError(f"the dataset {dataset.id!r} declares no cubes", hint="Only its labels can be loaded")
    return dataset.cubes()
