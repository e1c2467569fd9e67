"""The cells of a suite, or of a published table, as a kind of board gets them: every method on every task."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import numpy as np

from neuco_core.boards.model import SCORE, STD, BoardCell, BoardRow, BoardTask, Column, Number, Ranked, Status, Trust
from neuco_core.errors import DataError, UsageError
from neuco_core.records.model import Key, Record
from neuco_core.scoring.f1_variance import UNCORRECTED, Trained, of_f1
from neuco_core.specs import Suite

COVERAGE = {
    "complete": "only methods with a score on every task of the suite are ranked",
    "common": "all methods are ranked, on the tasks on which every one of them has a score",
    "most": "methods with a score on at least half of the tasks are ranked, on those where all of these have one",
}
DAY = re.compile(r"\d{4}-\d\d-\d\d")
TEST_TO_TRAIN = 1 / 9  # of the protocols here: a tenth is the test part


@dataclass(frozen=True)
class Cell:
    """One method on one task: a score, or the reason why there is none. ``splits`` are the scores it is the mean of.

    ``lower`` and ``upper`` are the ends of the metric; ``trained`` is what further metrics tell of the score's error.
    ``embeddings`` is the hash of what was scored, if it is known.
    """

    q: float | None = None
    mean: float | None = None
    std: float | None = None
    splits: tuple[float | None, ...] = ()
    test_to_train: float = TEST_TO_TRAIN
    samples: float = np.inf
    trained: Trained = UNCORRECTED
    lower: float | None = None
    upper: float | None = None
    status: Status = "ok"
    reason: str = ""
    fingerprint: str = ""
    embeddings: str = ""
    trust: Trust = ""

    @property
    def scored(self) -> bool:
        return self.status == "ok" and self.q is not None

    def shown(self, **more: Any) -> BoardCell:
        """The cell as a board shows it; an estimated score is shown, an outdated one is not."""
        mark = self.fingerprint[:16]
        if not self.scored and self.status != "estimated":
            status = "failed" if self.status == "ok" else self.status
            return BoardCell(status=status, reason=self.reason or "no split has a score", fingerprint=mark)
        values = {SCORE.key: self.mean, STD.key: self.std, **more.pop("values", {})}
        intervals = more.pop("intervals", {})
        return BoardCell(values, intervals, self.status, self.reason, len(self.splits), mark, self.trust)


NO_RECORD = Cell(status="missing", reason="there is no record")


@dataclass(frozen=True)
class BoardMethod:
    """A method as it takes part in a board; ``values`` and ``facts`` are what was published of it.

    ``since`` is the day of its oldest record.
    """

    id: str
    version: int = 1
    baseline: bool = False
    dim: int | None = None
    title: str = ""
    since: str = ""
    values: Mapping[str, Number] = field(default_factory=dict)
    facts: Mapping[str, str | Number] = field(default_factory=dict)

    def row(self, rank: int | None, cells: Mapping[str, BoardCell], **more: Any) -> BoardRow:
        facts = dict(self.facts)
        return BoardRow(self.id, rank, self.version, self.title, self.baseline, cells=dict(cells), facts=facts, **more)


@dataclass(frozen=True)
class Cells:
    """Everything that a board is made of. ``cells`` are by (method, task); what is not in it has no record."""

    tasks: tuple[BoardTask, ...]
    methods: tuple[BoardMethod, ...]
    cells: Mapping[tuple[str, str], Cell]
    columns: tuple[Column, ...] = ()

    def cell(self, method: str, task: str) -> Cell:
        return self.cells.get((method, task), NO_RECORD)

    def scored(self, method: BoardMethod, task: BoardTask) -> bool:
        return self.cell(method.id, task.id).scored

    def complete(self, method: BoardMethod) -> bool:
        return all(self.scored(method, task) for task in self.tasks)

    def numbers(self, name: str) -> np.ndarray:
        """A field of all cells, (tasks, methods); ``None`` becomes NaN."""
        values = [[getattr(self.cell(m.id, t.id), name) for m in self.methods] for t in self.tasks]
        return np.array(values, dtype=np.float64).reshape(len(self.tasks), len(self.methods))

    def shown(self, method: BoardMethod) -> dict[str, BoardCell]:
        """The cells of a method as a board shows them, by task."""
        return {task.id: self.cell(method.id, task.id).shown() for task in self.tasks}

    def means(self) -> dict[str, float]:
        """By method, the mean of its scores; only of methods that have them all."""
        means = self.numbers("mean").mean(axis=0)
        return {m.id: float(mean) for m, mean in zip(self.methods, means, strict=True) if self.complete(m)}

    def ranked_by(self, label: str, values: Mapping[str, float], *, key: str = "value", higher: bool = True) -> Ranked:
        """The plainest ranking: by one number for each method; methods without one are shown and not ranked."""
        sign = -1 if higher else 1
        ordered_values = sorted((sign * value, method) for method, value in values.items())
        ranks = {method: 1 + sum(other < value for other, _ in ordered_values) for value, method in ordered_values}
        of_method = {method: {key: value} for method, value in values.items()}
        ordered = sorted(self.methods, key=lambda m: (ranks.get(m.id, len(ranks) + 1), m.id))
        rows = tuple(m.row(ranks.get(m.id), self.shown(m), values=of_method.get(m.id, {})) for m in ordered)
        direction: Literal["higher", "lower"] = "higher" if higher else "lower"
        return Ranked(columns=(Column(key, label, "", direction),), rows=rows, rule=f"{label}, {direction} is better")


def from_records(records: Iterable[Record], suite: Suite, stale: Callable[[Record], str | None] | None = None) -> Cells:
    """The cells of a suite. Records of other tasks or protocols are not its business.

    ``stale`` gives the reason why a record no longer counts, or ``None``. A record of another version of the task
    than the suite's never counts. Of several versions of a method the newest takes part that has a score on every task
    on which an older one has: until its successor is there, a version stays.
    """
    by_method: dict[str, list[Record]] = {}
    by_cell: dict[tuple[str, str], list[Record]] = {}
    reasons: dict[Key, str] = {}
    counted: dict[str, dict[int, set[str]]] = {}  # by method and version, the tasks with a score that counts
    for record in records:
        if record.task not in suite.tasks or record.protocol != suite.protocol:
            continue
        if record.key in reasons:
            raise UsageError(f"two records of {record.method!r} on {record.task!r}", where=f"suite {suite.id}")
        by_method.setdefault(record.method, []).append(record)
        by_cell.setdefault((record.method, record.task), []).append(record)
        reasons[record.key] = (stale(record) if stale else None) or ""
        if record.ok and not reasons[record.key] and record.task_version == suite.tasks[record.task]:
            counted.setdefault(record.method, {}).setdefault(record.method_version, set()).add(record.task)
    methods = {name: _method(name, of_method, counted.get(name, {})) for name, of_method in sorted(by_method.items())}
    cells: dict[tuple[str, str], Cell] = {}
    of_task: dict[str, list[Record]] = {task: [] for task in sorted(suite.tasks)}
    for (method, task), candidates in by_cell.items():
        versions = suite.tasks[task], methods[method].version
        record = _chosen(candidates, *versions)
        reason = reasons[record.key]
        if record.task_version != versions[0]:
            reason = f"scored on version {record.task_version} of the task, the suite has version {versions[0]}"
        elif record.method_version != versions[1]:
            reason = f"scored with version {record.method_version} of the method, there is a version {versions[1]}"
        cell = record_cell(record)
        if reason and record.status in ("ok", "failed"):
            # Where nothing was scored, the reason for that says more than that it is an old one.
            cell = replace(cell, status="stale", reason=reason)
        cells[method, task] = cell
        of_task[task].append(record)
    tasks = []
    for task, chosen in of_task.items():
        # Old records may well speak of another metric; they tell what a task is only where there are no others.
        current = [r for r in chosen if cells[r.method, task].status != "stale"] or chosen[:1]
        tasks.append(_task(task, suite.tasks[task], current))
    return Cells(tuple(tasks), tuple(methods.values()), cells)


def by_protocol(
    records: Iterable[Record], suite: Suite, stale: Callable[[Record], str | None] | None = None
) -> dict[str, Cells]:
    """The cells of a suite's tasks under each protocol by which they were scored, the suite's own first."""
    found: dict[str, list[Record]] = {suite.protocol: []}
    for record in records:
        if record.task in suite.tasks:
            found.setdefault(record.protocol, []).append(record)
    others = {name: replace(suite, protocol=name) for name in sorted(found.keys() - {suite.protocol})}
    return {name: from_records(found[name], one, stale) for name, one in {suite.protocol: suite, **others}.items()}


def _chosen(records: Iterable[Record], task: int, method: int) -> Record:
    """The record of these versions of task and method, or the newest of those that tell why there is none."""
    return max(
        records, key=lambda r: (r.task_version == task, r.method_version == method, r.method_version, r.task_version)
    )


def day_of(record: Record) -> str:
    """The day on which it was scored; "" where the provenance, which is free text, does not say."""
    day = str(record.provenance.get("time"))[:10]
    return day if DAY.fullmatch(day) else ""


def record_cell(record: Record) -> Cell:
    train, test = record.samples.get("train", 0), record.samples.get("test", 0)
    ratio = test / train if train and test else TEST_TO_TRAIN
    is_f1 = record.ok and record.metric == "f1"
    return Cell(
        q=record.q,
        mean=record.mean,
        std=record.std,
        splits=tuple(record.per_split),
        test_to_train=ratio,
        samples=train + test or np.inf,
        trained=of_f1({**record.metrics, "f1": record.per_split}, ratio) if is_f1 else UNCORRECTED,
        lower=record.lower,
        upper=record.upper,
        status=cast(Status, record.status),
        reason=f"{record.failure}: {record.reason}" if record.failure else record.reason,
        fingerprint=record.fingerprint,
        embeddings=str(record.inputs.get("embeddings") or ""),
        trust=trust_of(record),
    )


def trust_of(record: Record) -> Trust:
    """How a record came about. Only the run that writes main's registry knows of a ``commit`` (see ``ci.evaluate``)."""
    made = record.provenance
    if not (record.registered and made.get("commit")):
        return "self-reported"
    return "re-run" if made.get("made_from") == "code" else "scored"


