"""The score record: what it holds, as one strict type. The schema file in the registry is made from it.

A record is a line of canonical JSON. ``digest`` is the sha256 of all fields but itself and ``provenance``: an edited
number is noticed, and the same score made elsewhere is the same text apart from those two.

A record may grow: a new field needs a default. A change of meaning raises ``SCHEMA`` (see ``store.parse_record``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from neuco_core.files import canonical, hashed
from neuco_core.scoring.quality import summarize
from neuco_core.specs import versioned_id
from neuco_core.text import clean, shorten

SCHEMA: Literal[2] = 2
LARGEST_INT = 2**63 - 1  # what other languages can read, too
SLACK = 1e-6  # metrics are computed in float32: an F1 of 1 may come out a little above

Status: TypeAlias = Literal["ok", "failed", "skipped", "not-applicable"]
Failure: TypeAlias = Literal["data", "dependency", "method", "timeout", "memory", "crash"]
Whole: TypeAlias = Annotated[int, Meta(ge=-LARGEST_INT, le=LARGEST_INT)]
Scalar: TypeAlias = str | Whole | float | bool | None
Key: TypeAlias = tuple[str, str, str]
Id: TypeAlias = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9_-]{0,63}$")]
Sha256: TypeAlias = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Version: TypeAlias = Annotated[int, Meta(ge=1, le=LARGEST_INT)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=LARGEST_INT)]
Scores: TypeAlias = tuple[float | None, ...]
# What a record says of its making: objects at most three deep, so that no reader chokes on them.
Inner: TypeAlias = dict[str, Scalar | list[Scalar]]
Facts: TypeAlias = dict[str, Scalar | list[Scalar] | Inner]
Provenance: TypeAlias = dict[str, Scalar | list[Scalar] | Facts]

LABEL = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}(@[1-9][0-9]{0,18})?")  # of a method or a task: x, or x@2
# Fields whose value must be repeated in the inputs.
SHARED = ("method", "method_version", "task", "task_version", "dataset", "kind", "metric", "protocol")
HASHES = ("labels", "labels_from", "embeddings", "embeddings_from")
COMPONENTS = ("metric_code", "probe_code", "splitter", "splitter_code", "scorer", "strict_code")
INPUTS = frozenset((*SHARED, *HASHES, *COMPONENTS))
BY_PLACE = "positions_from"  # of records whose splits go by it
ONCE_EACH = ("region", "region-group")  # splitters with a split for each part of the samples, as many as there are


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The outcome of one method on one task under one protocol; ``None`` in ``per_split`` is an undefined split.

    ``inputs`` is all that can change the numbers, and ``fingerprint`` its hash; ``splits`` counts splits that are out
    of the ordinary; ``settings`` has what the probe's own search chose, one value per split; ``registered`` is false
    for a file of embeddings that no plugin registers; ``provenance`` tells what made the record, and how long it took.
    """

    method: Id
    method_version: Version
    task: Id
    task_version: Version
    dataset: Id
    kind: Annotated[str, Meta(pattern="^(regression|classification|multilabel)$")]
    metric: Id
    protocol: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}(\+\S*)?$", max_length=200)]
    status: Status
    fingerprint: Sha256
    inputs: dict[str, Scalar]
    greater_is_better: bool
    reason: Annotated[str, Meta(max_length=4000)] = ""
    failure: Failure | None = None
    per_split: Scores = ()
    mean: float | None = None
    std: float | None = None
    q: float | None = None
    metrics: dict[str, Scores] = {}
    samples: dict[str, Count] = {}
    splits: dict[str, Count] = {}
    settings: dict[str, Scores] = {}
    lower: float | None = None
    upper: float | None = None
    baseline: bool = False
    registered: bool = True
    dim: Version | None = None
    provenance: Provenance = {}
    schema: Literal[2] = SCHEMA

    @property
    def key(self) -> Key:
        """The cell: method and task with their versions (``x@2``), and the protocol."""
        return (
            versioned_id(self.method, self.method_version),
            versioned_id(self.task, self.task_version),
            self.protocol,
        )

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    def to_json(self) -> dict[str, Any]:
        """Plain values, the digest left out."""
        values: dict[str, Any] = msgspec.to_builtins(self)
        return values


# What the fields of a score are where there is none.
NO_SCORE: Mapping[str, Any] = {
    **{"per_split": (), "metrics": {}, "samples": {}, "splits": {}, "settings": {}},
    **{"mean": None, "std": None, "q": None},
}
FIELDS: tuple[str, ...] = Record.__struct_fields__
FAILURES: tuple[str, ...] = Failure.__args__  # type: ignore[attr-defined]


def schema() -> dict[str, Any]:
    """The JSON schema of a record; what it cannot say is in ``problems``."""
    whole = msgspec.json.schema(Record)
    record = whole["$defs"]["Record"]
    record["properties"]["digest"] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
    record["required"].append("digest")
    return whole


