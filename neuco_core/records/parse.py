"""The strict reader of a record's content, which may come from a stranger."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import msgspec

from neuco_core._validate import ID
from neuco_core.errors import DataError
from neuco_core.jsonio import canonical
from neuco_core.records.model import LARGEST_INT, Record, digest, layout, problems, record_bytes
from neuco_core.records.packs import key_at
from neuco_core.records.upgrade import upgraded

LARGEST_FILE = 4_000_000
DEEPEST = 20
EDITED = "it was edited after it was written: its digest does not match"
_decode = msgspec.json.Decoder(Record).decode
_DIGEST = re.compile(rb'^"digest": .*\n', re.MULTILINE)
_LONG_INT = re.compile(rb"[:,\[{ -][0-9]{19}")  # may be above LARGEST_INT


def rescore(where: object) -> str:
    """The advice for a record that cannot be used: the command that scores its cell again, from the file's name."""
    path = Path(str(where))
    method, task, protocol = key_at(path.parent.name, path.name)
    if not all(ID.fullmatch(ref.partition("@")[0]) for ref in (method, task)):
        return "Delete the file, and score its cell again with `neuco score`"
    chosen = ("--method", method, "--task", task, "--protocol", protocol)
    return f"Delete the file and run `{shlex.join(('neuco', 'score', *chosen))}`"


def parse_record(data: bytes, where: object) -> Record:
    """Check the content of a record file, which may come from a stranger; what is wrong is an error with the reason."""
    return _as_written(data) or _parse_slowly(data, where)


def _as_written(data: bytes) -> Record | None:
    """A good record of today's schema in a third of the time: it is known by giving the same bytes again.

    None says that the other way has to tell what is wrong, or to upgrade.
    """
    try:
        record = _decode(_DIGEST.sub(b"", data, count=1))
        _check_depth(record.provenance)
        good = record_bytes(record) == data and not _LONG_INT.search(data) and not any(problems(record))
    except (ValueError, RecursionError):
        return None
    return record if good else None


def _parse_slowly(data: bytes, where: object) -> Record:
    values = _values(data, where)
    signed = values.pop("digest", None)
    written = layout(values)
    values = upgraded(values, where)
    try:
        record = msgspec.convert(values, Record)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$.")
        raise _bad(place.rstrip("`") or "record", what, where) from error
    for problem in problems(record):
        raise DataError(problem, where=where, hint=rescore(where))
    if signed != digest(data):
        raise DataError(EDITED, where=where, hint=rescore(where))
    # Only neuco writes records. So a file is what neuco would write, byte for byte: no field twice, none hidden.
    if written != data:
        pairs = zip(written.split(b"\n"), data.split(b"\n"), strict=False)
        line = next((own for own, other in pairs if own != other and not own.startswith(b'"digest"')), b"")
        raise _bad(_field(line.decode()), "a name that is there twice, or a text that neuco would not write", where)
    return record


def _values(data: bytes, where: object) -> dict[str, Any]:
    """The JSON object in a file. A record has one field per line, so a line tells which field is broken."""
    try:
        values = json.loads(data.decode("utf-8"), parse_constant=_no_constant, parse_int=_whole)
    except RecursionError as error:
        raise _bad("record", "lists or objects too deep inside each other", where) from error
    except ValueError as error:
        end = error.start if isinstance(error, UnicodeDecodeError) else getattr(error, "pos", 0)
        line = data[:end].decode("utf-8", "replace").rpartition("\n")[2]
        raise _bad(_field(line), str(error), where) from error
    if not isinstance(values, dict):
        got = type(values).__name__
        raise DataError("not a record", where=where, expected="a JSON object", got=got, hint=rescore(where))
    for name, value in values.items():
        try:
            _check_depth(value)
            canonical({name: value}).encode()
        except (ValueError, RecursionError) as error:
            raise _bad(ascii(name)[1:-1], str(error), where) from error
    return values


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _whole(digits: str) -> int:
    # The length comes first: the time to read digits grows with their square.
    if len(digits) > 20 or abs(int(digits)) > LARGEST_INT:
        raise ValueError("a whole number of more than 63 bits")
    return int(digits)


def _check_depth(value: Any) -> None:
    """Nothing that readers without our limits would choke on; neuco itself needs three levels."""
    level = [value]
    for _ in range(DEEPEST):
        inner = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list)]
        level = [part for parts in inner for part in parts]
    if level:
        raise ValueError(f"lists or objects more than {DEEPEST} deep inside each other")


def _field(line: str) -> str:
    """The name of the field in a line of a record."""
    return line.partition('":')[0].strip('"') if line.startswith('"') else "record"


def _bad(field: str, what: str, where: object) -> DataError:
    return DataError(f"bad {field[:80]}: {what[:300]}", where=where, hint=rescore(where))
