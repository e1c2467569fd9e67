"""Run scores again and compare, and tell why a cell is in the state that it is in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuco_core.results.ledger import read_head
from neuco_core.results.plan import STATES, Planner, stale_records
from neuco_core.results.record import DEFAULT_PROTOCOL, Key, Record, Scalar, record_path
from neuco_core.results.steps import Engine, Group, Limits, Result, Step
from neuco_core.scoring.protocol import Protocol
from neuco_core.specs import Method, Task

# Largest difference of a split's score that counts as the same. On one machine there is none at all; elsewhere other
# processors and library versions round float32 differently, and training multiplies that.
TOLERANCE = 1e-4
# Verdict → whether the record is confirmed (or claims nothing).
VERDICTS = {"same": True, "close": True, "no score": True, "differs": False, "stale": False, "failed": False}


@dataclass(frozen=True)
class Check:
    """What became of a record when it was run again; ``difference`` is the largest one of any split."""

    record: Record
    verdict: str
    reason: str = ""
    difference: float | None = None

    @property
    def confirmed(self) -> bool:
        return VERDICTS[self.verdict]

    def to_json(self) -> dict[str, Any]:
        method, task, protocol = self.record.key
        return {
            "method": method,
            "task": task,
            "protocol": protocol,
            "verdict": self.verdict,
            "reason": self.reason,
            "difference": self.difference,
        }


def verify_records(
    records: Sequence[Record], engine: Engine, limits: Limits, tolerance: float = TOLERANCE
) -> Iterator[Check]:
    """Score every record's cell anew; a record without a score, or whose inputs changed, is not run."""
    stale = stale_records(records)
    open_ones: dict[Key, Record] = {}
    for record in records:
        if not record.ok:
            yield Check(record, "no score", f"{record.status}: {record.reason}")
        elif record.key in stale:
            yield Check(record, "stale", stale[record.key])
        else:
            open_ones[record.key] = record
    for step, result in engine.run(_groups(list(open_ones.values())), limits):
        yield compare(open_ones[step.method, step.task, step.protocol], result, tolerance)


def _groups(records: Sequence[Record]) -> list[Group]:
    steps: dict[tuple[str, str], list[Step]] = {}
    for record in records:
        place = record.method, record.dataset
        steps.setdefault(place, []).append(Step(*place, record.task, record.protocol))
    return [Group(*place, tuple(found)) for place, found in steps.items()]


def compare(record: Record, result: Result, tolerance: float = TOLERANCE) -> Check:
    """A record beside a new result of its cell."""
    if result["status"] != "ok":
        return Check(record, "failed", result.get("reason", ""))
    splits = result["per_split"]
    if len(splits) != len(record.per_split):
        return Check(record, "differs", f"{len(splits)} splits instead of {len(record.per_split)}")
    pairs = list(zip(record.per_split, splits, strict=True))
    if any((old is None) != (new is None) for old, new in pairs):
        return Check(record, "differs", "other splits are undefined")
    largest = max(abs(old - new) for old, new in pairs if old is not None and new is not None)
    # Only what the inputs' hashes say differs can explain different numbers.
    others = [name for name in ("labels", "embeddings") if result[name] != record.inputs[name]]
    reason = f"other {' and '.join(others)} than recorded" if others else ""
    if largest > tolerance:
        return Check(record, "differs", reason, largest)
    return Check(record, "same" if not largest and not others else "close", reason, largest)


@dataclass(frozen=True)
class Explanation:
    """A cell's state, the reason, its inputs as recorded and as they are now, and the next command."""

    method: str
    task: str
    protocol: str
    state: str
    meaning: str
    reason: str
    record: str
    inputs: tuple[tuple[str, Scalar, Scalar], ...]
    command: str

    def to_json(self) -> dict[str, Any]:
        inputs = {name: {"recorded": then, "now": now} for name, then, now in self.inputs}
        return {**self.__dict__, "inputs": inputs}


def explain_cell(method: Method, task: Task, protocol: Protocol, registry: Path) -> Explanation:
    """Why a cell is cached, stale, failed, skipped or not there; nothing is computed."""
    path = record_path(registry, method.id, task.id, protocol.name)
    heads = {(method.id, path.name): read_head(str(path))} if path.exists() else {}
    cell = Planner(protocol, heads).cell(method, task)
    then = cell.head.inputs if cell.head else {}
    names = sorted(then.keys() | cell.inputs.keys())
    words = ["neuco score --all", "--retry"] if cell.state == "failed" else ["neuco score --all"]
    words += [f"--method {method.id} --task {task.id}"]
    words += [f"--protocol {protocol.name}"] if protocol.name != DEFAULT_PROTOCOL else []
    command = " ".join(words) if cell.to_run or cell.state == "failed" else ""
    return Explanation(
        method.id,
        task.id,
        protocol.name,
        cell.state,
        STATES[cell.state],
        cell.reason,
        str(path) if path.exists() else "",
        tuple((name, then.get(name), cell.inputs.get(name)) for name in names),
        command if cell.state != "cached" else f"neuco verify {path}",
    )
