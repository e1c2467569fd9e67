"""The cubes of SSL4EO-S12, as they lie on disk: ``data/<modality>/part-…/<id>.zarr.zip``.

Each file is a zarr group (format 2) with the variable ``bands``: (1, season, band, y, x). Both lines of the zarr
library, 2 and 3, read it through the same calls.
"""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from neuco_core.cubes.cubes import CubeBatch
from neuco_core.cubes.zips import Directories, damage
from neuco_core.errors import DataError, DependencyError, UsageError
from neuco_core.tables.limits import check_unpacked, check_zip
from neuco_core.tables.rows import clean_id, shown
from neuco_core.versions import versioned

SEASONS = ("spring", "summer", "fall", "winter")
L1C = ("B01", "B02", "B03", "B04", "B05", "B06", "B07", "B08", "B8A", "B09", "B10", "B11", "B12")
MODALITIES = {"s1": ("VV", "VH"), "s2l1c": L1C, "s2l2a": tuple(band for band in L1C if band != "B10")}
SUFFIX = ".zarr.zip"

log = logging.getLogger(__name__)


@versioned(1)
class SSL4EOCubes:
    """A folder of cubes. Samples that lack a modality are left out and counted in ``left_out``.

    ``shift`` is added to every Sentinel-2 value: 1000 makes the downstream set look like SSL4EO-S12 v1.1 (which
    has that offset), -1000 the other way round. ``modalities`` and ``seasons`` choose what is read at all.
    """

    def __init__(
        self,
        root: str | Path,
        shift: int = 0,
        modalities: Sequence[str] = tuple(MODALITIES),
        seasons: Sequence[str] = SEASONS,
    ) -> None:
        _known("modality", modalities, tuple(MODALITIES))
        _known("season", seasons, SEASONS)
        root = Path(root)
        self.root = root / "data" if (root / "data").is_dir() else root
        self.shift = shift
        self.modalities = tuple(modalities)
        self.seasons: tuple[str, ...] = tuple(seasons)
        self.bands: tuple[str, ...] = tuple(f"{name}/{band}" for name in modalities for band in MODALITIES[name])
        self._folders = {name: _folders(self.root / name) for name in self.modalities}

    @cached_property
    def version(self) -> str:
        """Of the options, the ids and what the directory of each file lists; the same for every copy of the data."""
        digest = hashlib.sha256(repr((self.shift, self.bands, self.seasons)).encode())
        digest.update(repr(self.ids()).encode())
        for content in Directories(self.root).contents(self._paths()):
            digest.update(content.encode())
        return digest.hexdigest()[:16]

    def damaged(self) -> Iterator[tuple[Path, str]]:
        """Read every byte: each file, and what is wrong with it or ""."""
        return ((path, damage(path)) for path in self._paths())

    def _paths(self) -> list[Path]:
        """The files of all samples, in an order that no place or time decides."""
        return [files[name] for files in self._files.values() for name in self.ids()]

    @cached_property
    def _files(self) -> dict[str, dict[str, Path]]:
        """By modality and id."""
        return {name: dict(_zips(folders, self.root / name)) for name, folders in self._folders.items()}

    @cached_property
    def _ids(self) -> tuple[str, ...]:
        common = set.intersection(*(set(files) for files in self._files.values()))
        if not common:
            counts = ", ".join(f"{len(files)} of {name}" for name, files in self._files.items())
            raise DataError("no sample has all modalities", where=self.root, got=counts)
        for name, count in self.left_out.items():
            log.warning("%s: %d samples are left out because they lack %s", self.root, count, name)
        return tuple(sorted(common))

    @property
    def left_out(self) -> Mapping[str, int]:
        """How many samples lack which modality."""
        every = set().union(*self._files.values())
        lacking = {name: len(every) - len(files) for name, files in self._files.items()}
        return {name: count for name, count in lacking.items() if count}

    def ids(self) -> tuple[str, ...]:
        return self._ids

    def read(self, ids: Sequence[str]) -> CubeBatch:
        names = tuple(clean_id(name) for name in ids)
        if not names:
            raise UsageError("no samples to read", where=self.root)
        cubes = [self._read_sample(name) for name in names]
        if len({cube.shape for cube in cubes}) != 1:
            sizes = shown(sorted({f"{cube.shape[-2]} × {cube.shape[-1]}" for cube in cubes}))
            raise DataError("cubes of different sizes in one batch", where=self.root, got=sizes)
        return CubeBatch(names, np.stack(cubes), self.bands, self.seasons)

    def _read_sample(self, name: str) -> np.ndarray:
        parts: list[np.ndarray] = []
        for modality in self.modalities:
            path = self._find(modality, name)
            part = _read_zarr(path, MODALITIES[modality], [SEASONS.index(season) for season in self.seasons])
            if modality != "s1" and self.shift:
                part += self.shift
            if parts and part.shape[-2:] != parts[0].shape[-2:]:
                raise DataError(
                    "modalities of different sizes", where=path, got=f"{part.shape[-2:]}, {parts[0].shape[-2:]}"
                )
            parts.append(part)
        return np.concatenate(parts, axis=1)

    def _find(self, modality: str, name: str) -> Path:
        """Looks into each folder, so that one sample can be opened without listing all of them."""
        for folder in self._folders[modality]:
            path = folder / (name + SUFFIX)
            with suppress(OSError):  # an id may be too long for the name of a file
                if Path(name).name == name and path.is_file():
                    return path
        raise DataError(f"no sample {shown([name])} in {modality}", where=self.root / modality)


