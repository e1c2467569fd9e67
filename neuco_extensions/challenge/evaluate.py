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

from neuco_core.errors import DataError, NeucoError, ScoreError
from neuco_core.protocol import Protocol, load_protocol
from neuco_core.records.fingerprint import Identity
from neuco_core.records.model import Record
from neuco_core.runs.plan import PlannedCell
from neuco_core.runs.run import make_record
from neuco_core.runs.sources import EmbeddingsFile
from neuco_core.runs.worker_steps import environment, result_of
from neuco_core.scoring.cell import score_cell
from neuco_core.scoring.scorer import Score
from neuco_core.specs import Method, Remote, Task
from neuco_core.tables.embeddings import Embeddings, make_embeddings, read_embeddings
from neuco_core.tables.labels import Labels
from neuco_core.text import counted, join_names
from neuco_extensions.challenge import memory
from neuco_extensions.challenge.outcome import Code, Outcome
from neuco_extensions.challenge.rules import Challenge, Limits

# No probe overflows below it. Were larger values allowed, one could be put on a single id to see whether the scoring
# fails: it would if the id had a label, and not if it were a decoy.
LARGEST_VALUE = 1e9


@dataclass(frozen=True)
class Evaluation:
    """The outcome, yet without feedback, and a record for each task if there is a score."""

    outcome: Outcome
    records: tuple[Record, ...] = ()


@dataclass(frozen=True)
class Hidden:
    """All that a phase keeps from its teams, ready for use."""

    phase: str
    protocol: Protocol
    tasks: Mapping[str, Task]
    labels: Mapping[str, Labels]
    ids: tuple[str, ...]
    used: tuple[str, ...]

    @property
    def decoys(self) -> frozenset[str]:
        return frozenset(self.ids) - set(self.used)


class PhaseError(NeucoError):
    """A phase that cannot be evaluated: the hosts' fault, so no submission fails of it."""


def hidden(challenge: Challenge, phase: str, seed: int) -> Hidden:
    """Read ids and labels of a phase and check that they fit."""
    rules, ids = challenge.phase(phase), challenge.ids(phase)
    known = challenge.used(phase)
    if strangers := known - set(ids):
        raise PhaseError(f"{counted(len(strangers), 'used id')} of phase {phase} not asked for", got=min(strangers))
    try:
        tasks = {name: challenge.task(name) for name in rules.tasks}
        labels = {name: _kept(task.labels(), known) for name, task in tasks.items()}
    except NeucoError as error:
        raise PhaseError(f"the labels of phase {phase} cannot be had: {error}") from error
    labelled = {sample for own in labels.values() for sample in own.ids}
    protocol = load_protocol(rules.protocol).with_(k=rules.k, seed=seed)
    return Hidden(phase, protocol, tasks, labels, ids, tuple(name for name in ids if name in labelled))


def _kept(labels: Labels, known: frozenset[str]) -> Labels:
    """The labels of the ids that are asked for in this phase."""
    from dataclasses import replace

    from neuco_core.tables.labels import content_hash

    rows = np.array([n for n, name in enumerate(labels.ids) if name in known], dtype=np.int64)
    if not rows.size:
        raise DataError("no id of the phase has a label", where=labels.task)
    ids = tuple(labels.ids[n] for n in rows)
    groups, split = (None if part is None else part[rows] for part in (labels.groups, labels.split))
    values = labels.values[rows]
    own = content_hash(ids, values, groups, split)
    return replace(labels, ids=ids, values=values, groups=groups, split=split, sha256=own)


def evaluate(
    challenge: Challenge, phase: Hidden, path: Path, sha256: str, name: str, *, threads: int | None = 1
) -> Evaluation:
    """Score a file on all tasks of a phase. ``name`` is what its records call it.

    Whatever the file is at fault for becomes an outcome; what is the hosts' fault is raised.
    """
    try:
        limits = challenge.limits
        with memory.bounded(memory.most(limits.bytes, len(phase.ids), limits.dim)):
            embeddings = check(path, phase.ids, limits)
    except FaultError as error:
        return Evaluation(Outcome(error.code, detail=str(error)))
    used = chosen(embeddings, phase.used)
    identity = Identity(phase.protocol)
    remote = Remote(path.absolute().as_uri(), sha256, path.stat().st_size)
    method = Method(id=name, files={challenge.dataset: remote})
    file = EmbeddingsFile(path, method, strict=True)
    records, undefined = [], 0
    for task in phase.tasks.values():
        labels = phase.labels[task.id]
        outcome = score_cell(used, labels, phase.protocol, metric=task.metric, threads=threads)
        if isinstance(outcome.error, NeucoError | ArithmeticError | ValueError):
            return Evaluation(Outcome("failed", detail=f"{task.id}: {outcome.error}"))
        undefined += failed_probes(outcome.require())  # any other error is the hosts'
        own = Method(id=name, files={task.dataset: remote})
        cell = PlannedCell(own, task, "new", "", identity.inputs(own, task), file=file)
        result = msgspec.structs.replace(result_of(outcome), provenance=environment())
        records.append(make_record(cell, result, "challenge"))
    allowed = challenge.phase(phase.phase).failed_probes
    if undefined > allowed:
        return Evaluation(Outcome("failed", detail=f"{undefined} probes failed, {allowed} are tolerated"))
    return Evaluation(Outcome("scored", scores={record.task: _q(record) for record in records}), tuple(records))


def failed_probes(found: Score) -> int:
    """Splits without a score; where the protocol leaves out test parts without variance, these are nobody's fault."""
    undefined = sum(map(math.isnan, found.per_split))
    flat = found.splits.get("no_variance", 0) + found.splits.get("one_class", 0)
    return max(0, undefined - (flat if found.protocol.flat == "leave-out" else 0))


def _q(record: Record) -> float:
    if record.q is None:
        raise ScoreError("a record without Q", where=record.task)
    return record.q


class FaultError(DataError):
    """What is wrong with a file; ``code`` is what its team is told."""

    def __init__(self, code: Code, what: str, **parts: object) -> None:
        super().__init__(what, **parts)  # type: ignore[arg-type]
        self.code = code


def check(path: Path, ids: tuple[str, ...], limits: Limits) -> Embeddings:
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
    own = set(embeddings.ids)
    missing, unknown = [name for name in ids if name not in own], sorted(own - set(ids))
    if missing or unknown:
        both = {"are missing": missing, "are not asked for": unknown}
        said = [f"{len(names)} {word}, such as {join_names(names, 2)}" for word, names in both.items() if names]
        raise FaultError("ids", "not the ids of the phase: " + "; ".join(said), expected=f"{len(ids)} ids")
    return embeddings


def chosen(embeddings: Embeddings, ids: tuple[str, ...]) -> Embeddings:
    """Some rows, in this order."""
    place = {name: n for n, name in enumerate(embeddings.ids)}
    return make_embeddings(ids, embeddings.values[[place[name] for name in ids]])
