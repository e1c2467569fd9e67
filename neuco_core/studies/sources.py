"""What a study starts from: embeddings of a registered method or of a file, and tasks with their labels.

Of a task that is left out there is the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from neuco_core.encode.run import AS_USUAL, EncodeOptions, method_embeddings, why_not
from neuco_core.errors import NeucoError, OfflineError, PluginError, UnpinnedError
from neuco_core.fetch.links import dataset_root
from neuco_core.plugins.catalog import load_method
from neuco_core.runs.files import require_one_dataset
from neuco_core.specs import Method, Task
from neuco_core.tables.embeddings import Embeddings, read_embeddings
from neuco_core.tables.labels import Labels


class MethodSource:
    """A method. The embeddings of the last dataset are kept: tasks come dataset by dataset.

    ``doubts`` are warnings about the embeddings that were made.
    """

    def __init__(self, method: Method, options: EncodeOptions = AS_USUAL, *, name: str = "") -> None:
        self.method = method
        self.name = name or method.label
        self.doubts: list[str] = []
        self._options = replace(options, doubts=self.doubts)
        self._last: tuple[str, Embeddings] | None = None

    def describe(self) -> dict[str, Any]:
        return {"method": self.method.id, "version": self.method.version}

    def why_not(self, task: Task, labels: Labels | None) -> str:
        """Why this source has nothing for a task, known without fetching or computing anything; "" if it has."""
        return why_not(self.method, task.dataset)

    def embeddings(self, task: Task) -> Embeddings:
        if self._last is None or self._last[0] != task.dataset:
            self._last = task.dataset, method_embeddings(self.method, task.dataset, {}, self._options)
        return self._last[1]


class FileSource:
    """A file of embeddings, read once; it has something for every task whose ids it holds.

    ``made`` are embeddings that are in memory already: then the path is only a name.
    """

    def __init__(self, path: Path, *, name: str = "", strict: bool = False, made: Embeddings | None = None) -> None:
        self.path = path
        self.name = name or path.name
        self._strict = strict
        self._embeddings = made

    def describe(self) -> dict[str, Any]:
        embeddings = self.read()
        return {"file": self.path.name, "sha256": embeddings.sha256, "replaced": dict(embeddings.replaced)}

    def read(self) -> Embeddings:
        if self._embeddings is None:
            self._embeddings = read_embeddings(self.path, strict=self._strict)
        return self._embeddings

    @cached_property
    def _ids(self) -> frozenset[str]:
        return frozenset(self.read().ids)

    def why_not(self, task: Task, labels: Labels | None) -> str:
        if labels is None or self.matches(labels):
            return ""
        return f"no id of {self.name} has a label in it"

    def matches(self, labels: Labels) -> int:
        """How many labelled samples the file holds."""
        return len(self._ids.intersection(labels.ids))

    def embeddings(self, task: Task) -> Embeddings:
        return self.read()


Source: TypeAlias = MethodSource | FileSource


def open_source(text: str, *, strict: bool = False, options: EncodeOptions = AS_USUAL, name: str = "") -> Source:
    """A method by its id, or a file by its path; an id has no dot and no slash, so the two cannot be confused."""
    if "." in text or "/" in text:
        return FileSource(Path(text).expanduser(), name=name, strict=strict)
    return MethodSource(load_method(text), options, name=name)


@dataclass(frozen=True)
class Input:
    """A task and its labels, loaded once; without them ``status`` is skipped or failed, and ``reason`` says why."""

    task: Task
    labels: Labels | None = None
    status: str = "ok"
    reason: str = ""


def gather(tasks: Sequence[Task], *sources: Source, same_dataset: bool = False) -> list[Input]:
    """The tasks, dataset by dataset, with their labels if all sources have embeddings for them.

    ``same_dataset`` says that the caller chose the dataset, so that a file's ids need not tell it.
    """
    tasks = sorted(tasks, key=lambda task: (task.dataset, task.label))
    labels = {task.label: _labels(task) for task in tasks}
    for source in sources:
        if isinstance(source, FileSource):  # a bad file is one error, not one for every task
            source.read()
            if not same_dataset:
                counts = {name: source.matches(item) for name, item in labels.items() if isinstance(item, Labels)}
                require_one_dataset(source.path, tasks, counts)
    return [_input(task, labels[task.label], sources) for task in tasks]


def _labels(task: Task) -> Labels | NeucoError:
    try:
        return task.labels()
    except NeucoError as error:
        return error
    except Exception as error:  # a task's loader is a stranger's code
        return PluginError(f"the labels cannot be loaded: {type(error).__name__}: {error}", where=task.origin)


def _input(task: Task, labels: Labels | NeucoError, sources: Iterable[Source]) -> Input:
    if isinstance(labels, UnpinnedError) and dataset_root(task.dataset) is None:
        # The same words for all tasks of a dataset, so that they are grouped into one line.
        link = f"`neuco data link {task.dataset} FOLDER` to use your copy"
        reason = f"the labels are not downloaded yet: run `neuco data pin TASK` to download and confirm them, or {link}"
        return Input(task, status="skipped", reason=reason)
    if isinstance(labels, NeucoError):
        status = "skipped" if isinstance(labels, (OfflineError, UnpinnedError)) else "failed"
        return Input(task, status=status, reason=str(labels))
    try:
        reason = next(filter(None, (source.why_not(task, labels) for source in sources)), "")
    except NeucoError as error:
        return Input(task, status="failed", reason=str(error))
    return Input(task, status="skipped", reason=reason) if reason else Input(task, labels)


def grouped(lines: Iterable[tuple[str, str, str]]) -> list[str]:
    """Lines for (status, name, reason); names with the same status and reason share a line."""
    groups: dict[tuple[str, str], list[str]] = {}
    for status, name, reason in lines:
        if reason:
            groups.setdefault((status, reason), []).append(name)
    return [f"{status} {', '.join(names)}: {reason}" for (status, reason), names in groups.items()]
