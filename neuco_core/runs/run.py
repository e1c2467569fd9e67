"""Run the cells of a plan on an engine, and save each record the moment it is made."""

from __future__ import annotations

import logging
import secrets
import tempfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace as replace_fields

from neuco_core.errors import DataError, UsageError
from neuco_core.plugins.catalog import load_protocol
from neuco_core.records.fingerprint import Identity, direction
from neuco_core.records.model import Record, fingerprint, summary
from neuco_core.records.store import exclusive, find_record, records_file, unwritable, write_records
from neuco_core.runs.memory import can_measure
from neuco_core.runs.plan import Plan, PlannedCell
from neuco_core.runs.steps import EngineLike, Group, Result, Step, StepLimits, failure, machine_memory
from neuco_core.specs import Spec
from neuco_core.text import one_line

CHANGED = "its code or data changed while it was scored; the next run will score it again"
OTHER_EMBEDDINGS = (
    "the embeddings of %s on %s are not those of the records made from the same code and data: those were made on "
    "another machine, or are wrong; `neuco verify` tells"
)
MEMORY_SHARE = 0.8  # of the machine, for all workers together, unless a limit is given
log = logging.getLogger(__name__)


@contextmanager
def shared_folder() -> Iterator[str]:
    """A folder for what the workers of one run share: labels, loaded once, and embeddings that are made afresh."""
    with tempfile.TemporaryDirectory(prefix="neuco-run-", ignore_cleanup_errors=True) as folder:
        yield folder


