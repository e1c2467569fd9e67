"""What is to be done: every (method, task) cell with its state and the reason for it. Nothing is computed yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neuco_core.errors import NeucoError, UnknownIdError
from neuco_core.plugins.catalog import catalog, load_method, load_protocol, load_task
from neuco_core.protocol import Protocol
from neuco_core.records.fingerprint import Identity
from neuco_core.records.model import Key, Record, Scalar
from neuco_core.records.store import read_method
from neuco_core.runs.sources import EmbeddingsFile, why_not
from neuco_core.specs import Method, Remote, Task

# State → what it means. The first four are run.
STATES = {
    "new": "not scored yet",
    "stale": "its record no longer holds: an input changed since",
    "retry": "failed before, and is tried again",
    "fresh": "scored before, and run again because of --fresh",
    "cached": "scored, and no change found since",
    "failed": "failed before with the same inputs; --retry tries again",
    "skipped": "cannot be scored here, with the reason",
    "not-applicable": "the method has nothing for this task's dataset",
}
TO_RUN = frozenset(("new", "stale", "retry", "fresh"))


@dataclass(frozen=True)
class PlannedCell:
    """One method on one task, and what is to be done about it. ``inputs`` lack the contents' hashes.

    ``known`` are the hashes of embeddings in records made from the same code and data, under any protocol.
    """

    method: Method
    task: Task
    state: str
    reason: str
    inputs: Mapping[str, Scalar]
    record: Record | None = None
    file: EmbeddingsFile | None = None
    known: tuple[str, ...] = ()

    @property
    def to_run(self) -> bool:
        return self.state in TO_RUN

    def to_json(self) -> dict[str, Any]:
        place = {"method": self.method.label, "task": self.task.label, "protocol": self.inputs["protocol"]}
        return {**place, "state": self.state, "reason": self.reason}


@dataclass(frozen=True)
class Plan:
    """All cells in the order of methods, datasets and tasks; ``fresh``: embeddings are made again, too."""

    protocol: Protocol
    cells: tuple[PlannedCell, ...]
    fresh: bool = False

    @property
    def counts(self) -> dict[str, int]:
        found = Counter(cell.state for cell in self.cells)
        return {state: found[state] for state in STATES if found[state]}

    @property
    def work(self) -> list[PlannedCell]:
        return [cell for cell in self.cells if cell.to_run]


def make_plan(
    methods: Sequence[Method],
    tasks: Sequence[Task],
    protocol: Protocol,
    registry: Path,
    *,
    retry: bool = False,
    fresh: bool = False,
    files: Sequence[EmbeddingsFile] = (),
    save: bool = False,
) -> Plan:
    """Compare what is registered with the records. Of ``files`` there are records only if they are saved."""
    labels = [method.label for method in methods] + [file.method.label for file in files if save]
    records = {record.key: record for label in labels for record in read_method(registry, label)}
    planner = Planner(protocol, records, retry=retry, fresh=fresh)
    ordered = sorted(tasks, key=lambda task: (task.dataset, task.label))
    cells = [planner.cell(method, task) for method in methods for task in ordered]
    planner = Planner(protocol, records if save else {}, retry=retry, fresh=fresh)
    cells += [planner.file_cell(file, task) for file in files for task in ordered]
    return Plan(protocol, tuple(cells), fresh)


class Planner:
    """What the cells of a plan share."""

    def __init__(
        self, protocol: Protocol, records: Mapping[Key, Record], *, retry: bool = False, fresh: bool = False
    ) -> None:
        self.protocol, self.records, self.retry, self.fresh = protocol, records, retry, fresh
        self.identity = Identity(protocol)
        self._known: dict[Scalar, set[str]] = {}
        for record in records.values():
            if record.ok:
                self._known.setdefault(record.inputs["embeddings_from"], set()).add(str(record.inputs["embeddings"]))

    def file_cell(self, file: EmbeddingsFile, task: Task) -> PlannedCell:
        """A file on a task: one that shares no id with the labels has nothing for it."""
        cell = replace(self.cell(file.method, task), file=file)
        missing = self.identity.labels(task).missing
        if missing:  # whether the file has something for these labels cannot be known
            return replace(cell, state="skipped", reason=missing)
        nothing = file.left_out.get(task.label, "")
        return replace(cell, state="not-applicable", reason=nothing) if nothing else cell

    def cell(self, method: Method, task: Task) -> PlannedCell:
        record = self.records.get((method.label, task.label, self.protocol.name))
        inputs = self.identity.inputs(method, task)
        nothing = _nothing_to_score(method, task)
        if nothing:
            inputs["embeddings_from"] = None
            return PlannedCell(method, task, "not-applicable", nothing, inputs, record)
        missing = self.identity.labels(task).missing or self.identity.embeddings(method, task.dataset).missing
        changes = self.identity.changes(record, inputs, method, task) if record else []
        state, reason = self._state(record, changes, missing)
        known = tuple(sorted(self._known.get(inputs["embeddings_from"], ())))
        return PlannedCell(method, task, state, reason, inputs, record, known=known)

    def _state(self, record: Record | None, changes: Sequence[str], missing: str) -> tuple[str, str]:
        if record and record.ok and not changes and not self.fresh:
            return "cached", f"could not be compared here: {missing}" if missing else ""
        if missing:
            return "skipped", missing
        if record is None or record.status in ("skipped", "not-applicable"):
            return "new", ""
        if changes:
            return "stale", "; ".join(changes)
        if self.fresh:
            return "fresh", ""
        return "retry" if self.retry else "failed", f"{record.failure}: {record.reason}"


def _nothing_to_score(method: Method, task: Task) -> str:
    """Why a method has nothing for a task's dataset, or ""."""
    try:
        return why_not(method, task.dataset)
    except NeucoError:
        return ""  # e.g. an unknown dataset: the cell will fail with the reason


