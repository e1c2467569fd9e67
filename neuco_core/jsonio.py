"""JSON as neuco writes it: one text for one value, no NaN, the same bytes on every machine."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from neuco_core.errors import DataError
from neuco_core.files import read_limited

T = TypeVar("T")


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


def read_strictly(path: Path, kind: type[T], what: str, *, most: int, hint: str = "") -> T:
    """Read a JSON file of at most so many bytes: every field must be known and of its type."""
    import msgspec  # which listing plugins does not need

    try:
        return msgspec.json.decode(read_limited(path, most), type=kind)
    except (OSError, ValueError, RecursionError) as error:
        said = str(error).replace(" - at `$", ", at `")
        raise DataError(f"not {what}: {said}", where=path, hint=hint) from error