def record_line(record: Record) -> bytes:
    """The line of a record in its file."""
    values: dict[str, Any] = msgspec.to_builtins(record)
    signed = hashed({name: value for name, value in values.items() if name != "provenance"})
    return f"{canonical({**values, 'digest': signed})}\n".encode()


def problems(record: Record) -> Iterator[str]:
    """What no type can say: numbers that must follow from others, ids that must agree, texts that can be printed."""
    for name in (*SHARED, "reason", "inputs", "metrics", "samples", "splits", "settings"):
        value = getattr(record, name)
        for text in [*value, *value.values()] if isinstance(value, dict) else [value]:
            if isinstance(text, str) and (clean(text) != text or (name in SHARED and "\n" in text)):
                yield f"bad {name}; expected text without control characters, got {shorten(text)}"
    inputs = record.inputs
    missing = INPUTS - inputs.keys()
    unknown = [name for name in inputs if name not in (*INPUTS, BY_PLACE) and not name.startswith("protocol.")]
    if missing or unknown:
        names = ", ".join(sorted(missing or unknown))
        yield f"inputs {'lack' if missing else 'have unknown fields'}: {names[:200]}"
        return
    for name in SHARED:
        value = getattr(record, name)
        if inputs[name] != value or type(inputs[name]) is not type(value):
            yield f"{name} does not match the inputs; expected {shorten(inputs[name])}, got {shorten(value)}"
    for name in HASHES:
        value = inputs[name]
        # Only a record without a score may lack what would have gone into it.
        if not (isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value)) and (value is not None or record.ok):
            yield f"bad input {name}; expected a sha256, got {shorten(value)}"
    for name in COMPONENTS:
        if not (isinstance(inputs[name], str) and inputs[name]):
            yield f"bad input {name}; expected a version or the hash of code, got {shorten(inputs[name])}"
    if record.fingerprint != hashed(inputs):
        yield f"the fingerprint does not follow from the inputs; expected {hashed(inputs)}"
    if (record.status == "failed") != (record.failure is not None):
        yield "bad failure; expected a kind of failure exactly if status is failed"
    if record.ok == bool(record.reason):
        yield "bad reason; expected a reason exactly if status is not ok"
    if record.ok:
        yield from _score_problems(record)
    else:
        for name, nothing in NO_SCORE.items():
            if getattr(record, name) != nothing:
                yield f"{name} in a record that is {record.status}"


def _score_problems(record: Record) -> Iterator[str]:
    splits, inputs = record.per_split, record.inputs
    columns = {**record.metrics, **record.settings}
    numbers = [value for values in (splits, *columns.values()) for value in values if value is not None]
    if not all(map(math.isfinite, numbers)):
        yield "bad per_split, metrics or settings; expected finite numbers or null"
        return
    try:
        expected = summarize(splits, record.greater_is_better)
    except OverflowError:
        yield "bad per_split: numbers too large to be summed up"
        return
    if expected is None:
        yield "status ok without a defined split"
    for name, right in zip(("mean", "std", "q"), expected or (None, None, None), strict=True):
        if getattr(record, name) != right:
            yield f"{name} does not follow from per_split; expected {right}, got {getattr(record, name)}"
    # How many splits a plugin's splitter makes is its own affair; those of neuco make as many as the protocol says, but
    # for a task's own split, which is one, and those that test each region once.
    shipped = str(inputs["splitter_code"]).startswith("v")
    fixed = inputs["splitter"] == "fixed"
    expected_splits = 1 if fixed else inputs.get("protocol.k", len(splits))
    if shipped and inputs["splitter"] not in ONCE_EACH and len(splits) != expected_splits:
        why = "by a fixed split" if fixed else "as protocol.k says"
        yield f"bad per_split; expected {shorten(expected_splits)} splits {why}, got {len(splits)}"
    for name, values in columns.items():
        if len(values) != len(splits):
            yield f"metric or setting {shorten(name)} does not have one value per split; got {len(values)}"
    undefined = splits.count(None)
    if record.splits.get("undefined", 0) != undefined:
        yield f"bad splits; expected undefined: {undefined}, as per_split has, got {record.splits.get('undefined', 0)}"
    for name, count in record.splits.items():
        if count > len(splits):
            yield f"bad splits; expected at most {len(splits)}, got {shorten(name)}: {count}"
    scores = [value for value in splits if value is not None]
    low = -math.inf if record.lower is None else record.lower
    high = math.inf if record.upper is None else record.upper
    if scores and not (low - SLACK <= min(scores) and max(scores) <= high + SLACK):
        expected_range, got = f"{record.lower} to {record.upper}", f"{min(scores)} to {max(scores)}"
        yield f"a score outside the range of its metric; expected {expected_range}, got {got}"
