"""Run the cells of a plan on an engine, save each record the moment it is made, and say what became of each cell."""

from __future__ import annotations

import logging
import math
import secrets
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from msgspec.structs import replace

from neuco_core.errors import DataError, UsageError
from neuco_core.plugins.catalog import load_protocol
from neuco_core.records.fingerprint import Identity, claims
from neuco_core.records.model import NO_SCORE, Record, fingerprint, summary
from neuco_core.records.store import exclusive, find_record, records_file, unwritable, write_records
from neuco_core.runs.engine import EngineLike, StepLimits
from neuco_core.runs.messages import BATCH, Embed, Failed, Group, Result, ScoreCell, Scored, Skipped
from neuco_core.runs.plan import Plan, PlannedCell
from neuco_core.scoring.quality import middle
from neuco_core.specs import Spec, Task, exact
from neuco_core.text import one_line

CHANGED = "its code or data changed while it was scored; the next run will score it again"
OTHER_EMBEDDINGS = (
    "the embeddings of %s on %s are not those of the records made from the same code and data: those were made on "
    "another machine, or are wrong; `neuco verify` tells"
)
MEMORY_SHARE = 0.8  # of the machine, for all workers together, unless a limit is given
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
log = logging.getLogger(__name__)


# A folder for what the workers of one run share: labels, loaded once, and embeddings that are made afresh.
shared_folder = partial(TemporaryDirectory[str], prefix="neuco-run-", ignore_cleanup_errors=True)


def run_plan(
    plan: Plan,
    registry: Path,
    engine: EngineLike,
    limits: StepLimits,
    *,
    threads: int = 1,
    shared: str = "",
    save: bool = False,
    batch_size: int = BATCH,
) -> Generator[Record, None, None]:
    """Run what the plan says is to be run, and yield each record after it was written.

    Cells that are skipped or not applicable get a record that says so. A file that no plugin registers is recorded
    only with ``save``. Ending the iteration early ends the workers; what was saved stays, and the next plan goes on
    from there.
    """
    if load_protocol(plan.protocol.name) != plan.protocol:
        hint = "Use Protocol.with_"
        raise UsageError("the protocol's fields do not match its name", got=plan.protocol.name, hint=hint)
    cells = {(cell.method.label, cell.task.label): cell for cell in plan.work}
    recorded = [cell for cell in plan.cells if save or cell.file is None]
    warned: set[tuple[str, str]] = set()
    with exclusive(registry) if recorded else nullcontext():
        for cell in recorded:
            # A score from elsewhere is not lost because the data is not here.
            scored = cell.record is not None and cell.record.ok
            if cell.state == "not-applicable" or (cell.state == "skipped" and not scored):
                save_record(make_record(cell, None, engine.name), registry)
        for step, result in engine.run(groups_of(plan.work, threads, shared, plan.fresh, batch_size), limits):
            if not isinstance(step, ScoreCell):
                continue
            cell = cells[step.embed.method, step.task]
            if isinstance(result, Scored):
                if Identity(plan.protocol).inputs(cell.method, cell.task) != cell.inputs:
                    result = Failed("data", CHANGED, result.provenance)
                elif cell.known and result.embeddings not in cell.known:
                    method_and_dataset = step.embed.method, step.embed.dataset
                    if method_and_dataset not in warned:
                        log.warning(OTHER_EMBEDDINGS, *method_and_dataset)
                        warned.add(method_and_dataset)
            record = make_record(cell, result, engine.name)
            # What this machine lacks says nothing about the method, and the next run shall try again.
            machines = isinstance(result, Skipped) and result.machine
            if machines or (cell.file is not None and not save):
                yield record
            else:
                yield save_record(record, registry)


def groups_of(
    cells: Iterable[PlannedCell], threads: int = 1, shared: str = "", fresh: bool = False, batch_size: int = BATCH
) -> list[Group]:
    """Cells that share embeddings, in the order of the plan."""
    steps: dict[Embed, list[ScoreCell]] = {}
    for cell in cells:
        protocol = str(cell.inputs["protocol"])
        embed = Embed(
            cell.method.label,
            cell.task.dataset,
            known=cell.known,
            shared=shared,
            threads=threads,
            fresh=fresh,
            batch_size=batch_size,
        )
        if cell.file is not None:
            sha256 = str(cell.method.files[cell.task.dataset].sha256)
            dim = load_protocol(protocol).embedding_dim
            embed = replace(embed, file=str(cell.file.path), sha256=sha256, strict=cell.file.strict, dim=dim)
        steps.setdefault(embed, []).append(ScoreCell(embed, cell.task.label, protocol))
    return [Group(tuple(cells_of_embed), embed) for embed, cells_of_embed in steps.items()]


def default_limits(
    jobs: int, seconds: float | None = None, memory: int | None = None, embed_seconds: float | None = None
) -> StepLimits:
    """The limits that were given; ``seconds`` holds for every step, unless embeddings have a limit of their own.

    Where no memory is given, each worker has its share of the machine, or of its control group if that has less.
    """
    if memory is None:
        whole = psutil.virtual_memory().total
        with suppress(OSError, ValueError):  # no such group, or "max"
            whole = min(whole, int(CGROUP_LIMIT.read_text(encoding="ascii")))
        memory = int(whole * MEMORY_SHARE / max(jobs, 1))
    return StepLimits(seconds or StepLimits.seconds, embed_seconds or seconds or StepLimits.embed_seconds, memory)


