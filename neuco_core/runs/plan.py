"""What is to be done: every (method, task) cell with its state and the reason for it. Nothing is computed yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neuco_core.errors import NeucoError, UnknownIdError
from neuco_core.protocol import Protocol
from neuco_core.records.fingerprint import Identity, contradictions, differences
from neuco_core.records.model import CLAIMS, Key, Record, Scalar
from neuco_core.records.store import Head, read_heads, record_name
from neuco_core.runs.files import EmbeddingsFile, unregistered
from neuco_core.specs import Method, Task

# State → what it means. The first four are run.
STATES = {
    "new": "not scored yet",
    "stale": "its record no longer holds: an input changed since, or the file was edited",
    "retry": "failed before, and is tried again",
    "fresh": "scored before, and run again because of --fresh",
    "cached": "scored, and nothing changed since",
    "failed": "failed before with the same inputs; --retry tries again",
    "skipped": "cannot be scored here, with the reason",
    "not-applicable": "the method has nothing for this task's dataset",
}
TO_RUN = frozenset(("new", "stale", "retry", "fresh"))


@dataclass(frozen=True)
class PlannedCell:
    """One method on one task, and what is to be done about it. ``inputs`` lack the contents' hashes."""

    method: Method
    task: Task
    state: str
    reason: str
    inputs: Mapping[str, Scalar]
    head: Head | None = None
    file: EmbeddingsFile | None = None

    @property
    def to_run(self) -> bool:
        return self.state in TO_RUN

    def to_json(self) -> dict[str, Any]:
        return {"method": self.method.id, "task": self.task.id, "state": self.state, "reason": self.reason}


@dataclass(frozen=True)
class Plan:
    """All cells in the order of methods, datasets and tasks."""

    protocol: Protocol
    cells: tuple[PlannedCell, ...]

    @property
    def counts(self) -> dict[str, int]:
        found = Counter(cell.state for cell in self.cells)
        return {state: found[state] for state in STATES if found[state]}

    @property
    def work(self) -> list[PlannedCell]:
        return [cell for cell in self.cells if cell.to_run]

    def to_json(self) -> dict[str, Any]:
        cells = [cell.to_json() for cell in self.cells]
        return {"protocol": self.protocol.name, "counts": self.counts, "cells": cells}


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
    planner = Planner(protocol, read_heads(registry), retry=retry, fresh=fresh)
    ordered = sorted(tasks, key=lambda task: (task.dataset, task.id))
    cells = [planner.cell(method, task) for method in methods for task in ordered]
    planner = Planner(protocol, planner.heads if save else {}, retry=retry, fresh=fresh)
    cells += [planner.file_cell(file, task) for file in files for task in ordered]
    return Plan(protocol, tuple(cells))


class Planner:
    """What the cells of a plan share."""

    def __init__(
        self,
        protocol: Protocol,
        heads: Mapping[tuple[str, str], Head],
        *,
        retry: bool = False,
        fresh: bool = False,
    ) -> None:
        self.protocol, self.heads, self.retry, self.fresh = protocol, heads, retry, fresh
        self.identity = Identity(protocol)
        self._why_not: dict[tuple[str, str], str] = {}

    def file_cell(self, file: EmbeddingsFile, task: Task) -> PlannedCell:
        """A file on a task: one that shares no id with the labels has nothing for it."""
        cell = replace(self.cell(file.method, task), file=file)
        missing = self.identity.labels(task).missing
        if missing:  # whether the file has something for these labels cannot be known
            return replace(cell, state="skipped", reason=missing)
        why_not = file.left_out.get(task.id, "")
        return replace(cell, state="not-applicable", reason=why_not) if why_not else cell

    def cell(self, method: Method, task: Task) -> PlannedCell:
        head = self.heads.get((method.id, record_name(task.id, self.protocol.name)))
        inputs = self.identity.inputs(method, task)
        why_not = self._not_applicable(method, task)
        if why_not:
            inputs["embeddings_from"] = None
            return PlannedCell(method, task, "not-applicable", why_not, inputs, head)
        missing = self.identity.labels(task).missing or self.identity.embeddings(method, task.dataset).missing
        changes = _changes(head, inputs, self.identity.claims(method, task))
        state, reason = self._state(head, changes, missing)
        return PlannedCell(method, task, state, reason, inputs, head)

    def _state(self, head: Head | None, changes: Sequence[str], missing: str) -> tuple[str, str]:
        if head and head.status == "ok" and not changes and not self.fresh:
            unsure = "what is not on this machine could not be compared: " + missing
            return "cached", unsure if missing else ""
        if missing:
            return "skipped", missing
        if head is None or head.status in ("skipped", "not-applicable"):
            return "new", ""
        if changes:
            return "stale", "; ".join(changes)
        if self.fresh:
            return "fresh", ""
        return "retry" if self.retry else "failed", f"{head.failure}: {head.reason}"

    def _not_applicable(self, method: Method, task: Task) -> str:
        place = method.id, task.dataset
        if place not in self._why_not:
            from neuco_core.runs.sources import MethodSource

            try:
                self._why_not[place] = MethodSource(method).why_not(task, None)
            except NeucoError:
                self._why_not[place] = ""  # e.g. an unknown dataset: the cell will fail with the reason
        return self._why_not[place]


def _changes(head: Head | None, inputs: Mapping[str, Scalar], claims: Mapping[str, Scalar]) -> list[str]:
    if head is None:
        return []
    if head.problem:
        return [head.problem]
    # The usual case, decided without looking at single fields.
    same = len(head.inputs) == len(inputs) + 2 and inputs.items() <= head.inputs.items()
    changes = [] if same else differences(head.inputs, inputs)
    return changes or (contradictions(head.claims, claims) if head.status == "ok" else [])


class Present:
    """What is registered at this moment, to compare records with."""

    def __init__(self) -> None:
        self._identities: dict[str, Identity] = {}

    def why_stale(self, record: Record) -> str:
        """Why a record is no longer true: an input changed, its ids are gone, or it contradicts what is registered.

        What cannot be compared on this machine, such as a dataset that is not here, does not make a record stale.
        """
        from neuco_core.plugins.catalog import catalog, load_method, load_protocol, load_task

        try:
            if record.protocol not in self._identities:
                self._identities[record.protocol] = Identity(load_protocol(record.protocol))
            identity = self._identities[record.protocol]
            if not record.registered and catalog().plugins.find("method", record.method) is not None:
                return f"made from a file, but {record.method!r} is a registered method now"
            method = load_method(record.method) if record.registered else unregistered(record.method, record.dataset)
            task = load_task(record.task)
            changes = differences(record.inputs, identity.inputs(method, task))
        except NeucoError as error:
            gone = isinstance(error, UnknownIdError) and f"{error.noun} {error.name!r} is not registered"
            return gone or str(error)
        if record.ok and not changes:
            claimed = {name: getattr(record, name) for name in CLAIMS}
            changes = contradictions(claimed, identity.claims(method, task))
        return "; ".join(changes)


def stale_records(records: Iterable[Record]) -> dict[Key, str]:
    """The records that are no longer true, each with the reason."""
    present = Present()
    reasons = {record.key: present.why_stale(record) for record in records}
    return {key: reason for key, reason in reasons.items() if reason}
