"""The evaluation of one submission: the same numbers for the same file, whoever runs it, and whenever.

A submission is read strictly and must have exactly the ids that were asked for. Only rows with a label in some task of
the phase are used, in the order of the rules' ids: decoys, and the order of the rows in the file, change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from neuco_core.errors import DataError, NeucoError
from neuco_core.fetch.cache import hash_file
from neuco_core.protocol import Protocol, load_protocol
from neuco_core.records.fingerprint import CellInputs
from neuco_core.records.model import Record
from neuco_core.runs.files import EmbeddingsFile
from neuco_core.runs.plan import PlannedCell
from neuco_core.runs.run import make_record
from neuco_core.runs.worker import environment, result_of
from neuco_core.scoring.cell import score_cell
from neuco_core.scoring.scorer import Score
from neuco_core.specs import Method, Remote, Task
from neuco_core.tables.embeddings import Embeddings, make_embeddings, read_embeddings
from neuco_core.tables.labels import Labels
from neuco_core.text import counted, join_names
from neuco_extensions.challenge.journal import Code, Verdict
from neuco_extensions.challenge.rules import Challenge, ChallengeLimits

# No probe overflows below it. Were larger values allowed, one could be put on a single id to see whether the scoring
# fails: it would if the id had a label, and not if it were a decoy.
LARGEST_VALUE = 1e9


@dataclass(frozen=True)
class Hidden:
    """All that a phase keeps from its teams, ready for use."""

    phase: str
    protocol: Protocol
    tasks: Mapping[str, Task]
    labels: Mapping[str, Labels]
    ids: tuple[str, ...]
    used: tuple[str, ...]


class PhaseError(NeucoError):
    """A phase that cannot be evaluated: the hosts' fault, so no submission fails of it."""


def hidden(challenge: Challenge, phase: str, seed: int) -> Hidden:
    """Read ids and labels of a phase and check that they fit."""
    rules, ids = challenge.phase(phase), challenge.ids(phase)
    used_ids = challenge.used(phase)
    if strangers := used_ids - set(ids):
        raise PhaseError(f"{counted(len(strangers), 'used id')} of phase {phase} not asked for", got=min(strangers))
    try:
        tasks = {name: challenge.task(name) for name in rules.tasks}
        labels = {name: task.labels().only(used_ids) for name, task in tasks.items()}
    except NeucoError as error:
        raise PhaseError(f"the labels of phase {phase} cannot be had: {error}") from error
    for name, table in labels.items():
        if not table.ids:
            raise PhaseError("no id of the phase has a label", where=f"{phase}, {name}")
    labelled = {sample for table in labels.values() for sample in table.ids}
    protocol = load_protocol(rules.protocol).with_(k=rules.k, seed=seed)
    return Hidden(phase, protocol, tasks, labels, ids, tuple(name for name in ids if name in labelled))


def evaluate(challenge: Challenge, phase: Hidden, path: Path, name: str, *, threads: int | None = 1) -> Verdict:
    """Score a file on all tasks of a phase, yet without feedback. ``name`` is what its records call it.

    Whatever the file is at fault for becomes a verdict; what is the hosts' fault is raised.
    """
    try:
        embeddings = check(path, phase.ids, challenge.limits)
    except FaultError as error:
        return Verdict(error.code, detail=str(error))
    rows = {sample: row for row, sample in enumerate(embeddings.ids)}
    used = make_embeddings(phase.used, embeddings.values[[rows[sample] for sample in phase.used]])
    inputs = CellInputs(phase.protocol)
    remote = Remote(path.absolute().as_uri(), hash_file(path), path.stat().st_size)
    file = EmbeddingsFile(path, Method(id=name, files={challenge.dataset: remote}), strict=True)
    records: list[Record] = []
    scores: dict[str, float] = {}
    undefined = 0
    for task in phase.tasks.values():
        labels = phase.labels[task.id]
        outcome = score_cell(used, labels, phase.protocol, metric=task.metric, threads=threads)
        if outcome.score is None:
            return Verdict("failed", detail=f"{task.id}: {outcome.reason}")
        undefined += failed_probes(outcome.score)
        method = Method(id=name, files={task.dataset: remote})
        cell = PlannedCell(method, task, "new", "", inputs.of(method, task), file=file)
        result = msgspec.structs.replace(result_of(outcome), provenance=environment())
        record = make_record(cell, result, "challenge")
        if record.q is None:
            return Verdict("failed", detail=f"{task.id}: no split has a score")
        records.append(record)
        scores[task.id] = record.q
    allowed = challenge.phase(phase.phase).failed_probes
    if undefined > allowed:
        return Verdict("failed", detail=f"{undefined} probes failed, {allowed} are tolerated")
    return Verdict("scored", scores=scores, records=tuple(records))


def failed_probes(score: Score) -> int:
    """Splits without a score; where the protocol leaves out test parts without variance, these are nobody's fault."""
    undefined = sum(map(math.isnan, score.per_split))
    if score.protocol.flat == "leave-out":
        undefined -= score.splits.get("no_variance", 0) + score.splits.get("one_class", 0)
    return max(0, undefined)


class FaultError(DataError):
    """What is wrong with a file; ``code`` is what its team is told."""

    def __init__(self, code: Code, what: str, **parts: object) -> None:
        super().__init__(what, **parts)  # type: ignore[arg-type]
        self.code = code


def check(path: Path, ids: tuple[str, ...], limits: ChallengeLimits) -> Embeddings:
    """The embeddings of a file, or a ``FaultError``. It needs nothing that is hidden, so that teams can run it, too."""
    if path.stat().st_size > limits.bytes:
        raise FaultError("size", "the file is too large", expected=f"at most {limits.bytes} bytes")
    try:
        embeddings = read_embeddings(path, strict=True, dim=limits.dim)
    except (NeucoError, OSError, MemoryError, ValueError) as error:
        if isinstance(error, MemoryError) or isinstance(error.__cause__, MemoryError):
            raise FaultError("failed", "reading it takes too much memory") from error
        raise FaultError("format", f"not embeddings: {error}") from error
    largest = float(np.abs(embeddings.values).max())
    if largest > LARGEST_VALUE:
        expected = f"at most {LARGEST_VALUE:g}"
        raise FaultError("format", "a value is too large", expected=expected, got=f"{largest:g}")
    submitted = set(embeddings.ids)
    missing, unknown = [name for name in ids if name not in submitted], sorted(submitted - set(ids))
    problems = []
    if missing:
        problems.append(f"{len(missing)} are missing, such as {join_names(missing, 2)}")
    if unknown:
        problems.append(f"{len(unknown)} are not asked for, such as {join_names(unknown, 2)}")
    if problems:
        raise FaultError("ids", "not the ids of the phase: " + "; ".join(problems), expected=f"{len(ids)} ids")
    return embeddings
