"""One cube in a zip file, as zarr (format 2) lays it out, read in the type that it is stored in.

The zarr library is not asked: for a single array in a zip it takes two to three times as long as unpacking alone. The
codecs are numcodecs', which both lines of that library use as well.
"""

from __future__ import annotations

import bz2
import itertools
import json
import math
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from neuco_core.env import how_to_install
from neuco_core.errors import DataError, DependencyError
from neuco_core.tables.limits import check_members, check_unpacked, readable

NAME = "bands"
FORMAT = 2
SEPARATORS = (".", "/")
UNPACKED, PACKED = 4, 12  # where the header of a blosc chunk has its sizes
# What numbers are packed with. A file names its codecs, and some that numcodecs has, or that a package adds to it, do
# more than unpack: ``pickle`` runs code, ``lzma`` takes as much memory as the file asks for.
COMPRESSORS = ("blosc", "bz2", "gzip", "lz4", "zlib", "zstd")
FILTERS = ("bitround", "delta", "fixedscaleoffset", "quantize", "shuffle")
# These unpack all they are given before they compare its size with that of an array; the standard library can stop.
STREAMS: dict[str, Callable[[], Any]] = {
    "bz2": bz2.BZ2Decompressor,
    "gzip": partial(zlib.decompressobj, 16 + zlib.MAX_WBITS),
    "zlib": zlib.decompressobj,
}


class StoredArray:
    """The array ``bands`` of an open archive: what it declares, and its chunks."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        declared = json.loads(archive.read(f"{NAME}/.zarray"))
        if declared["zarr_format"] != FORMAT:
            raise ValueError(f"zarr format {declared['zarr_format']!r}, expected {FORMAT}")
        self.archive = archive
        self.shape: tuple[int, ...] = tuple(declared["shape"])
        self.chunks: tuple[int, ...] = tuple(declared["chunks"])
        sizes = (*self.shape, *self.chunks)
        if len(self.shape) != len(self.chunks) or not all(type(size) is int and size > 0 for size in sizes):
            raise ValueError(f"bad shape {self.shape} or chunks {self.chunks}")
        self.dtype = np.dtype(declared["dtype"])
        if self.dtype.kind not in "iuf":
            raise ValueError(f"{self.dtype} values, expected numbers")
        self.order: Any = declared["order"]
        self.fill: Any = declared["fill_value"] or 0  # null: what was never written has no value
        self.separator = declared.get("dimension_separator", ".")
        if self.separator not in SEPARATORS or self.order not in ("C", "F"):
            raise ValueError(f"unknown separator {self.separator!r} or order {self.order!r}")
        filters, compressor = declared["filters"] or [], declared["compressor"]
        for allowed, configs in ((FILTERS, filters), (COMPRESSORS, [compressor] if compressor else [])):
            for config in configs:
                if config["id"] not in allowed:
                    raise ValueError(f"codec {config['id']!r}, expected one of {', '.join(allowed)}")
        try:
            from numcodecs import get_codec
        except ImportError as error:
            raise DependencyError("cubes need numcodecs", hint=f"Run `{how_to_install('cubes')}`") from error
        self.filters = [get_codec(config) for config in filters]
        self.compressor: Any = get_codec(compressor) if compressor else None
        self.compressor_id: str = compressor["id"] if compressor else ""
        stored = self.dtype  # a filter may store numbers of another type than it gives
        for config in filters:
            if "dtype" in config:
                types = [np.dtype(config["dtype"]), np.dtype(config.get("astype") or config["dtype"])]
                if any(kind.kind not in "iuf" for kind in types):
                    raise ValueError(f"filter {config['id']!r} of {types[0]} and {types[1]} values, expected numbers")
                stored = types[1]
        self._chunk_bytes = math.prod(self.chunks) * stored.itemsize
        # Whether a chunk can be unpacked to where it belongs, without a copy.
        only_blosc = not filters and self.compressor_id == "blosc"
        self._straight = only_blosc and self.order == "C" and self.dtype.isnative
        self._members = frozenset(archive.namelist())

    def read(self, season: int, target: np.ndarray) -> None:
        """Fill ``target`` (band, y, x) with one season."""
        for place, where in self._touching():
            chunk = (0, season // self.chunks[1], *place)
            inside: Any = (0, season % self.chunks[1], *(slice(0, part.stop - part.start) for part in where))
            view = target[where]
            name = f"{NAME}/" + self.separator.join(map(str, chunk))
            if name not in self._members:
                view[...] = self.fill
                continue
            data = self.archive.read(name)
            if self.compressor_id == "blosc" and _number(data, PACKED) != len(data):
                # blosc goes by its header alone, and would read on in memory behind a chunk that was cut off.
                raise ValueError(f"{name} has {len(data)} bytes, its header says {_number(data, PACKED)}")
            fits = self.chunks == (1, 1, *view.shape) and view.flags.c_contiguous
            # A chunk that unpacks to less would leave there what the memory held before, such as another cube.
            if self._straight and fits and _number(data, UNPACKED) == view.nbytes:
                self.compressor.decode(data, out=view)
            else:
                unpacked = self._unpacked(data)
                if unpacked is None:
                    raise ValueError(f"{name} does not unpack to {self._chunk_bytes} bytes")
                view[...] = self._decoded(unpacked)[inside]

    def _touching(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Each chunk of a season, by its place in the grid, and which part of (band, y, x) it fills."""
        sizes = list(zip(self.shape[2:], self.chunks[2:], strict=True))
        for index in itertools.product(*(range(math.ceil(whole / part)) for whole, part in sizes)):
            filled = zip(index, sizes, strict=True)
            yield index, tuple(slice(at * part, min((at + 1) * part, whole)) for at, (whole, part) in filled)

    def _unpacked(self, data: bytes) -> Any:
        """A chunk without its compressor; None if it has another size than declared, which takes no memory to see."""
        if not self.compressor:
            return data if len(data) == self._chunk_bytes else None
        if self.compressor_id in STREAMS:
            stream = STREAMS[self.compressor_id]()
            unpacked = stream.decompress(data, self._chunk_bytes + 1)
            return unpacked if stream.eof and len(unpacked) == self._chunk_bytes else None
        if _unpacked_size(self.compressor_id, data) not in (None, self._chunk_bytes):
            return None
        return self.compressor.decode(data, out=np.empty(self._chunk_bytes, "u1"))

    def _decoded(self, data: Any) -> np.ndarray:
        for codec in reversed(self.filters):
            data = codec.decode(data)
        values = np.frombuffer(memoryview(data).cast("B"), self.dtype)
        return values.reshape(self.chunks, order=self.order)


