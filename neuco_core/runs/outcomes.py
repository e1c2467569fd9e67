"""What a run came to: each cell of its plan with the record that it has now."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuco_core.records.model import Record
from neuco_core.records.store import find_record
from neuco_core.runs.plan import Plan, PlannedCell
from neuco_core.scoring.quality import middle
from neuco_core.specs import Task, exact


@dataclass(frozen=True)
class Outcome:
    """A planned cell and its record: just made, or read from the registry. There is none for what was not run."""

    cell: PlannedCell
    record: Record | None

    @property
    def status(self) -> str:
        return self.record.status if self.record else self.cell.state

    @property
    def reason(self) -> str:
        if self.record is None or self.record.ok:
            return "" if self.record else self.cell.reason
        return f"{self.record.failure}: {self.record.reason}" if self.record.failure else self.record.reason

    def to_json(self) -> dict[str, Any]:
        record = self.record
        return {
            **self.cell.to_json(),
            "status": self.status,
            "reason": self.reason,
            "record": record.to_json() if record else None,
            "median": middle(record.per_split) if record and record.ok else None,
            "baseline": baseline_check(self.cell.task, record) if record and record.ok else None,
        }


def outcomes(plan: Plan, made: Iterable[Record], registry: Path) -> list[Outcome]:
    """Every cell of a plan, in its order. A record that is served from the registry is read strictly."""
    new = {record.key: record for record in made}
    return [Outcome(cell, _record(cell, plan.protocol.name, new, registry)) for cell in plan.cells]


def _record(cell: PlannedCell, protocol: str, new: dict[Any, Record], registry: Path) -> Record | None:
    key = cell.method.label, cell.task.label, protocol
    if key in new or cell.state not in ("cached", "failed"):
        return new.get(key)
    return find_record(registry, key)


def baseline_check(task: Task, record: Record) -> dict[str, Any] | None:
    """The task's expected score, if it is of the record's protocol; whether it is met is said of its method alone."""
    expected = task.baseline
    if expected is None or expected.protocol != record.protocol:
        return None
    known = expected.method == record.method and record.mean is not None and math.isfinite(record.mean)
    return {
        "method": expected.method,
        "score": expected.score,
        "tolerance": expected.tolerance,
        "protocol": expected.protocol,
        "met": abs((record.mean or 0.0) - expected.score) <= expected.tolerance if known else None,
    }


def verdict(results: Sequence[Outcome], asked: Collection[str] = ()) -> str:
    """Why the whole is a failure, or "": a task asked for by its id that has no score, or no score at all."""
    scored = {outcome.cell.task.label for outcome in results if outcome.status == "ok"}
    tasks = {outcome.cell.task.label: outcome.cell.task.id for outcome in results}
    missed = sorted(label for label in tasks.keys() - scored if {tasks[label], exact(label)} & set(asked))
    if missed:
        return f"{len(missed)} of the tasks asked for could not be scored: {', '.join(missed)}"
    return "" if scored else "nothing could be scored"
