"""Which processes a worker started, and how much memory they hold together."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
PROC = Path("/proc")


class Process(NamedTuple):
    """A process of the machine, as the kernel tells; ``resident`` in bytes."""

    pid: int
    parent: int
    session: int
    resident: int


def can_measure() -> bool:
    """Whether the system tells how much memory a process holds, as Linux does; elsewhere no limit can be kept."""
    return (PROC / "self" / "statm").exists()


def processes() -> tuple[Process, ...]:
    """All processes that this one may see; none where the system does not tell."""
    try:
        names = [name for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208 - a Path for each costs more
    except OSError:
        return ()
    return tuple(found for name in names if (found := _process(name)))


def _process(name: str) -> Process | None:
    try:
        text = (PROC / name / "stat").read_text(encoding="utf-8", errors="replace")
        # The command stands in brackets and may itself have brackets and spaces in it.
        fields = text.rpartition(")")[2].split()
        return Process(int(name), int(fields[1]), int(fields[3]), int(fields[21]) * PAGE)
    except (OSError, IndexError, ValueError):  # it ended meanwhile
        return None


@lru_cache(maxsize=1)
def _processes_of(second: int) -> tuple[Process, ...]:
    """One look per second for all workers: on a machine with thousands of processes it takes tens of milliseconds."""
    return processes()


def family(pid: int, among: Iterable[Process]) -> list[Process]:
    """A worker that leads a session, all others of that session, and what they started outside of it."""
    children: dict[int, list[Process]] = {}
    found: dict[int, Process] = {}
    for process in among:
        children.setdefault(process.parent, []).append(process)
        if process.session == pid or process.pid == pid:
            found[process.pid] = process
    new = list(found.values())
    while new:
        new = [child for process in new for child in children.get(process.pid, ()) if child.pid not in found]
        found.update((child.pid, child) for child in new)
    return list(found.values())


def over(pid: int, limit: int) -> bool:
    """Whether a worker and all that it started hold more than so many bytes."""
    if _own(pid) > limit:
        return True
    members = family(pid, _processes_of(int(time.monotonic())))
    if len(members) < 2 or sum(process.resident for process in members) <= limit:
        return False
    # Processes that were forked share pages, which must count once: this is exact, and too slow to do every time.
    return sum(_share(process) for process in members) > limit


def _own(pid: int) -> int:
    try:
        return int((PROC / str(pid) / "statm").read_text(encoding="ascii").split()[1]) * PAGE
    except (OSError, IndexError, ValueError):
        return 0


def _share(process: Process) -> int:
    """Bytes of a process, where those that it shares with others count in parts."""
    try:
        lines = (PROC / str(process.pid) / "smaps_rollup").read_text(encoding="ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
        return 0
    except OSError:
        return process.resident
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), process.resident)
