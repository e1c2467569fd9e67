"""JSON as neuco writes it: one text for one value, no NaN, the same bytes on every machine."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any


def jsonable(value: Any) -> Any:
    """The value with every number that is not finite turned into null: JSON has no NaN."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def canonical(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces, no NaN."""
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def hashed(value: object) -> str:
    """The sha256 of a value's canonical JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def dump(value: object) -> bytes:
    """The bytes of a file in the registry: one field, or entry of a list, per line, so that diffs are legible."""
    if isinstance(value, dict):
        fields = [f"{_line(key)}: {_entries(value[key])}" for key in sorted(value)]
        return ("{\n" + ",\n".join(fields) + "\n}\n").encode()
    return (_entries(value) + "\n").encode()


def _entries(value: object) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(map(_line, value)) + "\n]"
    return _line(value)


def _line(value: object) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, sort_keys=True)


def digest(value: object) -> str:
    return hashlib.sha256(dump(value)).hexdigest()
