"""A worker: one step at a time, with embeddings and labels kept for the next one.

``python -m neuco_core.runs.worker IN OUT SCRATCH`` reads steps and writes reports. IN and OUT are file descriptors of
pipes, SCRATCH is a folder that the owner removes. Whatever the code under test prints goes elsewhere. The process ends
when IN is closed, also in the middle of a step: a run that was killed leaves no workers behind.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import math
import os
import platform
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
from msgspec.structs import replace

from neuco_core import __version__
from neuco_core.encode.encoding import Clock, Encoding
from neuco_core.encode.requirements import full_params, open_cubes
from neuco_core.encode.run import EncodeOptions, method_embeddings, open_cache
from neuco_core.env import PACKAGE, show_in_debug
from neuco_core.errors import DataError
from neuco_core.fetch.cache import cache_dir, exclusive
from neuco_core.fetch.fetch import fetch
from neuco_core.files import write_atomic
from neuco_core.plugins.catalog import catalog, load_dataset, load_method, load_task
from neuco_core.plugins.code_key import StandIn
from neuco_core.plugins.running import compiled_apart, run_from_source
from neuco_core.runs.messages import (
    Call,
    CallContext,
    Embed,
    Embedded,
    Encoded,
    EncodeShard,
    Failed,
    Ready,
    Report,
    Result,
    Returned,
    ScoreCell,
    Scored,
    Skipped,
    Step,
    StepShare,
    Warned,
    decode_step,
    encode,
)
from neuco_core.scoring.cell import CellOutcome, outcome_of
from neuco_core.scoring.scorer import score
from neuco_core.specs import Remote, Task, exact, resolve
from neuco_core.tables.embeddings import Embeddings, content_hash, read_embeddings
from neuco_core.tables.labels import Labels, load_labels
from neuco_core.text import one_line

PACKAGES = {"numba": "numba", "numpy": "numpy", "pandas": "pandas", "scikit-learn": "sklearn", "torch": "torch"}
TELL_SECONDS = 0.2


class WorkerSteps:
    """Does steps. The embeddings of one method on one dataset are kept, and the labels of every task met."""

    def __init__(self, tell_share: Callable[[float], object] = bool) -> None:
        self._tell_share = tell_share
        self._told = 0.0
        self._embeddings: tuple[Embed, Embeddings] | None = None
        self._labels = cache(lambda label, folder: shared_labels(load_task(exact(label)), folder))
        self._encoding: tuple[str, Encoding] | None = None

    def do(self, step: Step) -> Result:
        """The result of a step; every failure that a process survives is one too, with its kind."""
        start = time.perf_counter()
        with contextlib.suppress(OSError):  # measure the peak memory anew, where the system can; psutil knows no peak
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        result: Result
        try:
            if isinstance(step, Embed):
                clock, cost = Clock(), {}
                dim = self._load(step, clock).dim
                if clock.samples:  # else from a file or a cache: nothing was measured
                    cost = {"samples": clock.samples, "seconds": round(clock.seconds, 3), "peak_memory": peak_memory()}
                result = Embedded(dim, {**cost, **clock.made_with})
            elif isinstance(step, ScoreCell):
                labels, embeddings = self._labels(step.task, step.embed.shared), self._load(step.embed)
                metric, threads = load_task(exact(step.task)).metric, step.embed.threads
                made = score(embeddings, labels, step.protocol, metric=metric, threads=threads, progress=self._progress)
                result = result_of(CellOutcome("ok", made, embeddings.sha256, labels.sha256, embeddings.dim))
            elif isinstance(step, EncodeShard):
                result = self._encode(step)
            else:
                result = self._call(step)
        except Exception as error:
            show_in_debug(error)
            result = result_of(outcome_of(error))
        except SystemExit as error:
            result = Failed("method", f"the code called exit({error.code!r})")
        threads = step.embed.threads if isinstance(step, ScoreCell) else getattr(step, "threads", 1)
        used = {"seconds": round(time.perf_counter() - start, 3), "peak_memory": peak_memory(), "threads": threads}
        return replace(result, provenance={**environment(), **used})

    def _encode(self, step: EncodeShard) -> Encoded:
        """An encoder that is ready stays so for the next shard."""
        if self._encoding is None or self._encoding[0] != step.key:
            self._encoding = None  # let go of the old one before making the new one
            method, dataset = load_method(exact(step.method)), load_dataset(step.dataset)
            params = full_params(method, step.params)
            source = open_cubes(method, dataset)
            cache = open_cache(method, dataset, source, params, device=step.device)
            if cache is None or cache.key != step.key:
                what = "the worker's data, code or packages are not those of the machine that gathers"
                raise DataError(what, where=step.dataset, hint="Install the same versions and link the same data")
            self._encoding = step.key, Encoding(method, source, params, step.batch_size, 1, step.device)
        encoding = self._encoding[1]
        ids = tuple(encoding.source.ids())[step.start : step.stop]
        read = 0

        def advance(samples: int, size: int = 0, made: bool = True) -> None:
            nonlocal read
            read += size

        with encoding.running():
            rows = np.ascontiguousarray(encoding.encode(ids, advance), dtype=np.float32)
        return Encoded(rows.tobytes(), rows.shape[1], content_hash(ids, rows), read)

    def _call(self, step: Call) -> Returned:
        def embeddings() -> Embeddings:
            if step.embed is None:
                raise DataError("the call names no embeddings", where=step.function)
            return self._load(step.embed)

        def labels(task: str) -> Labels:
            return self._labels(task, step.embed.shared if step.embed else "")

        context = CallContext(embeddings, labels, step.threads, self._progress)
        return Returned(resolve(step.function)(context, **step.arguments))

    def _load(self, embed: Embed, clock: Clock | None = None) -> Embeddings:
        if self._embeddings is not None and self._embeddings[0] == embed:
            return self._embeddings[1]
        self._embeddings = None  # let go of the old ones before making the new ones
        if embed.file:
            path = fetch(Remote(Path(embed.file).as_uri(), embed.sha256))
            embeddings = read_embeddings(path, strict=embed.strict, dim=embed.dim)
        else:
            shared = Path(embed.shared) if embed.shared and Path(embed.shared).is_dir() else None
            method = load_method(exact(embed.method))
            options = EncodeOptions(
                batch_size=embed.batch_size,
                threads=embed.threads,
                cached=not embed.fresh or shared is not None,
                run=shared if embed.fresh else None,
                spare=shared,
                known=embed.known,
                progress=self._progress,
                clock=None if isinstance(method.encoder, StandIn) else clock,  # the true encoder ran elsewhere
            )
            embeddings = method_embeddings(method, embed.dataset, {}, options)
        self._embeddings = embed, embeddings
        return embeddings

    def _progress(self, done: int, total: int) -> None:
        """Tell the owner how far a step is, a few times per second at most."""
        if time.monotonic() - self._told > TELL_SECONDS:
            self._told = time.monotonic()
            self._tell_share(done / total)


def shared_labels(task: Task, folder: str) -> Labels:
    """The labels of a task; in a ``folder`` of a run, whichever worker loads them first writes them for the others."""
    shared = Path(folder)
    if not folder or not shared.is_dir():  # e.g. a worker on another machine
        return load_labels(task)
    path = shared / f"{task.label}.labels"
    with exclusive(shared / task.label):
        if path.exists():
            return msgspec.msgpack.decode(path.read_bytes(), type=Labels, dec_hook=_unpack_array)
        labels = load_labels(task)
        packed = msgspec.msgpack.encode(labels, enc_hook=lambda array: (array.dtype.str, array.shape, array.tobytes()))
        with contextlib.suppress(OSError):  # a full disk: the others load them as well
            write_atomic(path, packed)
        return labels


def _unpack_array(_: type, packed: tuple[str, tuple[int, ...], bytes]) -> np.ndarray:
    dtype, shape, data = packed
    return np.frombuffer(data, dtype).reshape(shape).copy()  # a buffer's own array is read-only


def result_of(outcome: CellOutcome) -> Scored | Failed | Skipped:
    """What became of a cell, as a message; reasons name no folder of this machine."""
    if outcome.status == "failed":
        return Failed(outcome.failure, _clean(outcome.reason))
    if outcome.score is None:
        return Skipped(_clean(outcome.reason), outcome.machine)
    score = outcome.score
    return Scored(
        outcome.labels_sha256,
        outcome.embeddings_sha256,
        outcome.dim,
        _numbers(score.per_split),
        {name: _numbers(values) for name, values in score.metrics.items() if name != score.metric},  # that is per_split
        {name: int(count) for name, count in score.samples.items()},
        {name: int(count) for name, count in score.splits.items()},
        {name: _numbers(values) for name, values in score.settings.items()},
    )


def _numbers(values: Iterable[float]) -> tuple[float | None, ...]:
    return tuple(float(value) if math.isfinite(value) else None for value in values)


def _clean(text: str) -> str:
    """One line without this machine's folders: records are published."""
    for folder, name in ((cache_dir(), "CACHE"), (PACKAGE.parent, "."), (Path.cwd(), "."), (Path.home(), "~")):
        if len(folder.parts) > 1:
            text = text.replace(str(folder), name)
    return one_line(text)