def _task(task: str, version: int, records: Iterable[Record]) -> BoardTask:
    """Described by the records of the right version, which must agree; a task without records stays bare."""
    descriptions: dict[str, tuple[str, BoardTask]] = {}
    for record in records:
        if record.task_version == version:
            described = BoardTask(task, version, record.dataset, record.kind, record.metric, record.greater_is_better)
            descriptions.setdefault(described.describe(), (record.method, described))
    if len(descriptions) > 1:
        differing = "; ".join(f"{method}'s: {description}" for description, (method, _) in descriptions.items())
        hint = f"Remove the wrong one and run `neuco score --all --task {task}`"
        raise DataError(f"records of task {task!r} describe it differently", got=differing, hint=hint)
    return next((described for _, described in descriptions.values()), BoardTask(task, version))


def _method(method: str, records: Sequence[Record], scored: Mapping[int, set[str]]) -> BoardMethod:
    """``scored`` has, by version, the tasks on which the method has a score that counts."""
    whole = [new for new in scored if all(scored[old] <= scored[new] for old in scored if old < new)]
    version = max(whole, default=max(record.method_version for record in records))
    of_version = [record for record in records if record.method_version == version]
    dims = [record.dim for record in of_version if record.dim is not None]
    since = min((day for day in map(day_of, records) if day), default="")
    baseline = any(record.baseline for record in of_version)
    return BoardMethod(method, version, baseline, max(dims, default=None), since=since)


