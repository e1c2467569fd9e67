"""JSON that a stranger wrote: numbers, texts and depths that the rest can handle, or an error that names the field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from neuco_core.errors import DataError

LARGEST_INT = 2**63 - 1  # what other languages can read, too
DEEPEST = 20  # objects and lists inside each other; neuco itself needs three
_FIELD = re.compile(r'^"([^"\n]{1,80})": ', re.MULTILINE)


class _Bad:
    """Stands in the place of what cannot be accepted, until it is known which field that is."""

    def __init__(self, why: str) -> None:
        self.why = why


def load_object(data: bytes, where: object, hint: str) -> dict[str, Any]:
    """The JSON object in a file; ``hint`` is the advice of every error."""
    bad: list[_Bad] = []

    def reject(why: str) -> _Bad:
        bad.append(_Bad(why))
        return bad[-1]

    def whole(digits: str) -> int | _Bad:
        # The length comes first: the time to read digits grows with their square.
        number = int(digits) if len(digits) <= 20 else LARGEST_INT + 1
        return number if abs(number) <= LARGEST_INT else reject("a whole number of more than 63 bits")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) != len(pairs):
            seen: set[str] = set()
            for name, _ in pairs:
                if name in seen:
                    values[name] = reject("a field that is there twice")
                    break
                seen.add(name)
        return values

    try:
        values = json.loads(
            data.decode("utf-8"),
            parse_constant=lambda name: reject(f"{name} is not JSON"),
            parse_int=whole,
            object_pairs_hook=unique,
        )
    except RecursionError as error:
        raise DataError(f"{_deepest(data)}{_too_deep()}", where=where, hint=hint) from error
    except ValueError as error:
        raise DataError(f"{_broken(data, error)}not a record: {error}", where=where, hint=hint) from error
    # Most files give no reason to look at every value.
    if bad or b"\\u" in data or data.count(b"[") + data.count(b"{") > DEEPEST:
        for path, why in _problems(values):
            raise DataError(f"bad {path}: {why}", where=where, hint=hint)
    if not isinstance(values, dict):
        got = type(values).__name__
        raise DataError("not a record", where=where, expected="a JSON object", got=got, hint=hint)
    return values


def _problems(values: object) -> Iterator[tuple[str, str]]:
    """Fields with what is wrong with them. Without recursion, of which a stranger could cause too much."""
    left: list[tuple[str, object, int]] = [("", values, 0)]
    while left:
        path, value, depth = left.pop()
        if isinstance(value, _Bad):
            yield path or "file", value.why
        elif isinstance(value, str) and not _encodable(value):
            yield path, "text with half of a character (a lone surrogate)"
        elif depth > DEEPEST:
            yield path, _too_deep()
        elif isinstance(value, dict):
            for name, item in value.items():
                inside = f"{path}.{ascii(name)[1:-1][:80]}".lstrip(".")
                if not _encodable(name):
                    yield inside, "a name with half of a character (a lone surrogate)"
                left.append((inside, item, depth + 1))
        elif isinstance(value, list):
            # A path that names every list would be as long as the nest is deep.
            left += [(path if path.endswith("[]") else f"{path}[]", item, depth + 1) for item in value]


def _too_deep() -> str:
    return f"lists or objects more than {DEEPEST} deep inside each other"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _broken(data: bytes, error: ValueError) -> str:
    """The field in which reading ended, as far as lines tell: a record has one field per line."""
    if isinstance(error, UnicodeDecodeError):
        before = data[: error.start].decode("utf-8")
    elif isinstance(error, json.JSONDecodeError):
        before = error.doc[: error.pos]
    else:
        return ""
    return _named(_FIELD.findall(before))


def _deepest(data: bytes) -> str:
    line = max(data.split(b"\n"), key=lambda line: line.count(b"[") + line.count(b"{"))
    return _named(_FIELD.findall(line[:100].decode("utf-8", "replace")))


def _named(fields: list[str]) -> str:
    return f"bad {fields[-1]}: " if fields else ""
