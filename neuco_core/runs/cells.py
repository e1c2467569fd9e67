"""Scores of many (source, task) cells: one that fails is reported and does not take the others along."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from neuco_core.errors import NeucoError, OfflineError, PluginError, UnpinnedError
from neuco_core.runs.sources import FileSource, Source

if TYPE_CHECKING:
    from neuco_core.protocol import Protocol
    from neuco_core.scoring.scorer import Score
    from neuco_core.specs import Task
    from neuco_core.tables.labels import Labels

# Called with the share of all the work that is done, and the cell at hand.
Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Cell:
    """One source on one task: ``status`` is ok, skipped (with the reason) or failed (with the error)."""

    source: str
    task: Task
    status: str
    reason: str = ""
    score: Score | None = None

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {"source": self.source, "task": self.task.id, "status": self.status}
        if self.reason:
            value["reason"] = self.reason
        if self.score is not None:
            value["score"] = self.score.to_json()
            value["baseline"] = baseline_check(self.task, self.source, self.score)
        return value


def baseline_check(task: Task, source: str, score: Score) -> dict[str, Any] | None:
    """The task's expected score; whether it is met can be said only of the same method and protocol."""
    expected = task.baseline
    if expected is None:
        return None
    same = expected.method == source and expected.protocol == score.protocol.name
    met = abs(score.mean - expected.score) <= expected.tolerance if same and math.isfinite(score.mean) else None
    return {
        "method": expected.method,
        "score": expected.score,
        "tolerance": expected.tolerance,
        "protocol": expected.protocol,
        "met": met,
    }


def load_all_labels(tasks: Sequence[Task]) -> dict[str, Labels | NeucoError]:
    """The labels of each task, or why they cannot be had."""
    return {task.id: _labels(task) for task in tasks}


def _labels(task: Task) -> Labels | NeucoError:
    try:
        return task.labels()
    except NeucoError as error:
        return error
    except Exception as error:  # a task's loader is a stranger's code
        return PluginError(f"the labels cannot be loaded: {type(error).__name__}: {error}", where=task.origin)


def score_cells(
    sources: Sequence[Source],
    tasks: Sequence[Task],
    protocol: Protocol,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    same_dataset: bool = False,
) -> Iterator[Cell]:
    """Score every source on every task, and yield each cell when it is done, dataset by dataset.

    ``same_dataset`` says that the caller chose the dataset, so that a file's ids need not tell it.
    """
    tasks = sorted(tasks, key=lambda task: (task.dataset, task.id))
    labels = load_all_labels(tasks)
    for source in sources:
        check_file(source, tasks, labels, same_dataset)
    weights = {task.id: _weight(labels[task.id]) for task in tasks}
    whole = sum(weights.values()) * len(sources) or 1
    done = 0
    for source in sources:
        for task in tasks:
            name = task.id if len(sources) == 1 else f"{source.name} {task.id}"
            step = _step(progress, name, done / whole, weights[task.id] / whole)
            yield _cell(source, task, labels[task.id], protocol, threads, step)
            done += weights[task.id]


def check_file(
    source: Source, tasks: Sequence[Task], labels: Mapping[str, Labels | NeucoError], same_dataset: bool
) -> None:
    """A file that cannot be read, or could be of several datasets, is one error and not one for every task."""
    if isinstance(source, FileSource):
        source.read()
        if not same_dataset:
            source.check_dataset(tasks, labels)


def _weight(labels: Labels | NeucoError) -> int:
    return 0 if isinstance(labels, NeucoError) else len(labels.ids)


def _step(progress: Progress | None, name: str, before: float, share: float) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    progress(before, name)
    return lambda done, total: progress(before + share * done / total, name)


def _cell(
    source: Source,
    task: Task,
    labels: Labels | NeucoError,
    protocol: Protocol,
    threads: int | None,
    progress: Callable[[int, int], None] | None,
) -> Cell:
    from neuco_core.scoring.scorer import score

    try:
        reason = why_skip(source, task, labels)
        if reason:
            return Cell(source.name, task, "skipped", reason)
        found = score(source.embeddings(task), task, protocol, threads=threads, progress=progress)
    except (UnpinnedError, OfflineError) as error:
        return Cell(source.name, task, "skipped", str(error))
    except NeucoError as error:
        return Cell(source.name, task, "failed", str(error))
    except Exception as error:  # an encoder, a metric or a probe is a stranger's code
        return Cell(source.name, task, "failed", f"{type(error).__name__}: {error}")
    return Cell(source.name, task, "ok", score=found)


def why_skip(source: Source, task: Task, labels: Labels | NeucoError) -> str:
    """Why a task is left out; "" if nothing speaks against it. Labels that are bad, not missing, are an error."""
    if isinstance(labels, UnpinnedError):
        return unpinned(task)
    if isinstance(labels, NeucoError):
        raise labels
    return source.why_not(task, labels)


def unpinned(task: Task) -> str:
    """One sentence for all tasks of a dataset, so that a list of them can be told as one."""
    link = f"`neuco data link {task.dataset} FOLDER` to use a local copy"
    return f"labels not verified yet (unpinned): run `neuco data pin TASK` to fetch and pin them, or {link}"


def plan_cells(sources: Sequence[Source], tasks: Sequence[Task]) -> list[Cell]:
    """What would be scored, without fetching, encoding or scoring; ``ready`` cells need nothing but time."""
    return [_plan(source, task) for source in sources for task in sorted(tasks, key=lambda t: (t.dataset, t.id))]


def _plan(source: Source, task: Task) -> Cell:
    from neuco_core.fetch.links import linked_file
    from neuco_core.fetch.pins import require_pin

    try:
        if linked_file(task.dataset, task.source) is None:
            require_pin(task.source)
        reason = source.why_not(task, None)
    except UnpinnedError:
        return Cell(source.name, task, "skipped", unpinned(task))
    except NeucoError as error:
        return Cell(source.name, task, "failed", str(error))
    return Cell(source.name, task, "skipped" if reason else "ready", reason)


def told(cells: Iterable[tuple[str, str, str]]) -> list[str]:
    """Lines for (status, name, reason); what shares status and reason is told in one."""
    groups: dict[tuple[str, str], list[str]] = {}
    for status, name, reason in cells:
        if reason:
            groups.setdefault((status, reason), []).append(name)
    return [f"{status} {', '.join(names)}: {reason}" for (status, reason), names in groups.items()]


def verdict(cells: Sequence[Cell], asked: Collection[str] = ()) -> str:
    """Why the whole is a failure, or "": a failed cell, a task asked for by its id and skipped, or no score at all."""
    failed = [cell for cell in cells if cell.status == "failed"]
    missed = [cell for cell in cells if cell.status == "skipped" and cell.task.id in asked]
    if failed:
        return f"{len(failed)} of {len(cells)} cells failed"
    if missed:
        return f"{len(missed)} of the tasks asked for could not be scored"
    if not any(cell.status in ("ok", "ready") for cell in cells):
        return "nothing could be scored" if cells else "no task was selected"
    return ""
