"""What comes out of a sandbox is not trusted: only regular files within limits, arrays that match their headers."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from neuco_core.errors import DataError

if TYPE_CHECKING:
    import numpy as np

LARGEST_TABLE = 200_000_000
KINDS = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


def size_of(folder: Path, most: int) -> tuple[int, int]:
    """How many entries and bytes are below a folder; counting ends at ``most`` entries. No link is followed."""
    count = total = 0
    for entry in _walk(folder):
        count += 1
        total += entry.stat(follow_symlinks=False).st_size
        if count >= most:
            break
    return count, total


def _walk(folder: Path) -> Iterator[os.DirEntry[str]]:
    """All entries; those that vanish or cannot be read are left out."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            entry.stat(follow_symlinks=False)
        except OSError:
            continue
        yield entry
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path))


def take(raw: Path, out: Path) -> str:
    """Move the folder that a sandbox wrote to ``out``; if anything in it is not a regular file, nothing is taken.

    A link could lead to our own files, and reading a pipe never ends. Returns what is wrong, if anything is.
    """
    for entry in _walk(raw):
        mode = entry.stat(follow_symlinks=False).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            shutil.rmtree(raw, ignore_errors=True)
            out.mkdir(parents=True, exist_ok=True)
            return f"left {KINDS.get(stat.S_IFMT(mode), 'a device')} among its results: {entry.name!r}"
    shutil.rmtree(out, ignore_errors=True)
    raw.replace(out)
    return ""


def read_array(path: Path, rows: int) -> np.ndarray:
    """A table of floats with that many rows; its header must match the size of the file before it is read."""
    import numpy as np

    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            if version != (1, 0):
                raise DataError("unsupported npy version", where=path.name, expected="1.0", got=version)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file, max_header_size=4096)
            size = path.stat().st_size - file.tell()
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"not an array: {error}", where=path.name) from error
    if dtype not in (np.float32, np.float64) or len(shape) != 2 or shape[0] != rows or min(shape) < 1:
        raise DataError("not a table of floats", where=path.name, expected=f"{rows} rows", got=f"{dtype} {shape}")
    if dtype.itemsize * shape[0] * shape[1] != size:
        raise DataError(
            "the file's size does not match its header", where=path.name, expected=shape, got=f"{size} bytes"
        )
    return np.asarray(np.load(path, allow_pickle=False))


def read_table(path: Path) -> bytes:
    """The bytes of a CSV."""
    if not path.is_file():
        raise DataError("the loader wrote no labels", where=path.name)
    if path.stat().st_size > LARGEST_TABLE:
        raise DataError("the file is too large", where=path.name, expected=f"at most {LARGEST_TABLE} bytes")
    return path.read_bytes()
