"""How many encoders fit into memory side by side: one is watched first. Elsewhere than on Linux nothing is known."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SHARE = 0.5  # of the memory that is free, for all threads together
LOOK_SECONDS = 0.005
CGROUP = Path("/sys/fs/cgroup")


class Growth:
    """The most bytes that this process had beyond those at the start, while it was watched."""

    bytes: int = 0


@contextmanager
def watched() -> Iterator[Growth]:
    growth, ended = Growth(), threading.Event()
    start = resident()

    def look() -> None:
        while not ended.wait(LOOK_SECONDS):
            growth.bytes = max(growth.bytes, resident() - start)

    thread = threading.Thread(target=look, name="neuco-memory", daemon=True)
    thread.start()
    try:
        yield growth
    finally:
        ended.set()
        thread.join()


def fitting(threads: int, each: int) -> int:
    """How many threads of so many bytes each fit into what is free; at least one."""
    free = available()
    return threads if free is None or each <= 0 else max(1, min(threads, int(SHARE * free / each)))


def resident() -> int:
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def available() -> int | None:
    """Bytes that are free on this machine, or in this process's control group if that is less."""
    free = None
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    with suppress(OSError, ValueError):  # "max" is not a number: no limit
        limit, used = (int((CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        free = limit - used if free is None else min(free, limit - used)
    return free