class Present:
    """What is registered at this moment, to compare records with."""

    def __init__(self) -> None:
        self._identities: dict[str, Identity] = {}

    def why_stale(self, record: Record) -> str:
        """Why a record is no longer true: an input changed, its ids are gone, or it contradicts what is registered.

        A score of a method that has nothing for the task's dataset cannot be true either. What cannot be compared on
        this machine, such as a dataset that is not here, does not make a record stale.
        """
        try:
            if record.protocol not in self._identities:
                other = next(iter(self._identities.values()), None)
                self._identities[record.protocol] = Identity(load_protocol(record.protocol), other)
            identity = self._identities[record.protocol]
            taken = None if record.registered else catalog().plugins.find_alike("method", record.method)
            if taken is not None:
                return f"made from a file, but {taken.id!r} is a registered method now"
            method, task = self._method(record), load_task(f"{record.task}@{record.task_version}")
            nothing = _nothing_to_score(method, task) if record.ok else ""
            if nothing:
                return f"there is nothing to score: {nothing}"
            now = identity.inputs(method, task)
            if record.method_version < method.version:
                # Its successor took the place of its code, so this is all that can be said of its embeddings.
                now |= {"method_version": record.method_version, "embeddings_from": None}
            return "; ".join(identity.changes(record, now, method, task))
        except UnknownIdError as error:
            return f"{error.noun} {error.name!r} is not registered"
        except NeucoError as error:
            return str(error)

    def why_not_compared(self, record: Record) -> str:
        """What this machine lacks to compare a record that is not stale; "" if all of it was compared."""
        identity, task = self._identities[record.protocol], load_task(f"{record.task}@{record.task_version}")
        traces = [identity.labels(task)]
        if record.registered and not self.is_replaced(record):
            traces.append(identity.embeddings(self._method(record), record.dataset))
        return next((trace.missing for trace in traces if trace.missing), "")

    def is_replaced(self, record: Record) -> bool:
        """Whether a later version of the method has taken the place of the record's, which cannot be run again."""
        return record.registered and self._method(record).version > record.method_version

    def _method(self, record: Record) -> Method:
        """The method in the record's version, or the newest one if a later version has replaced that."""
        if not record.registered:
            # Made from a file, which may be gone; what it held is in the record's inputs.
            return Method(id=record.method, files={record.dataset: Remote("file:///unknown")})
        try:
            return load_method(f"{record.method}@{record.method_version}")
        except UnknownIdError:
            newest = load_method(record.method)
            if record.method_version < newest.version:
                return newest
            raise


def stale_records(records: Iterable[Record], present: Present | None = None) -> dict[Key, str]:
    """The records that are no longer true, each with the reason."""
    present = present or Present()
    reasons = {record.key: present.why_stale(record) for record in records}
    return {key: reason for key, reason in reasons.items() if reason}
