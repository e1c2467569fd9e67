"""Run scores again and compare."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from neuco_core.errors import NeucoError, UsageError
from neuco_core.plugins.catalog import load_method, load_metric, load_protocol, load_task
from neuco_core.records.fingerprint import Present
from neuco_core.records.model import FIELDS, Key, Record
from neuco_core.runs.engine import EngineLike, StepLimits
from neuco_core.runs.messages import ScoreCell
from neuco_core.runs.plan import Planner
from neuco_core.runs.run import groups_of, make_record
from neuco_core.specs import exact

# Largest difference of a split's score that counts as the same. On one machine there is none at all; elsewhere other
# processors and library versions round float32 differently, and training multiplies that.
TOLERANCE = 1e-4
# How much further scores of a method with a tolerance may move, for each unit of it. Embeddings moved at random by 1e-4
# and 1e-3 of their spread moved a split's R² by up to 3.6 times that with the linear probe and up to 32 times with
# ridge, which chooses its penalty again; an F1, by whole samples that change sides.
AMPLIFIED = 50.0
MOST_APART = 0.05  # whatever is declared: a record must not be confirmed by the mere width of a tolerance
# Verdict → whether the record is confirmed; None: nothing was run, or what came out proves nothing.
VERDICTS = {
    "same": True,
    "close": True,
    "depends on the machine": None,
    "not checked": None,
    "differs": False,
    "stale": False,
    "failed": False,
}
# Numbers are compared with a tolerance, and what follows from them (the strict reader saw to it) not again; inputs
# are compared before anything is run.
_APART = ("per_split", "metrics", "mean", "std", "q", "inputs", "fingerprint", "provenance")
EXACT = tuple(name for name in FIELDS if name not in _APART)
Splits = Sequence[float | None]


@dataclass(frozen=True)
class Verified:
    """What became of a record when it was run again; ``difference`` is the largest one of any split."""

    record: Record
    verdict: str
    reason: str = ""
    difference: float | None = None

    @property
    def confirmed(self) -> bool | None:
        return VERDICTS[self.verdict]

    def to_json(self) -> dict[str, Any]:
        cell = dict(zip(("method", "task", "protocol"), self.record.key, strict=True))
        return {**cell, "verdict": self.verdict, "reason": self.reason, "difference": self.difference}


def verify_records(
    records: Iterable[Record],
    engine: EngineLike,
    limits: StepLimits,
    tolerance: float = TOLERANCE,
    *,
    fresh: bool = True,
    shared: str = "",
) -> Iterator[Verified]:
    """Score every record's cell anew, and compare it with the record that this gives.

    Embeddings are made afresh, once for all records of a method and a dataset if the workers have a ``shared`` folder;
    without ``fresh`` they may come from the cache. A record without a score, or that no longer holds, is not run.
    """
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise UsageError("bad tolerance", expected="a finite number of at least 0", got=tolerance)
    present = Present()
    waiting: dict[Key, Record] = {}
    for record in records:
        if not record.ok:
            yield Verified(record, "not checked", f"{record.status}: {record.reason}")
        elif reason := present.why_stale(record):
            yield Verified(record, "stale", reason)
        elif not record.registered:
            yield Verified(record, "not checked", "its file of embeddings is registered by no plugin")
        elif present.is_replaced(record):
            reason = f"version {record.method_version} of {record.method!r} is no longer registered"
            yield Verified(record, "not checked", reason)
        else:
            waiting[record.key] = record
    cells = {
        (method, task, protocol): Planner(load_protocol(protocol), {}).cell(
            load_method(exact(method)), load_task(exact(task))
        )
        for method, task, protocol in waiting
    }
    for step, result in engine.run(groups_of(cells.values(), shared=shared, fresh=fresh), limits):
        if not isinstance(step, ScoreCell):
            continue
        key = step.embed.method, step.task, step.protocol
        new = make_record(cells[key], result, engine.name)
        record, method = waiting[key], cells[key].method
        allowed = max(tolerance, follows_from(method.tolerance, record))
        check = compare(record, new, allowed, encoded=not method.files, spread=method.machine_spread)
        # The code may have been edited while it ran: then it is not the record's code that was run.
        reason = Present().why_stale(record) if check.confirmed else ""
        yield replace(check, verdict="stale", reason=reason) if reason else check


def follows_from(tolerance: float, record: Record) -> float:
    """How far the tolerance of a method may move the score of a split; in a classification also one sample's side."""
    if tolerance == 0:
        return 0.0
    sides = 2 / max(record.samples.get("test", 0), 1) if record.kind != "regression" else 0.0
    return min(AMPLIFIED * tolerance + sides, MOST_APART)


