"""What a worker does: one step at a time, with embeddings and labels kept for the next one."""

from __future__ import annotations

import errno
import math
import platform
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuco_core import __version__
from neuco_core.encode.encoding import Clock
from neuco_core.env import show_in_debug
from neuco_core.errors import DataError, DependencyError, NeucoError, OfflineError, PluginError, UnpinnedError
from neuco_core.plugins import catalog
from neuco_core.plugins.code_key import StandIn
from neuco_core.protocol import load_protocol
from neuco_core.runs.labels import run_labels
from neuco_core.runs.shards import ShardWork
from neuco_core.runs.steps import Result, Step, failure
from neuco_core.specs import exact
from neuco_core.text import one_line

if TYPE_CHECKING:
    from neuco_core.scoring.scorer import Score
    from neuco_core.specs import Task
    from neuco_core.tables.embeddings import Embeddings
    from neuco_core.tables.labels import Labels

PACKAGES = ("numba", "numpy", "pandas", "scikit-learn", "torch")
TELL_SECONDS = 0.2
DISK = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO))
DENIED = frozenset((errno.EACCES, errno.EPERM))


class Work:
    """Does steps. The embeddings of one method on one dataset are kept, and the labels of every task met."""

    def __init__(self, progress: Callable[[float], None] | None = None) -> None:
        self._progress = progress
        self._embeddings: tuple[Step, Embeddings] | None = None
        self._labels: dict[str, Labels] = {}
        self._shards = ShardWork()

    def do(self, step: Step) -> Result:
        """The result of a step; every failure that a process survives is one too, with its type."""
        start = time.perf_counter()
        reset_peak()
        try:
            result = self._do(step)
        except Exception as error:
            show_in_debug(error)
            result = explain_error(error)
        except SystemExit as error:
            result = failure("method", f"the code called exit({error.code!r})")
        used = {"seconds": round(time.perf_counter() - start, 3), "peak_memory": peak_memory(), "threads": step.threads}
        return {**result, "provenance": {**environment(), **used}}

    def _do(self, step: Step) -> Result:
        if step.shard:
            return self._shards.do(step)
        if step.tuning:
            return self._tune(step)
        return self._score(step) if step.task else self._embed(step)

    def _embed(self, step: Step) -> Result:
        clock = Clock()
        result = {"status": "ok", "dim": self._load_embeddings(step, clock).dim}
        cost: dict[str, Any] = {}
        if clock.samples:  # else from a file or a cache: nothing was measured
            cost = {"samples": clock.samples, "seconds": round(clock.seconds, 3), "peak_memory": peak_memory()}
        encoding = {**cost, **clock.made_with}
        return {**result, "encoding": encoding} if encoding else result

    def _score(self, step: Step) -> Result:
        from neuco_core.scoring.scorer import score

        task, labels, embeddings = self._inputs(step)
        options: dict[str, Any] = {"metric": task.metric, "threads": step.threads, "progress": self._shown()}
        outcome = score(embeddings, labels, step.protocol, **options)
        contents = {"labels": labels.sha256, "embeddings": embeddings.sha256, "dim": embeddings.dim}
        return {"status": "ok", **contents, **score_values(outcome)}

    def _inputs(self, step: Step) -> tuple[Task, Labels, Embeddings]:
        task = catalog.load_task(exact(step.task))
        if task.label not in self._labels:
            self._labels[task.label] = run_labels(task, step.shared)
        return task, self._labels[task.label], self._load_embeddings(step)

    def _tune(self, step: Step) -> Result:
        """Search the settings inside the training part, and repeat the best; what is done already is not done again."""
        import msgspec

        from neuco_core.scoring.search import Plan, Repeat, Trial, best_of, divide, repeated, search

        task, labels, embeddings = self._inputs(step)
        asked = dict(step.tuning)
        trials, repeats = msgspec.convert(asked.pop("done"), tuple[list[Trial], list[Repeat]])
        plan = Plan(load_protocol(step.protocol), **asked)
        divided, better = divide(embeddings, labels, plan), catalog.load_metric(task.metric).greater_is_better
        trials += search(divided, plan, task.metric, tuple(trials), better, step.threads)
        settings = best_of(trials, better).settings
        repeats += repeated(divided, plan, task.metric, settings, tuple(repeats), step.threads)
        contents = {"labels": labels.sha256, "embeddings": embeddings.sha256}
        sizes = {"train": len(divided.train), "test": len(divided.test)}
        return {"status": "ok", **contents, **sizes, **msgspec.to_builtins({"trials": trials, "repeats": repeats})}

    def _load_embeddings(self, step: Step, clock: Clock | None = None) -> Embeddings:
        place = replace(step.embedding, protocol="", shared="", threads=1, known=(), tuning=())
        if self._embeddings is None or self._embeddings[0] != place:
            self._embeddings = None  # let go of the old ones before making the new ones
            self._embeddings = place, self._make_embeddings(step, clock)
        return self._embeddings[1]

    def _make_embeddings(self, step: Step, clock: Clock | None) -> Embeddings:
        if step.file:
            from neuco_core.fetch.fetch import fetch
            from neuco_core.specs import Remote
            from neuco_core.tables.embeddings import read_embeddings

            path = fetch(Remote(Path(step.file).as_uri(), step.sha256))
            dim = load_protocol(step.protocol).embedding_dim
            return read_embeddings(path, strict=step.strict, dim=dim)
        from neuco_core.encode.run import method_embeddings

        shared = Path(step.shared) if step.shared and Path(step.shared).is_dir() else None
        method = catalog.load_method(exact(step.method))
        return method_embeddings(
            method,
            step.dataset,
            {},
            progress=self._shown() or False,
            cached=not step.fresh or shared is not None,
            run=shared if step.fresh else None,
            spare=shared,
            known=step.known,
            batch_size=step.batch_size,
            clock=None if isinstance(method.encoder, StandIn) else clock,  # the true encoder ran elsewhere
            threads=step.threads,
        )

    def _shown(self) -> Callable[[int, int], None] | None:
        """Tell the owner how far a step is, a few times per second at most."""
        if self._progress is None:
            return None
        tell, last = self._progress, [0.0]

        def show(done: int, total: int) -> None:
            if time.monotonic() - last[0] > TELL_SECONDS:
                last[0] = time.monotonic()
                tell(done / total)

        return show


