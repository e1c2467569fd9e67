"""What the code may use, and the names of the places that it sees."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from neuco_core.errors import DependencyError

TREE, OUT, WARM = (
    "/tree",
    "/out",
    "/warm",
)  # WARM: compiled kernels, copied to where their compiler looks


class SandboxError(DependencyError):
    """Bubblewrap is missing or does not work here."""


@dataclass(frozen=True)
class Limits:
    """What the code may use, all its processes together. Files in /tmp and results not yet taken are memory, too."""

    seconds: float = 600
    memory: int = 6 << 30
    processes: int = 64
    file_size: int = 1 << 30
    written: int = 4 << 30
    files: int = 20_000

    @property
    def threads(self) -> int:
        return 4 * self.processes


def walls(limits: Limits) -> dict[str, int]:
    """Limits of the kernel, as names of ``resource``: for each process the double of what all of them may use.

    They stop a burst that is over before anybody looks.
    """
    return {"RLIMIT_DATA": 2 * limits.memory, "RLIMIT_FSIZE": limits.file_size, "RLIMIT_CORE": 0}


def inner_walls(limits: Limits) -> dict[str, int]:
    """Limits that are counted by user: they are set inside the sandbox, whose users are its own."""
    # Before Linux 5.14 the processes of a user were counted over all namespaces, those of the desktop included.
    release = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
    return {"RLIMIT_NOFILE": 1024, **({"RLIMIT_NPROC": 2 * limits.threads} if release >= (5, 14) else {})}
