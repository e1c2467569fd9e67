"""Read and encode at the same time: several threads, results in order, memory that does not grow with the batch size.

On the processor each thread reads a batch and encodes it. An encoder is called by several threads at once, each with a
batch of its own, so what comes out does not depend on how many there are. On another device, and for an encoder that
says ``parallel = False``, threads read the samples of the next batch while the one before it is encoded.
"""

from __future__ import annotations

import copy
import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any, TypeVar

import numpy as np

from neuco_core.cubes.cubes import CubeBatch, CubeSource, StoredBatch
from neuco_core.encode.device import is_out_of_memory, let_go, uses_torch
from neuco_core.specs import Method

# Bytes of a batch as float32. A sample of SSL4EO-S12 with all bands has 30 MB, and a thread on the processor gains
# nothing from more than one at a time; a GPU does: 256 MB of 13 bands are 68 images of 264 × 264 pixels.
CPU_BYTES = 32 << 20
DEVICE_BYTES = 256 << 20
AHEAD = 1  # batches that are read beyond those being encoded
MOST_READERS = 16
Item = TypeVar("Item")
Made = TypeVar("Made")
log = logging.getLogger(__name__)


class Pipeline:
    """A fitted encoder with its source. ``rows`` yields what it gives for ids, batch by batch in their order."""

    def __init__(
        self, method: Method, encoder: Any, source: CubeSource, batch_size: int, threads: int, device: str = "cpu"
    ) -> None:
        self.method, self.encoder, self.source, self.device = method, encoder, source, device
        self.threads = max(threads, 1)
        self.needs_cubes = bool(getattr(encoder, "needs_cubes", True))
        self.side_by_side = device == "cpu" and bool(getattr(encoder, "parallel", True))
        self.batch_size = batch_size
        self._measured = not self.needs_cubes
        self._local = threading.local()
        alone = not getattr(source, "parallel", True)
        self._gate: AbstractContextManager[Any] = threading.Lock() if alone else nullcontext()
        self._most = math.inf  # samples that fit into memory together, once that is known

    def rows(self, ids: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], np.ndarray, int]]:
        """For each batch: its ids, what the encoder gave for them, and how many bytes were read."""
        if not self._measured:
            self._limit(ids)
        parts = [ids[start : start + self.batch_size] for start in range(0, len(ids), self.batch_size)]
        yield from self._side_by_side(parts) if self.side_by_side else self._one_by_one(parts)

    def _limit(self, ids: tuple[str, ...]) -> None:
        """Batches of no more than the bytes allowed; the same on every machine, whatever its memory."""
        batch = self.source.read(ids[:1])
        sample = math.prod((len(batch.seasons), len(batch.bands), *batch.size)) * 4
        most = (CPU_BYTES if self.device == "cpu" else DEVICE_BYTES) // max(sample, 1)
        self.batch_size, self._measured = max(1, min(self.batch_size, most)), True

    def _side_by_side(self, parts: Sequence[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], np.ndarray, int]]:
        slots = threading.Semaphore(self.threads)

        def work(part: tuple[str, ...]) -> tuple[tuple[str, ...], np.ndarray, int]:
            batch = self._read(part)
            with slots:
                return part, self._encode(self._own(), batch), batch.nbytes

        with _pool(self.threads + AHEAD, self._prepare) as pool:
            yield from in_order(pool, work, parts, 2 * self.threads + AHEAD)

    def _one_by_one(self, parts: Sequence[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], np.ndarray, int]]:
        readers = min(max(self.threads, 2), MOST_READERS)
        with _pool(readers) as pool, _pool(1) as ahead:

            def read(part: tuple[str, ...]) -> CubeBatch:
                if not self.needs_cubes:
                    return self._read(part)
                step = math.ceil(len(part) / readers)
                pieces = [part[start : start + step] for start in range(0, len(part), step)]
                return StoredBatch.joined(list(pool.map(self._read, pieces)))

            with closing(in_order(ahead, read, parts, AHEAD + 1)) as batches:
                for part, batch in zip(parts, batches, strict=True):
                    yield part, self._encode(self.encoder, batch), batch.nbytes

    def _read(self, ids: tuple[str, ...]) -> CubeBatch:
        if self.needs_cubes:
            with self._gate:
                return self.source.read(ids)
        return CubeBatch(ids, np.zeros((len(ids), 0, 0, 0, 0), np.float32), self.source.bands, self.source.seasons)

    def _encode(self, encoder: Any, batch: CubeBatch) -> np.ndarray:
        """What the encoder gives for a batch; if there is too little memory for it, for its halves."""
        count = len(batch.ids)
        if count <= self._most:
            try:
                return np.asarray(encoder.encode(batch))
            except Exception as error:
                if count == 1 or not is_out_of_memory(error):
                    raise
            let_go(self.device)
            self._most = min(self._most, count // 2)
            log.warning("method %r: out of memory with %d samples at once: going on with half", self.method.id, count)
        half = math.ceil(count / 2)
        return np.concatenate([self._encode(encoder, batch.rows(*part)) for part in ((0, half), (half, count))])

    def _own(self) -> Any:
        """The encoder of this thread: a copy that shares the weights; what ``encode`` sets on it is its own."""
        if not hasattr(self._local, "encoder"):
            self._local.encoder = copy.copy(self.encoder)
        return self._local.encoder

    def _prepare(self) -> None:
        if uses_torch(self.method):
            import torch

            torch.set_num_threads(1)  # each thread of Python has a number of its own


def _pool(size: int, prepare: Callable[[], None] | None = None) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, thread_name_prefix="neuco-encode", initializer=prepare)


def in_order(
    pool: ThreadPoolExecutor, work: Callable[[Item], Made], items: Iterable[Item], window: int
) -> Generator[Made, None, None]:
    """Results in the order of the items, at most ``window`` of them begun and not yet taken."""
    waiting: deque[Future[Made]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) >= window:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
