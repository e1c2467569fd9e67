"""Files that appear whole or not at all, and JSON as neuco writes it: one text for one value, no NaN."""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from neuco_core.errors import DataError

T = TypeVar("T")

# Bytes of a data file in a plugin's folder. git keeps every version of it for ever, and all plugins together must fit
# into a wheel of 5 MB; what is larger is published elsewhere and declared by address and sha256.
LARGEST_DATA = 1_000_000


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its name when the block ends well, and vanishes otherwise."""
    temporary = path.with_name(f".{path.name[:80]}.{secrets.token_hex(6)}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", where=path) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def read_limited(path: Path, most: int) -> bytes:
    """The bytes of a small regular file. A pipe would be waited for, and a device has no end."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise DataError("not a regular file", where=path)
        data = file.read(most + 1)
    if len(data) > most:
        raise DataError(f"larger than {most} bytes", where=path)
    return data


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that its name shows the old content or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name[:80]}.{secrets.token_hex(6)}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_new(path: Path, text: str) -> Path:
    """Write a file under this name, or with a number behind it if there is one: nothing is ever overwritten."""
    number = 1
    while True:
        target = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        try:
            with target.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            number += 1
        else:
            return target


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
    """Read a JSON file of at most so many bytes; a Struct says itself which fields there are, and of which type."""
    try:
        return msgspec.json.decode(read_limited(path, most), type=kind)
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error).replace(" - at `$", ", at `")
        raise DataError(f"not {what}: {reason}", where=path, hint=hint) from error
