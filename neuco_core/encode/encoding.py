"""A method's encoder at work on a source: batches side by side, what is measured, and samples that are damaged.

On the processor each thread reads a batch and encodes it. An encoder is called by several threads at once, each with a
batch of its own, so what comes out does not depend on how many there are. On another device, and for an encoder that
says ``parallel = False``, threads read the samples of the next batch while the one before it is encoded.
"""

from __future__ import annotations

import copy
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from neuco_core.cubes.cubes import CubeBatch, CubeSource, Selection
from neuco_core.encode.device import choose_device, is_out_of_memory, let_go, move, steady, uses_torch
from neuco_core.encoders import MAX_DIM
from neuco_core.env import installed_version, requirement_name
from neuco_core.errors import DataError, NeucoError, PluginError
from neuco_core.fetch.fetch import fetch
from neuco_core.plugins.code_key import StandIn
from neuco_core.plugins.running import compiled_apart
from neuco_core.specs import Method
from neuco_core.text import counted, join_names

BATCH = 64  # samples that an encoder is given at once, unless that is too much for the memory
NAMED_DAMAGED = 5  # in an error
AGAIN = 8  # samples that are encoded twice
NEAR = 0.01  # of the spread; float16 and other kernels for other batches round by less
# Bytes of a batch as float32. A sample of SSL4EO-S12 with all bands has 30 MB, and a thread on the processor gains
# nothing from more than one at a time; a GPU does: 256 MB of 13 bands are 68 images of 264 × 264 pixels.
CPU_BYTES = 32 << 20
DEVICE_BYTES = 256 << 20
AHEAD = 1  # batches that are read beyond those being encoded
MOST_READERS = 16
NAME = "neuco-encode"  # of threads
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
        self.batch_size = batch_size
        self._measured = not self.needs_cubes
        alone = not getattr(source, "parallel", True)
        self._gate: AbstractContextManager[Any] = threading.Lock() if alone else nullcontext()
        self._most = math.inf  # samples that fit into memory together, once that is known

    def rows(self, ids: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], np.ndarray, int]]:
        """For each batch: its ids, what the encoder gave for them, and how many bytes were read."""
        if not self._measured:  # at most the bytes allowed; the same on every machine, whatever its memory
            batch = self.source.read(ids[:1])
            sample = math.prod((len(batch.seasons), len(batch.bands), *batch.size)) * 4
            most = (CPU_BYTES if self.device == "cpu" else DEVICE_BYTES) // max(sample, 1)
            self.batch_size, self._measured = max(1, min(self.batch_size, most)), True
        parts = [ids[start : start + self.batch_size] for start in range(0, len(ids), self.batch_size)]
        if self.device != "cpu" or not getattr(self.encoder, "parallel", True):
            yield from self._one_by_one(parts)
            return
        slots, local = threading.Semaphore(self.threads), threading.local()

        def work(part: tuple[str, ...]) -> tuple[tuple[str, ...], np.ndarray, int]:
            batch = self._read(part)
            with slots:
                if not hasattr(local, "encoder"):  # a copy shares the weights; what `encode` sets is its own
                    local.encoder = copy.copy(self.encoder)
                return part, self._encode(local.encoder, batch), batch.nbytes

        prepare = None
        if uses_torch(self.method):
            import torch

            prepare = partial(torch.set_num_threads, 1)  # each thread of Python has a number of its own
        with ThreadPoolExecutor(self.threads + AHEAD, NAME, prepare) as pool:
            yield from in_order(pool, work, parts, 2 * self.threads + AHEAD)

    def _one_by_one(self, parts: Sequence[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], np.ndarray, int]]:
        readers = min(max(self.threads, 2), MOST_READERS)
        with ThreadPoolExecutor(readers, NAME) as pool, ThreadPoolExecutor(1, NAME) as ahead:

            def read(part: tuple[str, ...]) -> CubeBatch:
                if not self.needs_cubes:
                    return self._read(part)
                step = math.ceil(len(part) / readers)
                pieces = [part[start : start + step] for start in range(0, len(part), step)]
                return CubeBatch.joined(list(pool.map(self._read, pieces)))

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


