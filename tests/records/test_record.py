"""Records: what is written can be read, and nothing else can; the published schema says the same."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from neuco_core.errors import DataError
from neuco_core.files import canonical, hashed
from neuco_core.records.model import FIELDS, record_line, schema
from neuco_core.records.store import parse_record, read_all, write_records
from neuco_core.scoring.quality import summarize
from tests.records.examples import scored, unscored

Values = dict[str, Any]
EXAMPLES = {
    "ok": scored(),
    "undefined split": scored(
        k=2,
        per_split=(None, 0.5),
        mean=0.5,
        std=0.0,
        q=50.0,
        metrics={"accuracy": (0.5, None)},
        splits={"undefined": 1},
    ),
    "failed": unscored(),
    "skipped": unscored("skipped", None),
    "not-applicable": unscored("not-applicable", None),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_written_is_read_again_and_fits_the_published_schema(
    name: str, tmp_path: Path, published: Values
) -> None:
    record = EXAMPLES[name]
    write_records(tmp_path, [record])
    assert read_all(tmp_path) == [record]
    assert (tmp_path / "records" / "random.jsonl").read_bytes() == record_line(record)
    jsonschema.validate(json.loads(record_line(record)), published)


def test_provenance_is_not_part_of_the_digest() -> None:
    here, there = (json.loads(record_line(scored(provenance=made))) for made in ({"a": 1}, {"b": {"c": [2, None]}}))
    assert here["digest"] == there["digest"]
    assert here != there


def signed(values: Values) -> bytes:
    """A line with these values and the digest that fits: somebody who knows how records are made."""
    signed_fields = {name: value for name, value in values.items() if name not in ("digest", "provenance")}
    digest = hashlib.sha256(_json(signed_fields).encode()).hexdigest()
    return f"{_json({**values, 'digest': digest})}\n".encode()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def change(values: Values, **changes: Any) -> Values:
    return {**values, **changes}


def with_inputs(values: Values, drop: str = "", **changes: Any) -> Values:
    """Other inputs, and the fingerprint that follows from them."""
    inputs = {name: value for name, value in {**values["inputs"], **changes}.items() if name != drop}
    return {**values, "inputs": inputs, "fingerprint": hashed(inputs)}


def first_undefined(values: Values) -> Values:
    return with_splits(values, [None, *values["per_split"][1:]])


def with_splits(values: Values, splits: list[float | None], mean: float | None = None) -> Values:
    """Other splits, and all that follows from them."""
    whole = (mean, 0.0, 0.0) if mean is not None else summarize(splits, values["greater_is_better"])
    changes = dict(zip(("mean", "std", "q"), whole or (None, None, None), strict=True))
    return {**values, **changes, "per_split": splits, "metrics": {}, "upper": None}


def without(values: Values, name: str) -> Values:
    return {key: value for key, value in values.items() if key != name}


# What is wrong → how, the words of the error, and whether a schema can tell.
WRONG: dict[str, tuple[Callable[[Values], Values], str, bool]] = {
    "another schema": (lambda v: change(v, schema=3), "newer version of neuco; expected schema 2, got schema 3", True),
    "no schema": (lambda v: without(v, "schema"), "expected schema 2, got schema 0", False),
    "a field too many": (lambda v: change(v, rank=1), "unknown field `rank`", True),
    "a field too few": (lambda v: without(v, "std"), "std does not follow from per_split", False),
    "a path in the method": (lambda v: change(v, method="../../etc"), "bad method: Expected `str` matching", True),
    "a path in the task": (lambda v: change(v, task="a/b"), "bad task: Expected `str` matching", True),
    "a path in the protocol": (lambda v: change(v, protocol="/etc+k=1"), "bad protocol", True),
    "NaN": (lambda v: change(v, mean=math.nan), "JSON is malformed", False),
    "infinite": (lambda v: change(v, per_split=[math.inf]), "JSON is malformed", False),
    "text as number": (lambda v: change(v, per_split=["0.5"]), "bad per_split", True),
    "truth as number": (lambda v: change(v, samples={"used": True}), "bad samples", True),
    "negative count": (lambda v: change(v, samples={"used": -1}), "bad samples", True),
    "an unknown status": (lambda v: change(v, status="good"), "bad status", True),
    "an unknown failure": (lambda v: change(v, status="failed", failure="bad luck"), "bad failure", True),
    "a failure that is none": (lambda v: change(v, failure="crash"), "bad failure", False),
    "ok with a reason": (lambda v: change(v, reason="well"), "bad reason", False),
    "skipped without a reason": (lambda v: change(v, status="skipped"), "bad reason", False),
    "skipped with scores": (lambda v: change(v, status="skipped", reason="x"), "per_split in a record that", False),
    "one edited split": (lambda v: change(v, per_split=[0.9, *v["per_split"][1:]]), "mean does not follow", False),
    "an edited mean": (lambda v: change(v, mean=v["mean"] + 1e-12), "mean does not follow from per_split", False),
    "an edited std": (lambda v: change(v, std=v["std"] / 2), "std does not follow from per_split", False),
    "an edited Q": (lambda v: change(v, q=v["q"] + 1), "q does not follow from per_split", False),
    "another direction": (lambda v: change(v, greater_is_better=False), "q does not follow from per_split", False),
    "no defined split": (lambda v: change(v, per_split=[None], mean=None, std=None, q=None), "a defined", False),
    "fewer splits than the protocol says": (lambda v: with_splits(v, v["per_split"][:2]), "expected 5 splits", False),
    "an undefined split": (first_undefined, "bad splits; expected undefined: 1, as per_split has, got 0", False),
    "undefined splits that nobody counted": (lambda v: change(first_undefined(v), splits={}), "bad splits", False),
    "more odd splits than splits": (lambda v: change(v, splits={"undefined": 0, "one_class": 6}), "at most 5", False),
    "sums beyond all numbers": (lambda v: with_splits(v, [1e308] * 5, 1.0), "numbers too large", False),
    "a count of 64 bits": (lambda v: change(v, samples={"used": 2**63}), "`int` <= 9223372036854775807", True),
    "lists of other lengths": (lambda v: change(v, metrics={"mse": [1.0]}), "does not have one value per split", False),
    "out of range": (lambda v: change(v, upper=0.1), "outside the range of its metric", False),
    "another fingerprint": (lambda v: change(v, fingerprint="0" * 64), "does not follow from the inputs", False),
    "an edited input": (lambda v: change(v, inputs={**v["inputs"], "protocol.k": 1}), "does not follow", False),
    "no embedding hash": (lambda v: with_inputs(v, embeddings=None), "bad input embeddings", False),
    "a lacking input": (lambda v: with_inputs(v, drop="labels"), "inputs lack: labels", False),
    "an unknown input": (lambda v: with_inputs(v, mood="good"), "inputs have unknown fields: mood", False),
    "another task inside": (lambda v: with_inputs(v, task="other"), "task does not match the inputs", False),
    "another version inside": (lambda v: change(v, task_version=2), "task_version does not match the inputs", False),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_with_the_reason(name: str, published: Values) -> None:
    edit, message, seen_by_schema = WRONG[name]
    values = edit(json.loads(record_line(scored())))
    with pytest.raises(DataError) as caught:
        parse_record(signed(values), "random.jsonl:1")
    assert message in str(caught.value)
    assert str(caught.value).startswith("random.jsonl:1: ")
    assert jsonschema.Draft202012Validator(published).is_valid(values) is not seen_by_schema


@pytest.fixture(scope="session")
def published(root: Path) -> Values:
    schema_file: Values = json.loads((root / "registry" / "schema" / "record-2.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema_file)
    return schema_file


def test_the_schema_file_is_the_models(published: Values) -> None:
    assert published == json.loads(json.dumps(schema())), (
        "write it anew: json.dumps(schema(), indent=2, sort_keys=True) and a newline"
    )
    assert set(published["$defs"]["Record"]["properties"]) == {*FIELDS, "digest"}


def test_every_single_edited_number_is_noticed() -> None:
    text = record_line(scored(provenance={})).decode()
    for place, char in enumerate(text):
        if char.isdigit():
            edited = text[:place] + str((int(char) + 1) % 10) + text[place + 1 :]
            with pytest.raises(DataError):
                parse_record(edited.encode(), "edited")


def test_any_other_byte_is_refused_or_changes_the_provenance_only() -> None:
    good = record_line(scored(provenance={"seconds": 1.5, "deep": {"x": None}, "text": "ü"}))
    chance, accepted = random.Random(0), 0
    for _ in range(3000):
        place = chance.randrange(len(good))
        edited = good[:place] + chance.choice([b"", b"0", b'"', b",", b"1e5", b"\\", b"\xc3"]) + good[place + 1 :]
        try:
            record = parse_record(edited, "x")
        except DataError:
            continue
        accepted += 1
        assert replace(record, provenance={}) == scored(provenance={})
        assert record_line(record) == edited
    assert accepted


def test_canonical_json_refuses_what_is_no_json() -> None:
    assert canonical({"b": 1, "a": [1.5, None, "ü"]}) == '{"a":[1.5,null,"ü"],"b":1}'
    with pytest.raises(ValueError, match="JSON"):
        canonical(math.nan)
