"""A control group (version 2) for one run, where we may make one: then the kernel itself holds the limits.

It is made beside our own group. That is allowed to root, and on a desktop to the user of the session.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ci.sandbox.limits import Limits

MOUNT = Path("/sys/fs/cgroup")
NEEDED = {"memory", "pids"}
TRIES = 100


@dataclass(frozen=True)
class Cgroup:
    """A group of processes; its folder is how the kernel is told and asked."""

    folder: Path

    def enter(self) -> None:
        """For the new process: everything that it starts is inside, too."""
        (self.folder / "cgroup.procs").write_text("0", encoding="ascii")

    def over(self) -> str:
        """The limit that the kernel had to enforce, if any."""
        if self._count("memory.events", "oom_kill"):
            return "memory"
        return "processes" if self._count("pids.events", "max") else ""

    def _count(self, file: str, name: str) -> int:
        lines = (self.folder / file).read_text(encoding="ascii").splitlines()
        return next((int(line.split()[1]) for line in lines if line.split()[0] == name), 0)


def parent(mount: Path = MOUNT) -> Path | None:
    """The folder in which we may make groups that have limits."""
    try:
        entries = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
        (group,) = [entry.removeprefix("0::") for entry in entries if entry.startswith("0::")]
        folder = (mount / group.lstrip("/")).parent if group != "/" else mount
        enabled = set((folder / "cgroup.subtree_control").read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return None
    # Moving a process needs this right in the group above both.
    return folder if enabled >= NEEDED and os.access(folder / "cgroup.procs", os.W_OK) else None


@contextlib.contextmanager
def opened(limits: Limits) -> Iterator[Cgroup | None]:
    """A new group, or none where that is impossible; whatever is still in it is killed at the end."""
    above = parent()
    if above is None:
        yield None
        return
    folder = above / f"neuco-{secrets.token_hex(8)}"
    folder.mkdir()
    try:
        settings = {"memory.max": limits.memory, "memory.swap.max": 0, "pids.max": limits.threads}
        for name, value in settings.items():
            if (folder / name).exists():  # without swap there is no limit for it
                (folder / name).write_text(str(value), encoding="ascii")
        yield Cgroup(folder)
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Killed processes leave a group a little later."""
    for _ in range(TRIES):
        with contextlib.suppress(OSError):
            (folder / "cgroup.kill").write_text("1", encoding="ascii")
        try:
            folder.rmdir()
        except OSError:
            time.sleep(0.05)
        else:
            return
