"""Submitted files, stored by their sha256: written whole and on disk before anything refers to them."""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

from neuco_extensions.challenge.journal import RefusedError


def file_path(private: Path, sha256: str) -> Path:
    """Where a submitted file lies. It has no suffix: what it is, its first bytes say."""
    return private / "files" / sha256[:2] / sha256


class Upload:
    """A file as it comes in. Leaving the block without ``keep`` leaves nothing behind.

    ``write`` raises as soon as the file is larger than allowed, so that no more than that is ever on disk.
    """

    def __init__(self, private: Path, most: int) -> None:
        self._private, self._most = private, most
        self._hash = hashlib.sha256()
        self.size = 0
        folder = private / "incoming"
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / secrets.token_hex(16)
        self._file = self._path.open("xb")

    def write(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > self._most:
            raise RefusedError("size")
        self._hash.update(data)
        self._file.write(data)

    def finish(self) -> str:
        """Bring the bytes to disk; gives their sha256."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return self._hash.hexdigest()

    def keep(self) -> None:
        """Bring the file, which is finished, under its name."""
        target = file_path(self._private, self._hash.hexdigest())
        new = [folder for folder in (target.parent.parent, target.parent) if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        self._path.replace(target)
        for folder in {target.parent, *(folder.parent for folder in new)}:
            _sync(folder)

    def __enter__(self) -> Upload:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # a full disk, which was told already
            self._file.close()
        with suppress(FileNotFoundError):
            self._path.unlink()


def sweep(private: Path, older: float = 86_400.0) -> None:
    """Remove what uploads have left that were killed this many seconds ago."""
    for path in (private / "incoming").glob("*"):
        with suppress(FileNotFoundError):  # an upload that ended just now
            if time.time() - path.stat().st_mtime > older:
                path.unlink()


def _sync(folder: Path) -> None:
    """A new name is on disk only when its folder is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