@dataclass
class Clock:
    """How many samples were encoded, and in how many seconds: reading counts, what an encoder learns first does not.

    ``learning`` are the seconds of that; ``made_with`` says on what and with what the numbers were made.
    """

    samples: int = 0
    seconds: float = 0.0
    learning: float = 0.0
    made_with: dict[str, Any] = field(default_factory=dict)


class Encoding:
    """A method's encoder on a source: made, and taught what it learns, when it is first needed."""

    def __init__(
        self,
        method: Method,
        source: CubeSource,
        params: Mapping[str, Any],
        batch_size: int = BATCH,
        threads: int = 1,
        device: str = "",
        learn: CubeSource | None = None,
        left_out: dict[str, str] | None = None,
    ) -> None:
        self.method, self.source, self.params, self.learn = method, source, params, learn or source
        self.left_out = left_out
        self.batch_size, self.threads, self._asked = batch_size, threads, device
        self.device = choose_device(method, device)
        self._pipeline: Pipeline | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        exactly = steady() if self.device.startswith("cuda") else nullcontext()
        with one_thread(uses_torch(self.method)), compiled_apart(), exactly:
            yield

    def pipeline(self, clock: Clock | None = None) -> Pipeline:
        if self._pipeline is None:
            start = time.perf_counter()
            try:
                encoder = ready(self.method, self.learn, self.params)
            except DataError as error:  # damaged samples: if these are left out, it learns from the others
                good = self._readable(self.learn.ids(), self.learn, error)
                self.learn = Selection(self.learn, ids=frozenset(good))
                encoder = ready(self.method, self.learn, self.params)
            if self.device != "cpu":
                self.device = move(self.method, encoder, self.device, asked=bool(self._asked))
            self._pipeline = Pipeline(self.method, encoder, self.source, self.batch_size, self.threads, self.device)
            if clock is not None:
                clock.learning = time.perf_counter() - start
                clock.made_with = self.made_with()
        return self._pipeline

    def _readable(self, ids: tuple[str, ...], source: CubeSource, error: DataError) -> tuple[str, ...]:
        if isinstance(self.method.encoder, StandIn):
            raise error  # it ran elsewhere, where the samples are
        return skip_damaged(ids, source, error, self.left_out)

    def encode(self, ids: tuple[str, ...], advance: Callable[..., None], clock: Clock | None = None) -> np.ndarray:
        """The rows of some samples, but for those that are left out."""
        ids = tuple(name for name in ids if name not in (self.left_out or ()))
        rows: list[np.ndarray] = []
        try:
            self._add_rows(rows, ids, advance, clock)
        except DataError as error:
            good = self._readable(ids, self.source, error)
            self._add_rows(rows, good[sum(map(len, rows)) :], advance, clock)
            advance(len(ids) - len(good))
        return np.concatenate(rows) if rows else np.empty((0, 0), np.float32)

    def changed(self, ids: tuple[str, ...], values: np.ndarray) -> str:
        """How the numbers of some samples change if they come in another batch; "" if they do not.

        A network left in training mode, or weights that are drawn anew for each batch, give scores as if the images
        said nothing.
        """
        if len(ids) < 2:
            return ""
        some = slice(1, 1 + AGAIN)  # not from the first one on: a batch of these was encoded together
        first = values[some]
        with self.running():
            again = self.encode(ids[some][::-1], lambda *_: None)[::-1]
        most = max(NEAR, self.method.tolerance) * float(values.std(axis=0).mean())
        if first.shape == again.shape and np.abs(first - again).max() <= most:
            return ""
        return "other numbers for the same images in another batch: seed random numbers once, and call model.eval()"

    def flops(self, sample: str) -> int | None:
        """The operations that a sample takes, as torch counts them; None without torch, or if they are none of its own.

        The sample is encoded once more, apart: counting goes through other code, and what that gives is left alone.
        """
        if not uses_torch(self.method) or isinstance(self.method.encoder, StandIn):
            return None
        from torch.utils.flop_counter import FlopCounterMode  # heavy, and only for networks

        counter, pipeline = FlopCounterMode(display=False), self.pipeline()
        with suppress(Exception), self.running(), counter:  # a network need not bear to be looked at
            pipeline.encoder.encode(pipeline._read((sample,)))
        return int(counter.get_total_flops()) or None

    def _add_rows(
        self, rows: list[np.ndarray], ids: tuple[str, ...], advance: Callable[..., None], clock: Clock | None
    ) -> None:
        if not ids:
            return
        pipeline, start = self.pipeline(clock), time.perf_counter()
        with blame(self.method):
            for part, values, size in pipeline.rows(ids):
                rows.append(check_output(self.method, part, values))
                advance(len(part), size)
        if clock is not None:
            clock.samples, clock.seconds = clock.samples + len(ids), clock.seconds + time.perf_counter() - start

    def made_with(self) -> dict[str, Any]:
        """What the numbers depend on besides the method: device, precision, versions of the packages."""
        names = sorted({"numpy", *map(requirement_name, self.method.requires)})
        packages = {name: version for name in names if (version := installed_version(name))}
        return {"device": self.device, "precision": str(self.params.get("precision", "float32")), "packages": packages}


