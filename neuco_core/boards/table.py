"""From records, or from a published table, to cells that can be ranked; and who is ranked on what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from neuco_core.boards.stats.uncertainty import TaskScores
from neuco_core.errors import DataError, UsageError

if TYPE_CHECKING:
    from neuco_core.records.model import Record
    from neuco_core.specs import Suite

COVERAGE = {
    "complete": "only methods with a score on every task of the suite are ranked",
    "common": "all methods are ranked, on the tasks on which every one of them has a score",
}
TEST_TO_TRAIN = 1 / 9  # of the protocols here: a tenth is the test part


@dataclass(frozen=True)
class Cell:
    """One method on one task: a score, or the reason why there is none."""

    q: float | None = None
    mean: float | None = None
    std: float | None = None
    splits: tuple[float | None, ...] = ()
    test_to_train: float = TEST_TO_TRAIN
    samples: float = np.inf
    status: str = "ok"
    reason: str = ""
    fingerprint: str = ""

    @property
    def scored(self) -> bool:
        return self.status == "ok" and self.q is not None


NO_RECORD = Cell(status="missing", reason="there is no record")


@dataclass(frozen=True)
class Entrant:
    """A method as it takes part in a board."""

    id: str
    version: int = 1
    baseline: bool = False
    dim: int | None = None


@dataclass(frozen=True)
class Event:
    """A task as a board sees it."""

    id: str
    version: int = 1
    dataset: str = ""
    kind: str = "regression"
    metric: str = ""
    greater_is_better: bool = True

    def describe(self) -> str:
        return f"{self.kind} on {self.dataset}, {self.metric}, {'more' if self.greater_is_better else 'less'} is better"


@dataclass(frozen=True)
class Table:
    """Everything that a board is made of. ``cells`` are by (method, task); what is not in it has no record."""

    events: tuple[Event, ...]
    entrants: tuple[Entrant, ...]
    cells: Mapping[tuple[str, str], Cell]

    def cell(self, method: str, task: str) -> Cell:
        return self.cells.get((method, task), NO_RECORD)

    def scored(self, entrant: Entrant, event: Event) -> bool:
        return self.cell(entrant.id, event.id).scored

    def numbers(self, name: str) -> np.ndarray:
        """A field of all cells, (tasks, methods); ``None`` becomes NaN."""
        values = [[getattr(self.cell(m.id, t.id), name) for m in self.entrants] for t in self.events]
        return np.array(values, dtype=np.float64).reshape(len(self.events), len(self.entrants))

    def scores(self, event: Event) -> TaskScores:
        """The scores of all methods on a task, split by split; no splits if the methods do not have the same ones."""
        cells = [self.cell(entrant.id, event.id) for entrant in self.entrants]
        sizes = {len(cell.splits) for cell in cells}
        rows = [cell.splits for cell in cells] if len(sizes) == 1 else [() for _ in cells]
        splits = np.array(rows, dtype=np.float64).reshape(len(cells), -1)
        share = float(np.median([cell.test_to_train for cell in cells])) if cells else TEST_TO_TRAIN
        samples = float(np.median([cell.samples for cell in cells])) if cells else np.inf
        return TaskScores(splits, share, event.greater_is_better, event.dataset, samples)


def from_records(records: Iterable[Record], suite: Suite, stale: Callable[[Record], str | None] | None = None) -> Table:
    """The cells of a suite. Records of other tasks or protocols are not its business.

    ``stale`` gives the reason why a record no longer counts, or ``None``. A record of another version of the task
    than the suite's, or of an older version of the method, never counts.
    """
    chosen = [r for r in records if r.task in suite.tasks and r.protocol == suite.protocol]
    methods: dict[str, list[Record]] = {}
    tasks: dict[str, list[Record]] = {task: [] for task in sorted(suite.tasks)}
    for record in chosen:
        methods.setdefault(record.method, []).append(record)
        tasks[record.task].append(record)
    entrants = {method: _entrant(method, methods[method]) for method in sorted(methods)}
    cells: dict[tuple[str, str], Cell] = {}
    for record in chosen:
        if (record.method, record.task) in cells:
            raise UsageError(f"two records of {record.method!r} on {record.task!r}", where=f"suite {suite.id}")
        reason = _old(record, suite, entrants[record.method].version) or (stale(record) if stale else None)
        cell = _cell(record)
        # Where nothing was scored, the reason for that says more than that it is an old one.
        old = reason is not None and record.status in ("ok", "failed")
        cells[record.method, record.task] = replace(cell, status="stale", reason=reason or "") if old else cell
    # Old records may well speak of another metric; they tell what a task is only where there are no others.
    current = {task: [r for r in own if cells[r.key[:2]].status != "stale"] or own[:1] for task, own in tasks.items()}
    events = tuple(_event(task, suite.tasks[task], own) for task, own in current.items())
    return Table(events, tuple(entrants.values()), cells)


def _cell(record: Record) -> Cell:
    train, test = record.samples.get("train", 0), record.samples.get("test", 0)
    return Cell(
        q=record.q,
        mean=record.mean,
        std=record.std,
        splits=tuple(record.per_split),
        test_to_train=test / train if train and test else TEST_TO_TRAIN,
        samples=train + test or np.inf,
        status=record.status,
        reason=f"{record.failure}: {record.reason}" if record.failure else record.reason,
        fingerprint=record.fingerprint,
    )


def _old(record: Record, suite: Suite, method_version: int) -> str | None:
    wanted = suite.tasks[record.task]
    if record.task_version != wanted:
        return f"scored on version {record.task_version} of the task, the suite has version {wanted}"
    if record.method_version != method_version:
        return f"scored with version {record.method_version} of the method, there is a version {method_version}"
    return None


def _event(task: str, version: int, records: Iterable[Record]) -> Event:
    """Told by the records of the right version, which must agree; a task that nobody was scored on stays bare."""
    found: dict[Event, str] = {}
    for record in records:
        if record.task_version == version:
            event = Event(task, version, record.dataset, record.kind, record.metric, record.greater_is_better)
            found.setdefault(event, record.method)
    if len(found) > 1:
        said = "; ".join(f"{method}'s: {event.describe()}" for event, method in found.items())
        hint = f"Take away the wrong one, and run `neuco score --all --task {task}`"
        raise DataError(f"records of task {task!r} do not agree on what it is", got=said, hint=hint)
    return next(iter(found), Event(task, version))


def _entrant(method: str, records: Sequence[Record]) -> Entrant:
    version = max(record.method_version for record in records)
    own = [record for record in records if record.method_version == version]
    dims = [record.dim for record in own if record.dim is not None]
    return Entrant(method, version, any(record.baseline for record in own), max(dims, default=None))


@dataclass(frozen=True)
class Pool:
    """Who is ranked on what: ``table`` holds these only; the rest is named with what it lacks."""

    table: Table
    left_out: tuple[Entrant, ...]
    unused: tuple[Event, ...]


def pool(table: Table, coverage: str = "complete") -> Pool:
    """Apply a coverage policy."""
    if coverage not in COVERAGE:
        raise UsageError("no such coverage policy", expected=f"one of {', '.join(COVERAGE)}", got=coverage)
    if coverage == "complete":
        events = table.events
        ranked = tuple(m for m in table.entrants if all(table.scored(m, t) for t in events))
    else:
        ranked = tuple(m for m in table.entrants if any(table.scored(m, t) for t in table.events))
        events = tuple(t for t in table.events if all(table.scored(m, t) for m in ranked))
        ranked = ranked if events else ()
    left_out = tuple(m for m in table.entrants if m not in ranked)
    unused = tuple(t for t in table.events if t not in events)
    return Pool(replace(table, events=events, entrants=ranked), left_out, unused)
