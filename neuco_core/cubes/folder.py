"""A folder of images as a dataset's cubes: a file is a sample, its name without the suffix is the id."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from neuco_core.cubes.cubes import CubeBatch
from neuco_core.cubes.images import SCENE, SUFFIXES, Image, Place, named, read_image
from neuco_core.cubes.zips import Directories
from neuco_core.errors import DataError, UsageError
from neuco_core.fetch.cache import hash_file
from neuco_core.tables.csv import shown
from neuco_core.versions import versioned

FEW = 9  # files that are looked at to know what the images of a folder are


@versioned(1)
class ImageFolder:
    """Images below a folder, at any depth, each read when it is asked for.

    All must have the same bands, seasons, size and type of numbers. ``bands`` and ``seasons`` give them other names.
    Files with other suffixes are not looked at; ``others`` counts them.
    """

    def __init__(self, root: str | Path, bands: Sequence[str] = (), seasons: Sequence[str] = ()) -> None:
        self.root = Path(root)
        if not self.root.is_dir():
            raise DataError("no such folder", where=self.root, expected="a folder of images")
        self._named = named(bands), tuple(seasons)

    @cached_property
    def files(self) -> Mapping[str, Path]:
        """The file of each sample, in the order of their ids."""
        files: dict[str, Path] = {}
        for path in sorted(self.root.rglob("*")):
            if path.suffix.lower() in SUFFIXES and not path.is_dir():
                if not path.is_file():
                    raise DataError("not a regular file, or a link to none", where=path, hint="Restore or remove it")
                if not path.stem.isprintable():
                    raise DataError("not a name for a sample", where=self.root, got=repr(path.name), hint="Rename it")
                other = files.setdefault(path.stem, path)
                if other != path:
                    got, hint = f"{other} and {path}", "Give each image a name of its own"
                    raise DataError(f"two images have the id {path.stem!r}", where=self.root, got=got, hint=hint)
        if not files:
            got = ", ".join(f"{count} of {suffix or 'no suffix'}" for suffix, count in self.others.items()) or "nothing"
            raise DataError("no image in the folder", where=self.root, expected="files " + " ".join(SUFFIXES), got=got)
        return dict(sorted(files.items()))

    @property
    def others(self) -> Mapping[str, int]:
        """How many files are no images, by suffix."""
        suffixes = (path.suffix.lower() for path in self.root.rglob("*") if path.is_file())
        return dict(sorted(Counter(suffix for suffix in suffixes if suffix not in SUFFIXES).items()))

    @cached_property
    def _usual(self) -> Image:
        """What the others are compared with: the commonest of a few from all over the folder, as any may be odd."""
        images: list[Image] = []
        problem = DataError("no image can be read", where=self.root)
        paths = list(self.files.values())
        for path in paths[:: max(len(paths) // FEW, 1)]:
            try:
                images.append(read_image(path))
            except DataError as error:  # it is named when it is asked for itself
                problem = error
        if not images:
            raise problem
        counts = Counter(map(_form, images))
        return max(images, key=lambda image: counts[_form(image)])

    @cached_property
    def bands(self) -> tuple[str, ...]:
        return _names("bands", self._named[0], self._usual.bands)

    @cached_property
    def seasons(self) -> tuple[str, ...]:
        count = self._usual.values.shape[0]
        return _names("seasons", self._named[1], (SCENE,) if count == 1 else tuple(str(n + 1) for n in range(count)))

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        height, width = self._usual.values.shape[2:]
        return height, width

    @cached_property
    def version(self) -> str:
        """Of names and contents: each file is read for it once, and again when it has changed."""
        digest = hashlib.sha256(repr((self.bands, self.seasons)).encode())
        contents = Directories(self.root, hash_file).contents(self.files.values())
        for name, content in zip(self.files, contents, strict=True):
            digest.update(f"{name!r}{content}".encode())
        return digest.hexdigest()[:16]

    def ids(self) -> tuple[str, ...]:
        return tuple(self.files)

    def read(self, ids: Sequence[str]) -> CubeBatch:
        return CubeBatch(tuple(ids), [[self.image(name).values] for name in ids], self.bands, self.seasons)

    def place(self, sample: str) -> Place | None:
        return self.image(sample).place

    def image(self, sample: str) -> Image:
        """One sample; it must be like the others."""
        if sample not in self.files:
            raise DataError(f"no image {shown([sample])}", where=self.root)
        image, usual = read_image(self.files[sample]), self._usual
        if _form(image) != _form(usual):
            expected, got = _described(usual), _described(image)
            raise DataError("not like the other images", where=self.files[sample], expected=expected, got=got)
        return image


def _form(image: Image) -> tuple[object, ...]:
    """What all images of a folder share. 8 bits beside 16 would be two scales of one band."""
    return image.bands, image.values.shape, image.values.dtype.kind, image.values.dtype.itemsize


def _described(image: Image) -> str:
    seasons, bands, height, width = image.values.shape
    kind = image.values.dtype.name
    return f"{bands} bands ({shown(image.bands)}) of {height} × {width} pixels, {seasons} in time, {kind}"


def _names(what: str, chosen: tuple[str, ...], default: tuple[str, ...]) -> tuple[str, ...]:
    if chosen and (len(chosen) != len(default) or len(set(chosen)) != len(chosen)):
        raise UsageError(f"bad names of {what}", expected=f"{len(default)} different ones", got=shown(chosen))
    return chosen or default