def environment() -> dict[str, Any]:
    """What the numbers were made with."""
    return {
        "neuco": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": {name: metadata.version(name) for name, module in PACKAGES.items() if module in sys.modules},
    }


def peak_memory() -> int | None:
    """The most bytes of memory that were in use since the step began."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)


def main(read_from: int, write_to: int, scratch: str) -> None:
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever runs the engine decides what an interrupt means
    with contextlib.suppress(OSError):  # where memory is short, Linux ends a worker, and not its owner
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    steps: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(os.fdopen(read_from, "rb"), steps), daemon=True).start()
    run_from_source(everywhere=True)
    catalog().plugins.candidates  # noqa: B018 - finds the plugins, and imports none
    with os.fdopen(write_to, "wb", buffering=0) as out, compiled_apart(scratch):

        def tell(report: Report) -> None:
            out.write(encode(report) + b"\n")

        class Warnings(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                tell(Warned(one_line(record.getMessage())))

        logging.getLogger("neuco_core").addHandler(Warnings(logging.WARNING))
        worker = WorkerSteps(lambda share: tell(StepShare(share)))
        tell(Ready())
        while True:
            tell(worker.do(decode_step(steps.get())))


def _listen(lines: IO[bytes], steps: queue.SimpleQueue[bytes]) -> None:
    for line in lines:
        steps.put(line)
    os._exit(0)  # not sys.exit: the main thread may be busy for hours with a step that nobody wants any more


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
