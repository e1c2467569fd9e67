"""What is to be done: every (method, task) cell with its state and the reason for it. Nothing is computed yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neuco_core.encode.run import why_not
from neuco_core.errors import NeucoError, NotApplicableError
from neuco_core.plugins.catalog import require_kind
from neuco_core.protocol import Protocol
from neuco_core.records.fingerprint import CellInputs
from neuco_core.records.model import Key, Record, Scalar
from neuco_core.records.store import read_method
from neuco_core.runs.files import EmbeddingsFile
from neuco_core.specs import Method, Task

# State → what it means. The first four are run.
STATES = {
    "new": "not scored yet",
    "stale": "its record no longer holds: an input changed since",
    "retry": "failed before, and is tried again",
    "fresh": "scored before, and run again because of --fresh",
    "cached": "scored, and no change found since",
    "failed": "failed before with the same inputs; --retry tries again",
    "skipped": "cannot be scored here, with the reason",
    "not-applicable": "the method has nothing for this task's dataset, or the probe is not for its kind",
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
        return {
            "method": self.method.label,
            "task": self.task.label,
            "protocol": self.inputs["protocol"],
            "state": self.state,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Plan:
    """All cells in the order of methods, datasets and tasks; ``fresh``: embeddings are made again, too."""

    protocol: Protocol
    cells: tuple[PlannedCell, ...]
    fresh: bool = False


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
    records = {key: record for label in labels for key, record in read_method(registry, label).items()}
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
        self.inputs = CellInputs(protocol)
        self._known: dict[Scalar, set[str]] = {}
        for record in records.values():
            if record.ok:
                self._known.setdefault(record.inputs["embeddings_from"], set()).add(str(record.inputs["embeddings"]))

    def file_cell(self, file: EmbeddingsFile, task: Task) -> PlannedCell:
        """A file on a task: one that shares no id with the labels has nothing for it."""
        cell = replace(self.cell(file.method, task), file=file)
        missing = self.inputs.labels_from(task).missing
        if missing:  # whether the file has something for these labels cannot be known
            return replace(cell, state="skipped", reason=missing)
        nothing = file.left_out.get(task.label, "")
        return replace(cell, state="not-applicable", reason=nothing) if nothing else cell

    def cell(self, method: Method, task: Task) -> PlannedCell:
        record = self.records.get((method.label, task.label, self.protocol.name))
        inputs = self.inputs.of(method, task)
        try:
            require_kind(self.protocol, task.kind)
        except NotApplicableError as error:
            return PlannedCell(method, task, "not-applicable", str(error), inputs, record)
        except NeucoError:  # there is no such probe: the cell will fail with this reason
            pass
        nothing = why_not(method, task.dataset)
        if nothing:
            inputs["embeddings_from"] = None
            return PlannedCell(method, task, "not-applicable", nothing, inputs, record)
        missing = self.inputs.labels_from(task).missing or self.inputs.embeddings_from(method, task.dataset).missing
        changes = self.inputs.changes(record, inputs, method, task) if record else []
        known = tuple(sorted(self._known.get(inputs["embeddings_from"], ())))
        state, reason = "new", ""
        if record and record.ok and not changes and not self.fresh:
            state, reason = "cached", f"could not be compared here: {missing}" if missing else ""
        elif missing:
            state, reason = "skipped", missing
        elif record and record.status not in ("skipped", "not-applicable"):
            if changes:
                state, reason = "stale", "; ".join(changes)
            elif self.fresh:
                state = "fresh"
            else:
                # A package that was lacking may have been installed since, and to see that it was not costs little.
                again = self.retry or record.failure == "dependency"
                state, reason = "retry" if again else "failed", f"{record.failure}: {record.reason}"
        return PlannedCell(method, task, state, reason, inputs, record, known=known)
