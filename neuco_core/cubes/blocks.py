"""Memory for cubes that is used again: the first touch of fresh pages costs a third of unpacking into them."""

from __future__ import annotations

import ctypes
import math
import weakref
from typing import Any

import numpy as np

KEPT_BYTES = 128 << 20  # of memory that nobody uses, at most


class Blocks:
    """Arrays whose memory comes back when nobody holds them, or any view of them, any more."""

    def __init__(self) -> None:
        self._free: dict[int, list[np.ndarray]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Blocks, ()  # memory stays in its process

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """As ``numpy.empty``: the values are whatever was there."""
        size = math.prod(shape) * dtype.itemsize
        try:
            memory = self._free[size].pop()
        except LookupError:
            memory = np.empty(size, np.uint8)
        # Views hold what gave the buffer, not the array in between, so it is this object that tells when all are gone.
        lease: Any = (ctypes.c_char * size).from_buffer(memory)  # type: ignore[arg-type]
        weakref.finalize(lease, self._take_back, memory).atexit = False
        return np.asarray(np.frombuffer(lease, dtype).reshape(shape))

    def _take_back(self, memory: np.ndarray) -> None:
        kept = sum(size * len(blocks) for size, blocks in list(self._free.items()))
        if kept + memory.nbytes <= KEPT_BYTES:
            self._free.setdefault(memory.nbytes, []).append(memory)
