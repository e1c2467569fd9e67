"""From the bytes of a record to a ``Record``, or an error that says what is wrong. Standard library only.

The same rules are published as JSON schema in ``registry/schema/record-1.json``; what a schema cannot say is added
here: numbers that must follow from others, ids that must agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from neuco_core._validate import ID, SHA256, Frozen
from neuco_core.errors import DataError
from neuco_core.records.record import (
    FAILURES,
    FIELDS,
    SCHEMA,
    STATUSES,
    Record,
    digest,
    fingerprint,
    rebuild,
    summary,
)
from neuco_core.records.strict_json import LARGEST_INT, load_object
from neuco_core.specs import KINDS
from neuco_core.text import clean

# Fields whose value must be repeated in the inputs.
SHARED = ("method", "method_version", "task", "task_version", "dataset", "kind", "metric", "protocol")
HASHES = ("labels", "labels_from", "embeddings", "embeddings_from")
CODES = ("metric_code", "probe_code", "splitter_code", "scorer")
INPUTS = frozenset((*SHARED, *HASHES, *CODES))
SLACK = 1e-6  # metrics are computed in float32: an F1 of 1 may come out a little above


def parse_record(data: bytes, where: object) -> Record:
    """Check the content of a record file."""
    values = load_object(data, where, rebuild(where))
    if values.get("schema") != SCHEMA:
        expected, got = f"schema {SCHEMA}", _short(values.get("schema"))
        raise DataError(
            "not a record of this schema",
            where=where,
            expected=expected,
            got=got,
            hint=f"If another version of neuco made it, use that one; if not: {rebuild(where)}",
        )
    names = {*RULES, "digest"}
    for name in values:
        if name not in names:
            raise _wrong(f"unknown field {_short(name)}", where)
    for name in sorted(names):
        if name not in values:
            raise _wrong(f"no field {name!r}", where)
    for name, (fits, expected) in RULES.items():
        if not fits(values[name]):
            raise _wrong(f"bad {name}", where, expected=expected, got=_short(values[name]))
    _check_legible(values, where)
    _check_inputs(values, where)
    _check_outcome(values, where)
    _check_splits(values, where)
    if digest(data) != values.pop("digest"):
        raise _wrong("edited after it was written: its digest does not fit", where)
    return Record(**{name: _frozen(value) for name, value in values.items()})


def _wrong(what: str, where: object, *, expected: object = None, got: object = None) -> DataError:
    return DataError(what, where=where, expected=expected, got=got, hint=rebuild(where))


def _check_legible(values: Mapping[str, Any], where: object) -> None:
    """Texts that are printed have no characters that steer a terminal or turn the order of reading."""
    for field in ("reason", "inputs", "metrics", "samples", "folds"):
        value = values[field]
        texts = [value] if isinstance(value, str) else [*value, *value.values()]
        for text in texts:
            if isinstance(text, str) and clean(text) != text:
                raise _wrong(f"bad {field}", where, expected="text without control characters", got=_short(text))


def _check_inputs(values: Mapping[str, Any], where: object) -> None:
    inputs = values["inputs"]
    missing = INPUTS - inputs.keys()
    unknown = [name for name in inputs if name not in INPUTS and not name.startswith("protocol.")]
    if missing or unknown:
        names = ", ".join(sorted(missing or unknown))
        raise _wrong(f"inputs {'lack' if missing else 'have unknown fields'}: {names[:200]}", where)
    for name in SHARED:
        if inputs[name] != values[name] or type(inputs[name]) is not type(values[name]):
            got = _short(values[name])
            raise _wrong(f"{name} is not that of the inputs", where, expected=_short(inputs[name]), got=got)
    for name in HASHES:
        # Only a record without a score may lack what would have gone into it.
        if not (_sha256(inputs[name]) or (inputs[name] is None and values["status"] != "ok")):
            raise _wrong(f"bad input {name}", where, expected="a sha256", got=_short(inputs[name]))
    right = fingerprint(inputs)
    if values["fingerprint"] != right:
        raise _wrong("the fingerprint does not follow from the inputs", where, expected=right)


def _check_outcome(values: Mapping[str, Any], where: object) -> None:
    status = values["status"]
    if (status == "failed") != (values["failure"] is not None):
        raise _wrong("bad failure", where, expected="a kind of failure exactly if status is failed")
    if (status == "ok") == bool(values["reason"]):
        raise _wrong("bad reason", where, expected="a reason exactly if status is not ok")
    if status != "ok":
        for name in ("per_split", "metrics", "samples", "folds"):
            if values[name]:
                raise _wrong(f"{name} in a record that is {status}", where)
    try:
        expected = summary(values["per_split"], values["greater_is_better"]) or (None, None, None)
    except (OverflowError, ValueError) as error:
        raise _wrong("bad per_split: numbers too large to be summed up", where) from error
    if status == "ok" and expected[0] is None:
        raise _wrong("status ok without a defined split", where)
    for name, right in zip(("mean", "std", "q"), expected, strict=True):
        if values[name] != right:
            raise _wrong(f"{name} does not follow from per_split", where, expected=right, got=values[name])
    _check_range(values, where)


def _check_splits(values: Mapping[str, Any], where: object) -> None:
    """As many splits as the protocol says, and as many undefined ones as were counted."""
    if values["status"] != "ok":
        return
    splits, inputs = values["per_split"], values["inputs"]
    # How many splits a plugin's splitter makes is its own affair; those of neuco have no code of their own here.
    if inputs["splitter_code"] == "" and len(splits) != inputs.get("protocol.k", len(splits)):
        expected = f"{_short(inputs['protocol.k'])} splits, as protocol.k of the inputs says"
        raise _wrong("bad per_split", where, expected=expected, got=len(splits))
    for name, numbers in values["metrics"].items():
        if len(numbers) != len(splits):
            raise _wrong(f"metric {_short(name)} has not one value per split", where, got=len(numbers))
    undefined = splits.count(None)
    if values["folds"].get("undefined", 0) != undefined:
        expected = f"undefined: {undefined}, as many as per_split has"
        raise _wrong("bad folds", where, expected=expected, got=values["folds"].get("undefined", 0))
    for name, count in values["folds"].items():
        if count > len(splits):
            raise _wrong("bad folds", where, expected=f"at most {len(splits)}", got=f"{_short(name)}: {count}")


def _check_range(values: Mapping[str, Any], where: object) -> None:
    defined = [value for value in values["per_split"] if value is not None]
    lower, upper = values["lower"], values["upper"]
    if defined and (
        (lower is not None and min(defined) < lower - SLACK) or (upper is not None and max(defined) > upper + SLACK)
    ):
        got = f"{min(defined)} to {max(defined)}"
        raise _wrong("a score outside the range of its metric", where, expected=f"{lower} to {upper}", got=got)


def _sha256(value: object) -> bool:
    return isinstance(value, str) and SHA256.fullmatch(value) is not None


def _id(value: object) -> bool:
    return isinstance(value, str) and ID.fullmatch(value) is not None


def _count(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_INT


def _version(value: object) -> bool:
    return type(value) is int and 1 <= value <= LARGEST_INT


def _number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _number_or_none(value: object) -> bool:
    return value is None or _number(value)


def _numbers(value: object) -> bool:
    # Whole-list operations: this is most of the time that reading a record takes.
    if not isinstance(value, list) or not set(map(type, value)) <= {float, type(None)}:
        return False
    return all(map(math.isfinite, [item for item in value if item is not None]))


def _text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= 4000


def _protocol(value: object) -> bool:
    if not isinstance(value, str) or not 0 < len(value) <= 200 or not value.isprintable():
        return False
    return ID.fullmatch(value.partition("+")[0]) is not None


def _mapping(item: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, dict) and all(map(item, value.values()))


def _scalar(value: object) -> bool:
    return value is None or type(value) in (str, bool) or _number(value)


def _plain(value: object) -> bool:
    """JSON without infinite numbers; 1e999 is one that has no name."""
    if isinstance(value, dict):
        return all(map(_plain, value.values()))
    return all(map(_plain, value)) if isinstance(value, list) else _scalar(value)


def _bool(value: object) -> bool:
    return type(value) is bool


_ID = (_id, "an id: 1 to 64 of a-z, 0-9, _ and -")
_OPTIONAL_NUMBER = (_number_or_none, "a finite number or null")
RULES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "schema": (_version, f"{SCHEMA}"),
    "method": _ID,
    "task": _ID,
    "dataset": _ID,
    "metric": _ID,
    "method_version": (_version, "a whole number of at least 1"),
    "task_version": (_version, "a whole number of at least 1"),
    "kind": (lambda value: value in KINDS, "one of " + ", ".join(KINDS)),
    "protocol": (_protocol, "a protocol's name"),
    "status": (lambda value: value in STATUSES, "one of " + ", ".join(STATUSES)),
    "reason": (_text, "text of at most 4000 characters"),
    "failure": (lambda value: value is None or value in FAILURES, "null or one of " + ", ".join(FAILURES)),
    "fingerprint": (_sha256, "a sha256"),
    "inputs": (_mapping(_scalar), "texts mapped to texts, finite numbers, truth values or null"),
    "per_split": (_numbers, "a list of finite numbers with a decimal point, or null"),
    "mean": _OPTIONAL_NUMBER,
    "std": _OPTIONAL_NUMBER,
    "q": _OPTIONAL_NUMBER,
    "metrics": (_mapping(_numbers), "names mapped to lists of finite numbers or null"),
    "samples": (_mapping(_count), "names mapped to counts"),
    "folds": (_mapping(_count), "names mapped to counts"),
    "greater_is_better": (_bool, "true or false"),
    "lower": _OPTIONAL_NUMBER,
    "upper": _OPTIONAL_NUMBER,
    "baseline": (_bool, "true or false"),
    "dim": (lambda value: value is None or _version(value), "null or a whole number of at least 1"),
    "provenance": (lambda value: isinstance(value, dict) and _plain(value), "an object"),
}
if RULES.keys() != set(FIELDS):
    raise RuntimeError("RULES must name every field of Record")


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return Frozen({key: _frozen(item) for key, item in value.items()})
    return tuple(value) if isinstance(value, list) else value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
