"""What a worker does: one step at a time, with embeddings and labels kept for the next one."""

from __future__ import annotations

import dataclasses
import math
import platform
import sys
import time
import traceback
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuco_core import __version__
from neuco_core.errors import DependencyError, NeucoError, OfflineError, PluginError, UnpinnedError
from neuco_core.plugins import catalog
from neuco_core.runs.steps import Result, Step, failure
from neuco_core.specs import Task
from neuco_core.text import one_line

if TYPE_CHECKING:
    from neuco_core.scoring.scorer import Score
    from neuco_core.tables.embeddings import Embeddings
    from neuco_core.tables.labels import Labels

PACKAGES = ("numba", "numpy", "pandas", "scikit-learn", "torch")
THREADS = 1


class Work:
    """Does steps. The embeddings of one method on one dataset are kept, and the labels of every task met."""

    def __init__(self) -> None:
        self._embeddings: tuple[tuple[str, str], Embeddings] | None = None
        self._labels: dict[str, Labels] = {}

    def do(self, step: Step) -> Result:
        """The result of a step; every failure that a process survives is one too, with its type."""
        start = time.perf_counter()
        reset_peak()
        try:
            result = self._score(step) if step.task else self._embed(step)
        except Exception as error:
            result = explain_error(error)
        except SystemExit as error:
            result = failure("method", f"the code called exit({error.code!r})")
        used = {"seconds": round(time.perf_counter() - start, 3), "peak_memory": peak_memory()}
        return {**result, "provenance": {**environment(), **used}}

    def _embed(self, step: Step) -> Result:
        found = self._load_embeddings(step)
        return {"status": "ok", "dim": found.dim}

    def _score(self, step: Step) -> Result:
        from neuco_core.scoring.scorer import score

        task = catalog.load_task(step.task)
        labels = self._load_labels(task)
        embeddings = self._load_embeddings(step)
        found = score(embeddings, loaded_task(task, labels), step.protocol, threads=THREADS)
        return {
            "status": "ok",
            "labels": labels.sha256,
            "embeddings": embeddings.sha256,
            "dim": embeddings.dim,
            **score_values(found),
        }

    def _load_embeddings(self, step: Step) -> Embeddings:
        place = step.method, step.dataset
        if self._embeddings is None or self._embeddings[0] != place:
            self._embeddings = None  # let go of the old ones before making the new ones
            self._embeddings = place, catalog.load_method(step.method).embeddings(step.dataset)
        return self._embeddings[1]

    def _load_labels(self, task: Task) -> Labels:
        if task.id not in self._labels:
            self._labels[task.id] = task.labels()
        return self._labels[task.id]


class _LoadedTask(Task):
    """A task whose labels are here already."""

    def labels(self) -> Labels:
        found: Labels = self.__dict__["loaded"]
        return found


def loaded_task(task: Task, labels: Labels) -> Task:
    """The same task; asked for its labels it gives these."""
    copy = _LoadedTask(**{f.name: getattr(task, f.name) for f in dataclasses.fields(task)})
    copy.__dict__["loaded"] = labels
    return copy


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
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def explain_error(error: Exception) -> Result:
    """What an error means for a cell: a typed failure, or that it cannot be scored here."""
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
        "threads": THREADS,
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
