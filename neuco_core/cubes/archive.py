"""Images as one file that can be published and verified: a zip of arrays, and an index of what they are.

Whatever the images were, here they are arrays in the types of their files. So reading them needs no library but NumPy,
no release of a decoder can change a value, and what a stranger publishes is parsed by nothing but these lines.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from neuco_core.cubes.cubes import CubeBatch
from neuco_core.cubes.folder import ImageFolder
from neuco_core.cubes.images import Place
from neuco_core.errors import DataError, UsageError
from neuco_core.files import replacing
from neuco_core.specs import Remote
from neuco_core.tables.csv import shown
from neuco_core.tables.limits import check_members, load_array, readable
from neuco_core.versions import versioned

INDEX = "index.json"
MOMENT = (1980, 1, 1, 0, 0, 0)  # the first that zip knows: when it was packed does not count


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a sample lies, if that is known."""

    crs: str = ""
    transform: tuple[float, ...] = ()


class ArchiveIndex(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an archive holds: samples of one size (height, width), each an array ``ID.npy``."""

    format: Literal["neuco-images-1"]
    bands: tuple[str, ...]
    seasons: tuple[str, ...]
    size: tuple[int, int]
    samples: dict[str, Sample]


Member = tuple[zipfile.ZipFile, Path, Sample]


def pack_images(
    source: ImageFolder,
    out: Path,
    *,
    leave_out_damaged: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, str]:
    """Write the images of a folder to one archive, after all were read; gives those left out, with the reason."""
    samples: dict[str, Sample] = {}
    bad: dict[str, str] = {}
    with replacing(out) as temporary:
        with zipfile.ZipFile(temporary, "w") as archive:
            for count, (name, path) in enumerate(source.files.items(), 1):
                try:
                    image = source.image(name)
                except DataError as error:
                    bad[name] = " ".join(str(error).removeprefix(f"{path}: ").split())
                    continue
                samples[name] = Sample(image.place.crs, image.place.transform) if image.place else Sample()
                little = image.values.dtype.newbyteorder("<")  # one form whatever machine packs it
                data = io.BytesIO()
                values = np.ascontiguousarray(image.values, little)
                np.lib.format.write_array(data, values, version=(1, 0), allow_pickle=False)
                _add(archive, f"{name}.npy", data.getvalue())
                if progress:
                    progress(count, len(source.files))
            index = ArchiveIndex("neuco-images-1", source.bands, source.seasons, source.size, samples)
            _add(archive, INDEX, msgspec.json.encode(index))
        if not samples or (bad and not leave_out_damaged):
            first = "; ".join(f"{name}: {reason}" for name, reason in list(bad.items())[:5])
            got = f"{len(bad)} of {len(source.files)}: {first}"
            hint = "Repair or remove them, or say --leave-out-damaged, which names them again"
            raise DataError("images that cannot be used", where=source.root, got=got, hint=hint)
    return bad


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    member = zipfile.ZipInfo(name, MOMENT)
    member.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(member, data)


@versioned(1)
class ImageArchive:
    """The images of one or several archives that ``neuco data package FOLDER`` wrote, verified when they are opened.

    ``bands`` and ``seasons`` are declared, so that nothing is fetched to know them; the archives must have the same.
    """

    def __init__(self, *archives: Remote, bands: Sequence[str], seasons: Sequence[str]) -> None:
        if not archives or not all(remote.pinned for remote in archives):
            raise UsageError("archives of images must be pinned", expected="Remote(…, sha256=…)")
        self._remotes = archives
        self.bands, self.seasons = tuple(bands), tuple(seasons)
        self.version = "-".join(str(remote.sha256)[:16] for remote in archives)

    @cached_property
    def _members(self) -> Mapping[str, Member]:
        """By id: the archive, its path, and what its index says of the sample."""
        from neuco_core.fetch.fetch import fetch

        members: dict[str, Member] = {}
        sizes = set()
        for remote in self._remotes:
            path = fetch(remote)
            archive, index = open_archive(path)
            sizes.add(index.size)
            if (index.bands, index.seasons) != (self.bands, self.seasons) or len(sizes) > 1:
                expected = f"{shown(self.bands)}, {shown(self.seasons)}, one size"
                got = f"{shown(index.bands)}, {shown(index.seasons)}, {index.size}"
                raise DataError("not the bands, seasons or size declared", where=remote.url, expected=expected, got=got)
            for name, sample in index.samples.items():
                if name in members:
                    raise DataError(f"{name!r} is in two archives", where=remote.url)
                members[name] = archive, path, sample
        return members

    def ids(self) -> tuple[str, ...]:
        return tuple(self._members)

    def read(self, ids: Sequence[str]) -> CubeBatch:
        return CubeBatch(tuple(ids), [[self._one(name)] for name in ids], self.bands, self.seasons)

    def place(self, sample: str) -> Place | None:
        _, _, entry = self._find(sample)
        return Place(entry.crs, entry.transform) if entry.crs else None

    def _one(self, sample: str) -> np.ndarray:
        archive, path, _ = self._find(sample)
        with readable(path, f"image {sample!r}"):
            values = load_array(archive.read(f"{sample}.npy"), path)
        expected = len(self.seasons), len(self.bands)
        if values.ndim != 4 or values.shape[:2] != expected or values.dtype.kind not in "iuf":
            got = f"{values.dtype} {values.shape}"
            raise DataError(f"bad image {sample!r}", where=path, expected=f"numbers {(*expected, 'y', 'x')}", got=got)
        return values

    def _find(self, sample: str) -> Member:
        if sample not in self._members:
            raise DataError(f"no image {shown([sample])}", where=self._remotes[0].url)
        return self._members[sample]


def open_archive(path: Path) -> tuple[zipfile.ZipFile, ArchiveIndex]:
    """An archive and its index, both checked before anything is unpacked."""
    try:
        archive = zipfile.ZipFile(path)
        check_members(archive, path)
        return archive, msgspec.json.decode(archive.read(INDEX), type=ArchiveIndex)
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        hint = "Make one with `neuco data package FOLDER`"
        raise DataError(f"not an archive of images: {error}", where=path, hint=hint) from error
