"""What comes out of a sandbox is not trusted: only regular files within limits, arrays that match their headers."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuco_core.errors import DataError

LARGEST_TABLE = 200_000_000
MOST_CELLS = 250_000_000  # of one array: 2 GB as doubles
MOST_TABLE_CELLS = 20_000_000  # parsed, each takes up to a hundred bytes
DEEPEST = 32
KINDS = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


class _TooMuch(DataError):
    """More files or bytes than are allowed."""


class _Copy:
    """A copy of a folder that somebody hostile filled: every entry is opened in its folder, no link is followed."""

    def __init__(self, files: int, size: int) -> None:
        self.files, self.size = files, size
        self.too_much = _TooMuch(f"left more than {files} files or {size} bytes")

    def folder(self, source: int, target: Path, depth: int = 0) -> None:
        if depth > DEEPEST:
            raise DataError(f"left folders nested more than {DEEPEST} deep among its results")
        for name in os.listdir(source):
            facts = os.stat(name, dir_fd=source, follow_symlinks=False)
            self.files, self.size = self.files - 1, self.size - facts.st_size
            if self.files < 0 or self.size < 0:
                raise self.too_much
            if stat.S_ISDIR(facts.st_mode):
                (target / name).mkdir()
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=source)
                try:
                    self.folder(inner, target / name, depth + 1)
                finally:
                    os.close(inner)
            elif stat.S_ISREG(facts.st_mode):
                # Should it have become a pipe, opening it must not wait for a writer.
                descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=source)
                with os.fdopen(descriptor, "rb") as file, (target / name).open("xb") as copy:
                    shutil.copyfileobj(file, copy, 1 << 20)
            else:
                odd = KINDS.get(stat.S_IFMT(facts.st_mode), "a device")
                raise DataError(f"left {odd} among its results: {name!r}")


def take(sources: Sequence[int], out: Path, files: int, size: int) -> tuple[bool, str]:
    """Copy the open folders that a run wrote to ``out``: all of it, or nothing.

    A link could lead to our own files, and reading a pipe never ends. Returns whether there is too much, and what is
    wrong with it, if anything is.
    """
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    try:
        for source in sources:
            _Copy(files, size).folder(source, out)
    except (DataError, OSError) as error:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(exist_ok=True)
        words = f"left something that cannot be read: {error}" if isinstance(error, OSError) else str(error)
        return isinstance(error, _TooMuch), words
    return False, ""


def array_header(path: Path) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape and type of an array, and how many bytes follow its header; the array is not read."""
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            if version != (1, 0):
                raise DataError("unsupported npy version", where=path.name, expected="1.0", got=version)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file, max_header_size=4096)
            size = path.stat().st_size - file.tell()
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"not an array: {error}", where=path.name) from error
    return shape, dtype, size


def read_array(path: Path, rows: int) -> np.ndarray:
    """A table of floats with that many rows; its header must match the size of the file before it is read."""
    shape, dtype, size = array_header(path)
    if dtype not in (np.float32, np.float64) or len(shape) != 2 or shape[0] != rows or min(shape) < 1:
        raise DataError("not a table of floats", where=path.name, expected=f"{rows} rows", got=f"{dtype} {shape}")
    if dtype.itemsize * shape[0] * shape[1] != size:
        raise DataError(
            "the file's size does not match its header", where=path.name, expected=shape, got=f"{size} bytes"
        )
    if shape[0] * shape[1] > MOST_CELLS:
        raise DataError("the array is too large", where=path.name, expected=f"at most {MOST_CELLS} cells", got=shape)
    return np.asarray(np.load(path, allow_pickle=False))


def read_table(path: Path) -> bytes:
    """The bytes of a CSV."""
    if not path.is_file():
        raise DataError("the loader wrote no labels", where=path.name)
    if path.stat().st_size > LARGEST_TABLE:
        raise DataError("the file is too large", where=path.name, expected=f"at most {LARGEST_TABLE} bytes")
    table = path.read_bytes()
    cells = table.count(b",") + table.count(b"\n") + table.count(b"\r")
    if cells > MOST_TABLE_CELLS:
        expected = f"at most {MOST_TABLE_CELLS} cells"
        raise DataError("the table is too large", where=path.name, expected=expected, got=cells)
    return table