def skip_damaged(
    ids: Sequence[str], source: CubeSource, error: DataError, left_out: dict[str, str] | None
) -> tuple[str, ...]:
    """Those of the samples that can be read; the others are added to ``left_out``, each with the reason.

    ``error`` is how it was noticed. It is raised if each sample can be read by itself. Where nothing may be left out
    (None), an error names all that are damaged among these, so that one run shows more than one of them.
    """
    damaged: dict[str, str] = {}
    for name in ids:
        try:
            source.read([name])
        except DataError as problem:
            damaged[name] = str(problem)
    if not damaged:
        raise error
    if left_out is None:
        named = "; ".join(list(damaged.values())[:NAMED_DAMAGED])
        if len(damaged) > NAMED_DAMAGED:
            named += f" and {len(damaged) - NAMED_DAMAGED} more"
        what = f"{len(damaged)} of {counted(len(ids), 'sample')} looked at so far cannot be read"
        hint = "Repair them; `neuco embed --leave-out-damaged` leaves them out, and says which"
        raise DataError(what, got=named, hint=hint) from error
    left_out |= damaged
    return tuple(name for name in ids if name not in damaged)


def make_encoder(method: Method, params: Mapping[str, Any]) -> Any:
    """The method's encoder, with all its parameters (see ``full_params``) and its weights."""
    weights = {}
    if not isinstance(method.encoder, StandIn):
        weights = {name: fetch(remote) for name, remote in method.weights.items()}
    encoder: Any = method.encoder  # ``full_params`` has refused a method without one
    return encoder(**params, **weights)


def ready(method: Method, source: CubeSource, params: Mapping[str, Any]) -> Any:
    """The encoder, taught by the source if it learns."""
    with blame(method):
        encoder = make_encoder(method, params)
        if hasattr(encoder, "fit"):
            encoder.fit(source)
        return encoder


@contextmanager
def blame(method: Method) -> Iterator[None]:
    """An encoder belongs to a plugin: an unexpected exception becomes an error that names the method."""
    try:
        yield
    except (NeucoError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        text = f"its encoder failed with {type(error).__name__}: {error}"
        raise PluginError(text, where=f"method {method.id!r}") from error


def check_output(method: Method, ids: tuple[str, ...], values: object) -> np.ndarray:
    """What an encoder gave for some samples, as float32, if it is one finite row for each of them."""
    rows = np.asarray(values)
    where = f"method {method.id!r}"
    if rows.ndim != 2 or len(rows) != len(ids) or rows.dtype.kind not in "fiu":
        shape = f"{rows.dtype} {rows.shape}"
        raise PluginError("bad encoder output", where=where, expected=f"numbers ({len(ids)}, dim)", got=shape)
    if not 1 <= rows.shape[1] <= MAX_DIM:
        expected = f"1 to {MAX_DIM} values"
        raise PluginError("bad encoder output", where=where, expected=expected, got=rows.shape[1])
    rows = rows.astype(np.float32)
    bad = [sample for sample, row in zip(ids, rows, strict=True) if not np.isfinite(row).all()]
    if bad:
        raise DataError(f"non-finite values for {len(bad)} samples ({join_names(bad)})", where=where)
    return rows


@contextmanager
def one_thread(torch_too: bool = True) -> Iterator[None]:
    """One thread for BLAS and torch: the sums round alike everywhere, and a busy machine does not stall them.

    On two busy cores a small convolution took 16 ms with two threads and 0.1 ms with one.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        if not torch_too:
            yield
            return
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
