"""What a file declares, compared with its size before anything is unpacked, so that no small file fills the memory.

The limit is a ratio, because embeddings may well be large: a million rows of 2,048 values are 8 GB, and so is their
file. Numbers that were measured or learned are stored in no less than a tenth of what they unpack to.
"""

from __future__ import annotations

import io
import math
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from neuco_core.errors import DataError, NeucoError

FREE = 256 << 20  # bytes that any file may unpack to; constant values compress without limit
RATIO = 100
# Two threads that parse headers make Python 3.11 raise SystemError, now and then (python/cpython#106905).
PARSING = threading.Lock()
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # zipfile unpacks the others without regard to the declared size


@contextmanager
def readable(path: Path, kind: str, hint: str = "") -> Iterator[None]:
    """Turn any failure into one line: on damaged files the libraries raise whatever their parts raise."""
    try:
        yield
    except NeucoError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(f"damaged {kind}: {reason}", where=path, hint=hint) from error


def check_unpacked(declared: int, path: Path) -> None:
    """Refuse a file that declares far more bytes than it has."""
    size = path.stat().st_size
    most = max(FREE, RATIO * size)
    if declared > most:
        expected = f"at most {most} ({RATIO} times the file's size; {FREE} are always allowed)"
        raise DataError("too many bytes when unpacked", where=path, expected=expected, got=f"{declared} from {size}")


def check_members(archive: zipfile.ZipFile, path: Path) -> None:
    """Refuse an archive whose members declare too much, or are compressed so that this cannot be relied on."""
    for member in archive.infolist():
        if member.compress_type not in METHODS:
            what, got = f"bad compression of {member.filename!r}", f"method {member.compress_type}"
            raise DataError(what, where=path, expected="stored or deflated", got=got)
    check_unpacked(sum(member.file_size for member in archive.infolist()), path)


def check_array(file: IO[bytes], available: int, where: object) -> int:
    """Refuse a NumPy array whose header declares more bytes than there are; else the number of its values."""
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise DataError("unknown version of the NumPy format", where=where, expected="1.0 or 2.0", got=version)
    shape, _, dtype = readers[version](file)
    if any(size < 0 for size in shape):
        raise DataError("an array of a negative size", where=where, got=f"shape {shape}")
    count = math.prod(shape)
    declared = count * max(dtype.itemsize, 1)  # empty strings have no bytes, and still become objects
    if declared > available:
        got = f"shape {shape} of {dtype}: {declared}"
        raise DataError("array is larger than its file", where=where, expected=f"at most {available} bytes", got=got)
    file.seek(0)
    return count


def load_array(data: bytes, where: object) -> np.ndarray:
    """The array in the bytes of a ``.npy`` file, whatever other threads read."""
    with PARSING:
        check_array(io.BytesIO(data), len(data), where)
        values: np.ndarray = np.load(io.BytesIO(data), allow_pickle=False)
    return values