def _number(data: bytes, place: int) -> int:
    """A number in the header of a chunk of blosc's."""
    return int.from_bytes(data[place : place + 4], "little")


def _unpacked_size(compressor: str, data: bytes) -> int | None:
    """What the header of a chunk says; None if it says nothing: zstd compares the sizes itself then."""
    if compressor != "zstd":
        return _number(data, UNPACKED if compressor == "blosc" else 0)
    descriptor = data[4]  # RFC 8878, 3.1.1.1: how the header goes on
    single = descriptor & 32
    size = (1 if single else 0, 2, 4, 8)[descriptor >> 6]
    start = 5 + (0 if single else 1) + (0, 1, 2, 4)[descriptor & 3]
    number = int.from_bytes(data[start : start + size], "little")
    return (number + 256 if size == 2 else number) if size else None


def read_cube(path: Path, seasons: Sequence[int], expected: tuple[int, ...]) -> np.ndarray:
    """Some seasons of one file, in the stored type; its shape must begin as ``expected``: (1, seasons, bands)."""
    with readable(path, "cube", "Download it again"), zipfile.ZipFile(path) as archive:
        check_members(archive, path)
        array = StoredArray(archive)
        for cells in (array.shape, array.chunks):  # a chunk is unpacked whole, even where the array ends
            check_unpacked(math.prod(cells) * max(array.dtype.itemsize, 4), path)
        if len(array.shape) == 5 and array.shape[:3] == expected:
            cube = np.empty((len(seasons), *array.shape[2:]), array.dtype.newbyteorder("="))
            for row, season in enumerate(seasons):
                array.read(season, cube[row])
            return cube
    shape = ", ".join(map(str, expected))
    raise DataError("bands of the wrong shape", where=path, expected=f"({shape}, y, x)", got=array.shape)