def compare(
    record: Record,
    new: Record,
    tolerance: float = TOLERANCE,
    *,
    encoded: bool = True,
    spread: float = 0.0,
) -> Verified:
    """A record beside the one that a new run gives: every field but ``provenance``.

    Embeddings that are ``encoded`` and not read from a file may differ in the last digits on another machine, and so
    may scores; labels and counts may not. A method that is trained anew may declare a ``spread``: means that are no
    farther apart depend on the machine, which is neither a confirmation nor a contradiction.
    """
    if not new.ok:
        return Verified(record, "failed", new.reason)
    wrong = [text for name in EXACT for text in _changes(name, getattr(record, name), getattr(new, name))]
    others = [
        f"other {name} than recorded" for name in ("labels", "embeddings") if record.inputs[name] != new.inputs[name]
    ]
    loose = [text for text in others if encoded and "embeddings" in text]
    wrong += [text for text in others if text not in loose]
    names = sorted(record.metrics.keys() ^ new.metrics.keys())
    wrong += [f"metrics.{n} is {'not recorded' if n in new.metrics else 'recorded, and there is none'}" for n in names]
    difference: float | None = None
    apart: list[str] = []
    columns = {"per_split": (record.metric, record.per_split, new.per_split)}
    for name in sorted(record.metrics.keys() & new.metrics.keys()):
        columns[f"metrics.{name}"] = name, record.metrics[name], new.metrics[name]
    for name, (metric, old, now) in columns.items():
        if len(old) != len(now) or [value is None for value in old] != [value is None for value in now]:
            differs = f"{len(now)} splits, recorded are {len(old)}"
            if len(old) == len(now):
                differs = "other splits are undefined"
            (wrong if name == "per_split" else apart).append(f"{name}: {differs}")
            continue
        gaps = [abs(a - b) for a, b in zip(old, now, strict=True) if a is not None and b is not None]
        largest = max(gaps, default=0.0)
        if name == "per_split":
            difference = largest
        if largest > tolerance * _scale(metric, now):
            apart.append(f"{name}: {largest:.2g} apart")
    reason = "; ".join(wrong + apart + loose)
    same = not reason and not difference and record.metrics == new.metrics
    verdict = "differs" if wrong or apart else "same" if same else "close"
    # Only where the embeddings came out differently: the same ones give the same scores on any machine.
    moved = abs((record.mean or 0.0) - (new.mean or 0.0))
    if apart and not wrong and loose and moved <= spread * _scale(record.metric, new.per_split):
        verdict, reason = "depends on the machine", f"means no farther apart than the declared {spread:g}; {reason}"
    return Verified(record, verdict, reason, difference)


def _changes(name: str, old: object, new: object) -> list[str]:
    """What differs in a field, in words; a field with fields of its own is told by those."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        names = sorted(old.keys() | new.keys())
        return [text for key in names for text in _changes(f"{name}.{key}", old.get(key), new.get(key))]
    return [] if old == new else [f"{name} is {new!r}, recorded is {old!r}"]


def _scale(metric: str, values: Splits) -> float:
    """What the tolerance is a part of: 1 for R², F1 and the like; an error in the labels' unit is its own measure.

    Without this, an error of a millionth could be recorded as none at all, and be confirmed.
    """
    try:
        bounded = load_metric(metric).upper is not None
    except NeucoError:
        bounded = True  # the stricter one, for what is small
    # The median: one huge split must not make room for the others.
    return 1.0 if bounded else median([abs(value) for value in values if value is not None] or [0.0])
