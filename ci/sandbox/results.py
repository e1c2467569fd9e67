"""What comes out of a sandbox is not trusted: only regular files within limits."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

from neuco_core.errors import DataError

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
        reason = f"left something that cannot be read: {error}" if isinstance(error, OSError) else str(error)
        return isinstance(error, _TooMuch), reason
    return False, ""