def fold(cells: Cells) -> tuple[Cells, dict[str, str]]:
    """The cells without copies, and by copy the method whose embeddings it has on every task on which it has any.

    Methods with the same embeddings count once: ranked, each copy would push others down and add to weights.
    A baseline is never the copy of what is none. Else the copy is the one that came later, by day: ids could be chosen.
    """
    seen: dict[tuple[object, ...], str] = {}
    copies = {}
    for method in sorted(cells.methods, key=lambda m: (not m.baseline, not m.since, m.since, m.id)):
        on_tasks = [cells.cell(method.id, task.id) for task in cells.tasks]
        mark = tuple((cell.embeddings, cell.splits) if cell.scored else () for cell in on_tasks)
        if any(mark) and all(embeddings for embeddings, _ in filter(None, mark)):
            first = seen.setdefault(mark, method.id)
            if first != method.id:
                copies[method.id] = first
    return replace(cells, methods=tuple(m for m in cells.methods if m.id not in copies)), copies


def pool(cells: Cells, coverage: str = "complete") -> Cells:
    """The methods that a coverage policy ranks, and the tasks on which."""
    if coverage not in COVERAGE:
        raise UsageError("no such coverage policy", expected=f"one of {', '.join(COVERAGE)}", got=coverage)
    if coverage == "complete":
        return replace(cells, methods=tuple(m for m in cells.methods if cells.complete(m)))
    if coverage == "common":
        ranked = tuple(m for m in cells.methods if any(cells.scored(m, t) for t in cells.tasks))
        common = tuple(t for t in cells.tasks if all(cells.scored(m, t) for m in ranked))
        return replace(cells, tasks=common, methods=ranked if common else ())
    # For tasks that come and go: one new task without scores takes nobody off the board. A task that a ranked method
    # lacks is not counted, as long as at least half of the tasks remain; after that, methods that lack most are out.
    tasks = [task for task in cells.tasks if any(cells.scored(method, task) for method in cells.methods)]
    half = (len(tasks) + 1) // 2
    counts = {method.id: sum(cells.scored(method, task) for task in tasks) for method in cells.methods}
    methods = [method for method in cells.methods if counts[method.id] >= max(half, 1)]
    while gaps := [(m, t) for m in methods for t in tasks if not cells.scored(m, t)]:
        if len(tasks) > half:
            tasks.remove(max(tasks, key=lambda task: (sum(t is task for _, t in gaps), task.id)))
        else:
            methods.remove(max(methods, key=lambda method: (sum(m is method for m, _ in gaps), method.id)))
    return replace(cells, tasks=tuple(tasks), methods=tuple(methods) if tasks else ())
