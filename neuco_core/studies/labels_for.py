"""What a study starts from: tasks with their labels, each loaded once, or the reason why a task is left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from neuco_core.errors import NeucoError, OfflineError, PluginError, UnpinnedError
from neuco_core.fetch.links import dataset_root
from neuco_core.runs.files import only_dataset
from neuco_core.specs import Task
from neuco_core.studies.sources import FileSource, Source
from neuco_core.tables.labels import Labels


@dataclass(frozen=True)
class Input:
    """A task and its labels; without them ``status`` is skipped or failed, and ``reason`` says why."""

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
                only_dataset(source.path, tasks, counts)
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
        link = f"`neuco data link {task.dataset} FOLDER` to use a local copy"
        reason = f"labels not verified yet (unpinned): run `neuco data pin TASK` to fetch and pin them, or {link}"
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
