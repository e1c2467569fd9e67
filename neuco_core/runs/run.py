"""Run the cells of a plan on an engine, and save each record the moment it is made."""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import shutil
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from msgspec.structs import replace

from neuco_core.encode.encoding import BATCH
from neuco_core.env import layers
from neuco_core.errors import DataError, UsageError
from neuco_core.fetch.links import vouched_by_user
from neuco_core.files import hashed
from neuco_core.plugins.catalog import load_protocol
from neuco_core.records.fingerprint import CellInputs, claims
from neuco_core.records.model import NO_SCORE, Facts, Record
from neuco_core.records.store import exclusive, records_file, unwritable, write_records
from neuco_core.runs.engine import EngineLike, StepLimits
from neuco_core.runs.messages import Embed, Failed, Group, Result, ScoreCell, Scored, Skipped
from neuco_core.runs.plan import Plan, PlannedCell
from neuco_core.scoring.quality import summarize
from neuco_core.text import one_line

CHANGED = "its code or data changed while it was scored; the next run will score it again"
OTHER_EMBEDDINGS = (
    "the embeddings of %s on %s are not those of the records made from the same code and data: those were made on "
    "another machine, or are wrong; run `neuco verify` to see which"
)
SHARED = "neuco-run-"
NEW_SECONDS = 60.0  # a folder this new may not be locked yet
log = logging.getLogger(__name__)


@contextmanager
def shared_folder() -> Iterator[str]:
    """A folder for what a run's workers share, locked as long as the process lives; it clears those of killed runs."""
    # The folders of runs that were killed are removed: those that can be locked. What holds one is another run.
    for left in Path(gettempdir()).glob(f"{SHARED}*"):
        with suppress(OSError), ExitStack() as stack:
            handle = os.open(left, os.O_RDONLY | os.O_NOFOLLOW)
            stack.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.time() - os.fstat(handle).st_mtime > NEW_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
    with TemporaryDirectory(prefix=SHARED, ignore_cleanup_errors=True) as folder:
        handle = os.open(folder, os.O_RDONLY)
        try:
            with suppress(OSError):  # not every file system has locks; where it has none, nothing is removed either
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield folder
        finally:
            os.close(handle)


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

    Its cells may be of several protocols. Those that are skipped or not applicable get a record that says so. A
    file that no plugin registers is recorded only with ``save``. Ending the iteration early ends the workers; what
    was saved stays, and the next plan goes on from there.
    """
    if load_protocol(plan.protocol.name) != plan.protocol:
        hint = "Use Protocol.with_"
        raise UsageError("the protocol's fields do not match its name", got=plan.protocol.name, hint=hint)
    registry = layers(registry)[0]
    work = [cell for cell in plan.cells if cell.to_run]
    cells = {(cell.method.label, cell.task.label, str(cell.inputs["protocol"])): cell for cell in work}
    recorded = [cell for cell in plan.cells if save or cell.file is None]
    warned: set[tuple[str, str]] = set()
    with exclusive(registry) if recorded else nullcontext():
        for cell in recorded:
            # A score from elsewhere is not lost because the data is not here.
            scored = cell.record is not None and cell.record.ok
            if cell.state == "not-applicable" or (cell.state == "skipped" and not scored):
                save_record(make_record(cell, None, engine.name), registry, cell.record)
        for step, result in engine.run(groups_of(work, threads, shared, plan.fresh, batch_size), limits):
            if not isinstance(step, ScoreCell):
                continue
            cell = cells[step.embed.method, step.task, step.protocol]
            scored = cell.record is not None and cell.record.ok
            if isinstance(result, Scored):
                if CellInputs(load_protocol(step.protocol)).of(cell.method, cell.task) != cell.inputs:
                    result = Failed("data", CHANGED, result.provenance)
                elif cell.known and result.embeddings not in cell.known:
                    method_and_dataset = step.embed.method, step.embed.dataset
                    if method_and_dataset not in warned:
                        log.warning(OTHER_EMBEDDINGS, *method_and_dataset)
                        warned.add(method_and_dataset)
            record = make_record(cell, result, engine.name)
            # What this machine lacks says nothing about the method, and the next run shall try again.
            machines = isinstance(result, Skipped) and result.machine
            # Nor does a damaged file take the place of a score whose inputs have not changed.
            lost = isinstance(result, Failed) and result.kind in ("data", "dependency") and cell.state == "fresh"
            if machines or (lost and scored) or (cell.file is not None and not save):
                yield record
            else:
                yield save_record(record, registry, cell.record)


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


def save_record(record: Record, registry: Path, before: Record | None = None) -> Record:
    """Write a record, unless it says what the one ``before`` does; a result that no record can hold is a failure."""
    # A score that was confirmed changes no file; but what it took to encode is kept once it was measured.
    same = before is not None and replace(before, provenance={}) == replace(record, provenance={})
    if before is not None and same and (_measured(before) or not _measured(record)):
        return record
    try:
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
    claimed: dict[str, Any] = {"greater_is_better": True, **claims(cell.method, str(inputs["metric"]))}
    fields: dict[str, Any]
    if isinstance(result, Scored):
        # Where something came from may be unknown; then nobody can say later that it is unchanged.
        unknown = [name for name, value in inputs.items() if name.endswith("_from") and not value]
        inputs |= {"labels": result.labels, "embeddings": result.embeddings}
        inputs |= {name: secrets.token_hex(32) for name in unknown}
        mean, std, q = summarize(result.per_split, claimed["greater_is_better"]) or (None, None, None)
        fields = {"status": "ok", "mean": mean, "std": std, "q": q, "dim": result.dim}
        fields |= {name: getattr(result, name) for name in NO_SCORE.keys() - fields.keys()}
    elif result is None:
        fields = {"status": cell.state, "reason": one_line(cell.reason), "dim": cell.method.dim}
    else:
        # An engine or a plugin may have put anything into the reason.
        fields = {"status": "skipped", "reason": one_line(getattr(result, "reason", "")), "dim": cell.method.dim}
        if isinstance(result, Failed):
            fields |= {"status": "failed", "failure": result.kind}
    origins: Facts = {"method": "", "task": ""}  # no folders of this machine
    for noun, origin in (("method", cell.method.origin), ("task", cell.task.origin)):
        if origin is not None:
            origins[noun] = f"{origin.distribution} {origin.version}" if origin.distribution else origin.plugin
    return Record(
        method=cell.method.id,
        method_version=cell.method.version,
        task=cell.task.id,
        task_version=cell.task.version,
        dataset=cell.task.dataset,
        kind=cell.task.kind,
        metric=str(inputs["metric"]),
        protocol=str(inputs["protocol"]),
        fingerprint=hashed(inputs),
        inputs=inputs,
        **claimed,
        registered=cell.file is None,
        provenance={
            **(result.provenance if result else {}),
            "engine": engine,
            "origin": origins,
            **({"labels": vouched} if (vouched := vouched_by_user(cell.task)) else {}),
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        },
        **fields,
    )