def run_plan(
    plan: Plan,
    registry: Path,
    engine: EngineLike,
    limits: StepLimits,
    *,
    threads: int = 1,
    shared: str = "",
    save: bool = False,
    batch_size: int = Step.batch_size,
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
    kept = [cell for cell in plan.cells if save or cell.file is None]
    told: set[tuple[str, str]] = set()
    with exclusive(registry) if kept else nullcontext():
        for cell in kept:
            if _says_why_not(cell):
                save_record(make_record(cell, {"status": cell.state, "reason": cell.reason}, engine.name), registry)
        for step, result in engine.run(groups_of(plan.work, threads, shared, plan.fresh, batch_size), limits):
            cell = cells[step.method, step.task]
            if result["status"] == "ok" and Identity(plan.protocol).inputs(cell.method, cell.task) != cell.inputs:
                result = failure("data", CHANGED)
            place = step.method, step.dataset
            if result["status"] == "ok" and cell.known and result["embeddings"] not in cell.known and place not in told:
                log.warning(OTHER_EMBEDDINGS, *place)
                told.add(place)
            record = make_record(cell, result, engine.name)
            # What this machine lacks says nothing about the method, and the next run shall try again.
            kept_back = result.get("machine") or (cell.file is not None and not save)
            yield record if kept_back else save_record(record, registry)


def _says_why_not(cell: PlannedCell) -> bool:
    """Whether the plan's reason is to be recorded. A score from elsewhere is not lost because the data is not here."""
    scored = cell.record is not None and cell.record.ok
    return cell.state == "not-applicable" or (cell.state == "skipped" and not scored)


def groups_of(
    cells: Iterable[PlannedCell],
    threads: int = 1,
    shared: str = "",
    fresh: bool = False,
    batch_size: int = Step.batch_size,
) -> list[Group]:
    """Cells that share embeddings, in the order of the plan."""
    steps: dict[tuple[str, str], list[Step]] = {}
    for cell in cells:
        place, file = (cell.method.label, cell.task.dataset), cell.file
        step = Step(*place, cell.task.label, str(cell.inputs["protocol"]), known=cell.known)
        step = replace(step, shared=shared, threads=threads, fresh=fresh, batch_size=batch_size)
        if file is not None:
            sha256 = str(cell.method.files[cell.task.dataset].sha256)
            step = replace(step, file=str(file.path), sha256=sha256, strict=file.strict)
        steps.setdefault(place, []).append(step)
    return [Group(*place, tuple(own)) for place, own in steps.items()]


def default_limits(
    jobs: int, seconds: float | None = None, memory: int | None = None, embed_seconds: float | None = None
) -> StepLimits:
    """The limits that were given; ``seconds`` holds for every step, unless embeddings have a limit of their own.

    Where no memory is given, each worker has its share of the machine.
    """
    if memory is not None and not can_measure():
        log.warning("the memory limit is not kept by workers on this machine: it has no /proc to tell what they hold")
    whole = machine_memory()
    if memory is None and whole is not None:
        memory = int(whole * MEMORY_SHARE / max(jobs, 1))
    return StepLimits(seconds or StepLimits.seconds, embed_seconds or seconds or StepLimits.embed_seconds, memory)


def save_record(record: Record, registry: Path) -> Record:
    """Write a record, unless the very same is there; a result that no record can hold is a failure of its cell."""
    try:
        if _same(find_record(registry, record.key), record):
            return record
        write_records(registry, [record])
    except DataError as error:
        if not record.ok:
            raise
        reason = f"its result cannot be recorded: {error.what}"
        lost = replace_fields(record, **_outcome(failure("method", reason), record.greater_is_better))
        write_records(registry, [lost])
        return lost
    except OSError as error:
        raise unwritable(records_file(registry, record.key[0]), error) from error
    return record


def _same(there: Record | None, record: Record) -> bool:
    """Whether the record there says the same but for its provenance: a score that was confirmed changes no file.

    What it took to encode is kept once it was measured.
    """
    if there is None:
        return False
    if _measured(record) and not _measured(there):
        return False
    return replace_fields(there, provenance={}) == replace_fields(record, provenance={})


def _measured(record: Record) -> bool:
    encoding = record.provenance.get("encoding")
    return isinstance(encoding, dict) and "seconds" in encoding


def make_record(cell: PlannedCell, result: Result, engine: str) -> Record:
    """The record of a cell's result."""
    inputs = {**cell.inputs, "labels": result.get("labels"), "embeddings": result.get("embeddings")}
    if result["status"] == "ok":
        # Where something came from may be unknown; then nobody can say later that it is unchanged.
        unknown = [name for name, value in inputs.items() if name.endswith("_from") and not value]
        inputs |= {name: secrets.token_hex(32) for name in unknown}
    # Of a metric that is not registered nothing is known; the cell has failed for this very reason.
    claims: dict[str, Any] = {"greater_is_better": True, **direction(cell.task.metric)}
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
        **claims,
        baseline=cell.method.baseline,
        registered=cell.file is None,
        dim=result.get("dim") or cell.method.dim,
        provenance=_provenance(cell, result, engine),
        **_outcome(result, claims["greater_is_better"]),
    )


def _outcome(result: Result, greater_is_better: bool) -> dict[str, Any]:
    per_split = tuple(result.get("per_split", ()))
    mean, std, q = summary(per_split, greater_is_better) or (None, None, None)
    return {
        "status": result["status"],
        "reason": one_line(result.get("reason", "")),  # an engine or a plugin may have put anything there
        "failure": result.get("failure"),
        "per_split": per_split,
        "mean": mean,
        "std": std,
        "q": q,
        "metrics": {name: tuple(values) for name, values in result.get("metrics", {}).items()},
        "samples": result.get("samples", {}),
        "splits": result.get("splits", {}),
    }


def _provenance(cell: PlannedCell, result: Result, engine: str) -> dict[str, Any]:
    return {
        **result.get("provenance", {}),
        "engine": engine,
        "origin": {"method": _origin(cell.method), "task": _origin(cell.task)},
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _origin(spec: Spec) -> str:
    """The distribution and its version, or the plugin's name: no folders of this machine."""
    origin = spec.origin
    if origin is None:
        return ""
    return f"{origin.distribution} {origin.version}" if origin.distribution else origin.plugin