def save_record(record: Record, registry: Path) -> Record:
    """Write a record, unless the very same is there; a result that no record can hold is a failure of its cell."""
    try:
        there = find_record(registry, record.key)
        # A score that was confirmed changes no file; but what it took to encode is kept once it was measured.
        same = there is not None and replace(there, provenance={}) == replace(record, provenance={})
        if there is not None and same and (_measured(there) or not _measured(record)):
            return record
        write_records(registry, [record])
    except DataError as error:
        if not record.ok:
            raise
        reason = one_line(f"its result cannot be recorded: {error.what}")
        lost = replace(record, status="failed", failure="method", reason=reason, **NO_SCORE)
        write_records(registry, [lost])
        return lost
    except OSError as error:
        raise unwritable(records_file(registry, record.key[0]), error) from error
    return record


def _measured(record: Record) -> bool:
    encoding = record.provenance.get("encoding")
    return isinstance(encoding, dict) and "seconds" in encoding


def make_record(cell: PlannedCell, result: Result | None, engine: str) -> Record:
    """The record of a cell's result; without one it says why the plan does not run the cell."""
    inputs = {**cell.inputs, "labels": None, "embeddings": None}
    # Of a metric that is not registered nothing is known; the cell has failed for this very reason.
    claimed: dict[str, Any] = {"greater_is_better": True, **claims(cell.method, cell.task)}
    fields: dict[str, Any]
    if isinstance(result, Scored):
        # Where something came from may be unknown; then nobody can say later that it is unchanged.
        unknown = [name for name, value in inputs.items() if name.endswith("_from") and not value]
        inputs |= {"labels": result.labels, "embeddings": result.embeddings}
        inputs |= {name: secrets.token_hex(32) for name in unknown}
        mean, std, q = summary(result.per_split, claimed["greater_is_better"]) or (None, None, None)
        fields = {"status": "ok", "mean": mean, "std": std, "q": q, "dim": result.dim}
        fields |= {name: getattr(result, name) for name in NO_SCORE.keys() - fields.keys()}
    elif result is None:
        fields = {"status": cell.state, "reason": one_line(cell.reason), "dim": cell.method.dim}
    else:
        # An engine or a plugin may have put anything into the reason.
        fields = {"status": "skipped", "reason": one_line(getattr(result, "reason", "")), "dim": cell.method.dim}
        if isinstance(result, Failed):
            fields |= {"status": "failed", "failure": result.kind}
    return Record(
        method=cell.method.id,
        method_version=cell.method.version,
        task=cell.task.id,
        task_version=cell.task.version,
        dataset=cell.task.dataset,
        kind=cell.task.kind,
        metric=cell.task.metric,
        protocol=str(inputs["protocol"]),
        fingerprint=fingerprint(inputs),
        inputs=inputs,
        **claimed,
        registered=cell.file is None,
        provenance={
            **(result.provenance if result else {}),
            "engine": engine,
            "origin": {"method": _origin(cell.method), "task": _origin(cell.task)},
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        },
        **fields,
    )


def _origin(spec: Spec) -> str:
    """The distribution and its version, or the plugin's name: no folders of this machine."""
    origin = spec.origin
    if origin is None:
        return ""
    return f"{origin.distribution} {origin.version}" if origin.distribution else origin.plugin


@dataclass(frozen=True)
class PlannedOutcome:
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


def outcomes(plan: Plan, made: Iterable[Record], registry: Path) -> list[PlannedOutcome]:
    """Every cell of a plan, in its order. A record that is served from the registry is read strictly."""
    new = {record.key: record for record in made}
    found = []
    for cell in plan.cells:
        key = cell.method.label, cell.task.label, plan.protocol.name
        record = new.get(key)
        if record is None and cell.state in ("cached", "failed"):
            record = find_record(registry, key)
        found.append(PlannedOutcome(cell, record))
    return found


def baseline_check(task: Task, record: Record) -> dict[str, Any] | None:
    """The task's expected score, if it is of the record's protocol; whether it is met is said of its method alone."""
    expected = task.baseline
    if expected is None or expected.protocol != record.protocol:
        return None
    met = None
    if expected.method == record.method and record.mean is not None and math.isfinite(record.mean):
        met = abs(record.mean - expected.score) <= expected.tolerance
    return {
        "method": expected.method,
        "score": expected.score,
        "tolerance": expected.tolerance,
        "protocol": expected.protocol,
        "met": met,
    }


def verdict(results: Sequence[PlannedOutcome], asked: Collection[str] = ()) -> str:
    """Why the whole is a failure, or "": a task asked for by its id that has no score, or no score at all."""
    scored = {outcome.cell.task.label for outcome in results if outcome.status == "ok"}
    tasks = {outcome.cell.task.label: outcome.cell.task.id for outcome in results}
    missed = sorted(label for label in tasks.keys() - scored if {tasks[label], exact(label)} & set(asked))
    if missed:
        return f"{len(missed)} of the tasks asked for could not be scored: {', '.join(missed)}"
    return "" if scored else "nothing could be scored"
