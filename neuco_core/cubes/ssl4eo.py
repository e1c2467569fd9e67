"""The cubes of SSL4EO-S12, as they lie on disk: ``data/<modality>/part-…/<id>.zarr.zip``.

Each file is a zarr group (format 2) with the variable ``bands``: (1, season, band, y, x).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import numpy as np

from neuco_core.cubes.cubes import CubeBatch
from neuco_core.cubes.zarr_zip import read_cube
from neuco_core.cubes.zips import Directories, damage
from neuco_core.errors import DataError, UsageError
from neuco_core.tables.csv import clean_id, shown
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
        _check_choice("modality", modalities, tuple(MODALITIES))
        _check_choice("season", seasons, SEASONS)
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
        files: dict[str, dict[str, Path]] = {}
        for modality, folders in self._folders.items():
            present = files[modality] = {}
            for path in (path for folder in folders for path in folder.glob("*" + SUFFIX)):
                name = clean_id(path.name)
                other = present.setdefault(name, path)
                if other != path:
                    where, got = self.root / modality, f"{other} and {path}"
                    raise DataError(f"duplicate sample {name!r}", where=where, got=got)
                if not path.is_file():
                    raise DataError("not a regular file, or a link to none", where=path, hint="Restore or remove it")
        return files

    def ids(self) -> tuple[str, ...]:
        return self._ids

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

    def read(self, ids: Sequence[str]) -> CubeBatch:
        return self.read_some(ids, self.bands, self.seasons)

    def read_some(self, ids: Sequence[str], bands: Sequence[str], seasons: Sequence[str]) -> CubeBatch:
        """Some bands and seasons, in the order of this source; files of other modalities are not opened."""
        names = tuple(clean_id(name) for name in ids)
        if not names:
            raise UsageError("no samples to read", where=self.root)
        wanted: dict[str, list[int]] = {}
        for name in self.modalities:
            places = [place for place, band in enumerate(MODALITIES[name]) if f"{name}/{band}" in bands]
            if places:
                wanted[name] = places
        some = tuple(season for season in self.seasons if season in seasons)
        cubes = [self._read_sample(name, wanted, [SEASONS.index(season) for season in some]) for name in names]
        return CubeBatch(names, cubes, tuple(band for band in self.bands if band in bands), some)

    def _read_sample(self, name: str, wanted: Mapping[str, list[int]], seasons: list[int]) -> list[np.ndarray]:
        """The modalities of a sample, each in its own type."""
        parts: list[np.ndarray] = []
        for modality, places in wanted.items():
            path = self._find(modality, name)
            every = MODALITIES[modality]
            part = read_cube(path, seasons, (1, len(SEASONS), len(every)))
            if len(places) < len(every):
                part = part[:, places]
            if modality != "s1" and self.shift:
                part = part.astype(np.float32) + np.float32(self.shift)
            if parts and part.shape[-2:] != parts[0].shape[-2:]:
                got = f"{part.shape[-2:]}, {parts[0].shape[-2:]}"
                raise DataError("modalities of different sizes", where=path, got=got)
            parts.append(part)
        return parts

    def _find(self, modality: str, name: str) -> Path:
        """Looks into each folder, so that one sample can be opened without listing all of them."""
        for folder in self._folders[modality]:
            path = folder / (name + SUFFIX)
            with suppress(OSError):  # an id may be too long for the name of a file
                if Path(name).name == name and path.is_file():
                    return path
        raise DataError(f"no sample {shown([name])} in {modality}", where=self.root / modality)


def _check_choice(noun: str, names: Sequence[str], choices: Sequence[str]) -> None:
    if not names or not set(names) <= set(choices) or len(set(names)) != len(names):
        expected = "some of " + ", ".join(choices) + ", each once"
        raise UsageError(f"bad {noun}", expected=expected, got=repr(tuple(names)))


def _folders(base: Path) -> tuple[Path, ...]:
    if not base.is_dir():
        hint = "Give the folder that holds data/s1, data/s2l1c and data/s2l2a"
        raise DataError("cube folder not found", where=base, hint=hint)
    return (*sorted(path for path in base.iterdir() if path.is_dir()), base)
