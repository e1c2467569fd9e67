"""One text for one board: sorted keys, floats rounded by a fixed rule, no NaN."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

# Sums of the same numbers may differ in the last bits between machines; what comes out of random replicates also
# depends on how a quantile falls, so it is not given more precisely than it is known.
EXACT = 10
RANDOM = 4


def number(value: object, digits: int = EXACT) -> float | None:
    """A float for the file: rounded, -0.0 as 0.0; undefined is ``None``."""
    if value is None or not math.isfinite(float(value)):  # type: ignore[arg-type]
        return None
    return round(float(value), digits) + 0.0  # type: ignore[arg-type]


def interval(low: Any, high: Any, digits: int = RANDOM) -> list[float | None]:
    return [number(low, digits), number(high, digits)]


def whole(low: Any, high: Any) -> list[int]:
    """An interval of ranks."""
    return [int(low), int(high)]


def clean(text: str) -> str:
    """Text of a stranger without characters that steer a terminal or turn the order of reading; lines and tabs stay."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in text)


def dump(value: object) -> bytes:
    """The bytes of a file in the registry: one field, or entry of a list, on a line, so that changes are legible."""
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
