"""Which leases are held by a process that runs: each is a locked file, and the system ends the lock with the process.

So nobody has to wait until the lease of a killed worker runs out. The journal is on a local disk, where locks work.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class Leases:
    """The locks of one journal, in a folder that all workers share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own: dict[str, int] = {}

    def take(self, lease: str) -> None:
        self._folder.mkdir(exist_ok=True)
        self._own[lease] = os.open(self._folder / lease, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._own[lease], fcntl.LOCK_EX)

    def drop(self, lease: str) -> None:
        """Hold it no longer; one of another process is left alone."""
        if lease in self._own:
            (self._folder / lease).unlink(missing_ok=True)
            os.close(self._own.pop(lease))

    def close(self) -> None:
        for lease in list(self._own):
            self.drop(lease)

    def held(self, lease: str) -> bool:
        """Whether the process that took it still has it."""
        path = self._folder / lease
        try:
            handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        path.unlink(missing_ok=True)
        return False
