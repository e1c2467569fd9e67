"""A bound on the memory that reading a file may take: what unpacks to far more than its size fails, and nothing else.

It is set for the process while the file is read, and not for the scoring, whose memory follows from ids and dimensions.
So whether a submission meets it depends on its bytes and the rules alone: no label can be learned from it, and an audit
meets it, too. Only Linux counts all memory of a process (``RLIMIT_DATA``); elsewhere there is no bound.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

# About twice what good files took: up to 8.5 times their size with 1,024 dimensions, and 200 bytes an id with one.
FREE = 512 << 20  # bytes, for the libraries that read and for small files
BY_BYTE = 16  # of a file, or of its values as float32
BY_ID = 512


def most(bytes_: int, ids: int, dim: int) -> int:
    """What a file may take under the rules: so many bytes, of so many ids and dimensions."""
    return FREE + BY_BYTE * max(bytes_, 4 * ids * dim) + BY_ID * ids


@contextmanager
def bounded(more: int) -> Iterator[None]:
    """Let this process take no more than so many bytes beside what it has: then Python raises ``MemoryError``."""
    if sys.platform != "linux":
        yield
        return
    import resource

    soft, hard = _own_limits()
    resource.setrlimit(resource.RLIMIT_DATA, (_lower(_taken() + more, soft), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@lru_cache(maxsize=1)
def _own_limits() -> tuple[int, int]:
    """Those of the process before the first bound: two threads that read at once must not leave each other's behind."""
    import resource

    return resource.getrlimit(resource.RLIMIT_DATA)


def _lower(wanted: int, soft: int) -> int:
    return wanted if soft < 0 else min(wanted, soft)  # below 0: without limit


def _taken() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:"))
