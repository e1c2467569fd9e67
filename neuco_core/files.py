"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from neuco_core.errors import DataError

# Bytes of a data file in a plugin's folder. git keeps every version of it for ever, and all plugins together must fit
# into a wheel of 5 MB; what is larger is published elsewhere and declared by address and sha256.
LARGEST_DATA = 1_000_000


def _beside(path: Path, suffix: str = "") -> Path:
    """A new name in the same folder, which nobody else uses."""
    return path.with_name(f".{path.name[:80]}.{secrets.token_hex(6)}{suffix}")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its name when the block ends well, and vanishes otherwise."""
    temporary = _beside(path, path.suffix)
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
    temporary = _beside(path)
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