def score_values(found: Score) -> dict[str, Any]:
    """The part of a score that is kept in a record."""
    return {
        "per_split": [_number(value) for value in found.per_split],
        "metrics": {
            name: [_number(value) for value in values]
            for name, values in found.metrics.items()
            if name != found.metric  # that is per_split
        },
        "samples": {name: int(value) for name, value in found.samples.items()},
        "splits": {name: int(value) for name, value in found.splits.items()},
        "settings": {name: [_number(value) for value in values] for name, values in found.settings.items()},
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def explain_error(error: Exception) -> Result:
    """What an error means for a cell: a typed failure, or that it cannot be scored here."""
    if _is_machines(error):
        return {"status": "skipped", "reason": _clean(f"this machine cannot: {error}"), "machine": True}
    if isinstance(error, UnpinnedError | OfflineError):
        return {"status": "skipped", "reason": _clean(str(error))}
    if isinstance(error, MemoryError):
        return failure("memory", "not enough memory")
    if isinstance(error, DependencyError | ModuleNotFoundError):
        return failure("dependency", _clean(str(error)))
    if isinstance(error, NeucoError):
        return failure("method" if isinstance(error, PluginError) else "data", _clean(str(error)))
    last = traceback.extract_tb(error.__traceback__)[-1]
    return failure("method", _clean(f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"))


def _is_machines(error: BaseException | None) -> bool:
    """Whether a disk that is full or cannot be written is behind an error, whoever met it.

    A file that may not be used is the machine's fault if neuco wanted it; a plugin may have asked for anything.
    """
    errors = DISK | DENIED if isinstance(error, DataError) else DISK
    while error is not None:
        if isinstance(error, OSError) and error.errno in errors:
            return True
        error = error.__cause__
    return False


def _clean(text: str) -> str:
    """One line without this machine's folders: records are published."""
    from neuco_core.fetch.cache import cache_dir
    from neuco_core.paths import PACKAGE

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
        "packages": {name: metadata.version(name) for name in PACKAGES if _loaded(name)},
    }


def _loaded(package: str) -> bool:
    return {"scikit-learn": "sklearn"}.get(package, package) in sys.modules


def reset_peak() -> None:
    """Start measuring the peak memory anew, where the system can."""
    _ignore_os_error(lambda: Path("/proc/self/clear_refs").write_text("5", encoding="ascii"))


def peak_memory() -> int | None:
    """The most bytes of memory that were in use since ``reset_peak``."""
    text = _ignore_os_error(lambda: Path("/proc/self/status").read_text(encoding="ascii")) or ""
    for line in str(text).splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


def _ignore_os_error(action: Callable[[], object]) -> object:
    try:
        return action()
    except OSError:
        return None