def _known(noun: str, names: Sequence[str], known: Sequence[str]) -> None:
    wrong = [name for name in names if name not in known]
    if wrong or not names or len(set(names)) != len(names):
        raise UsageError(f"bad {noun}", expected="some of " + ", ".join(known) + ", each once", got=repr(tuple(names)))


def _folders(base: Path) -> tuple[Path, ...]:
    if not base.is_dir():
        hint = "Give the folder that holds data/s1, data/s2l1c and data/s2l2a"
        raise DataError("cube folder not found", where=base, hint=hint)
    return (*sorted(path for path in base.iterdir() if path.is_dir()), base)


def _zips(folders: Sequence[Path], base: Path) -> Iterator[tuple[str, Path]]:
    seen: dict[str, Path] = {}
    for folder in folders:
        for path in folder.glob("*" + SUFFIX):
            name = clean_id(path.name)
            if name in seen:
                raise DataError(f"duplicate sample {name!r}", where=base, got=f"{seen[name]} and {path}")
            if not path.is_file():
                raise DataError("not a regular file, or a link to none", where=path, hint="Restore or remove it")
            seen[name] = path
            yield name, path


def _read_zarr(path: Path, bands: Sequence[str], seasons: Sequence[int]) -> np.ndarray:
    """Some seasons of one file: (season, band, y, x), float32."""
    try:
        from zarr import open_group
        from zarr.storage import ZipStore
    except ImportError as error:
        raise DependencyError("cubes need zarr", hint="Run `pip install 'neuco[cubes]'`") from error
    try:
        check_zip(path)
        with ZipStore(str(path), mode="r") as store:
            array: Any = open_group(store, mode="r")["bands"]
            shape = tuple(array.shape)
            for cells in (shape, array.chunks):  # a chunk is unpacked whole, even where the array ends
                check_unpacked(math.prod(cells) * max(array.dtype.itemsize, 4), path)
            if len(shape) == 5 and shape[:3] == (1, len(SEASONS), len(bands)):
                return np.stack([np.asarray(array[0, season], dtype=np.float32) for season in seasons])
    except DataError:
        raise
    except Exception as error:  # the libraries raise whatever their parts raise: zip, zlib, blosc, JSON, …
        words = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"damaged cube: {words}", where=path, hint="Download it again") from error
    raise DataError(
        "bands of the wrong shape", where=path, expected=f"(1, {len(SEASONS)}, {len(bands)}, y, x)", got=shape
    )
