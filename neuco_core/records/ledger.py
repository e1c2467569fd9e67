"""A quick look over all records: only what a plan needs, so that 100,000 of them are no matter.

A file whose digest is right is nearly always as neuco wrote it, and neuco writes only what its strict reader accepts;
so a few fields are enough here. Whoever uses the numbers reads with ``read_record``.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from neuco_core.errors import UsageError
from neuco_core.jsonio import canonical
from neuco_core.records.record import CLAIMS, FIELDS, LARGEST_FILE, Scalar

# Where the fields are in a file: one per line, in alphabetical order, after a line with a bracket.
_LINE = {name: number for number, name in enumerate(sorted(("digest", *FIELDS)), start=1)}
_NAMES = frozenset((*CLAIMS, "failure", "reason", "status"))
_WANTED = sorted(_LINE[name] for name in (*_NAMES, "inputs"))
_UNSIGNED = sorted((_LINE["digest"], _LINE["provenance"]), reverse=True)
_SCALARS = frozenset((str, int, float, bool, type(None)))
NO_FILE = "the record is not a file of its own, but a link, a folder or a device"
STRANGE = "the record is not one that neuco wrote"
EDITED = "the record's digest does not match: it was edited after it was written"


class Head(NamedTuple):
    """Status, inputs and claims of a record; ``problem`` says why the file cannot be used, if so."""

    status: str
    failure: str | None = None
    reason: str = ""
    inputs: Mapping[str, Scalar] = {}
    problem: str = ""
    claims: Mapping[str, Scalar] = {}


def read_heads(registry: Path) -> dict[tuple[str, str], Head]:
    """The heads of all records by folder and file name."""
    root = registry / "results"
    heads: dict[tuple[str, str], Head] = {}
    if not root.is_dir():
        return heads
    for folder in os.scandir(root):
        if folder.is_dir() and not folder.name.startswith("."):
            for file in os.scandir(folder.path):
                if file.name.endswith(".json") and not file.name.startswith("."):
                    heads[folder.name, file.name] = read_head(file.path)
    return heads


def read_head(path: str) -> Head:
    """The head of one record; never raises."""
    try:
        file_is = os.lstat(path)
        if not stat.S_ISREG(file_is.st_mode):
            return Head("", problem=NO_FILE)
        if file_is.st_size > LARGEST_FILE:
            return Head("", problem=f"the record has more than {LARGEST_FILE} bytes")
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a Path for each of 100,000 files costs a second
            lines = file.read(file_is.st_size).split(b"\n")
        if len(lines) != len(_LINE) + 3:
            return Head("", problem=STRANGE)
        text = b"{" + b",".join([lines[place].removesuffix(b",") for place in _WANTED]) + b"}"
        found = json.loads(text.decode())
        if b"\\u" in text:
            canonical(found).encode()  # half of a character could be neither compared nor printed
        signed = lines[_LINE["digest"]]
        for place in _UNSIGNED:
            del lines[place]
        right = hashlib.sha256(b"\n".join(lines)).hexdigest()
    except (OSError, ValueError, RecursionError) as error:
        return Head("", problem=f"the record cannot be read: {error}")
    if signed != f'"digest": "{right}",'.encode():
        return Head("", problem=EDITED)
    inputs = found.pop("inputs", None)
    if found.keys() != _NAMES or not _plain(found, inputs):
        return Head("", problem=STRANGE)
    return Head(found["status"], found["failure"], found["reason"], inputs, claims=found)


def _plain(found: Mapping[str, object], inputs: object) -> bool:
    """Whether a plan can compare and print these values; somebody may sign what the strict reader would refuse."""
    if not isinstance(found["status"], str) or not isinstance(found["reason"], str) or not isinstance(inputs, dict):
        return False
    return _SCALARS.issuperset(map(type, [*found.values(), *inputs.values()]))


@contextmanager
def exclusive(registry: Path) -> Iterator[None]:
    """Let one run at a time write records, and clear away what a killed one left half-written.

    The folder itself is locked; the lock ends with the process, however it ends.
    """
    root = registry / "results"
    try:
        root.mkdir(parents=True, exist_ok=True)
        handle = os.open(root, os.O_RDONLY)
    except OSError as error:
        raise unwritable(root, error) from error
    try:
        _lock(handle, root)
        for path in root.glob("*/.*.json.*"):
            path.unlink(missing_ok=True)
        yield
    finally:
        os.close(handle)


def unwritable(path: Path, error: OSError) -> UsageError:
    reason = error.strerror or str(error)
    return UsageError(f"the registry cannot be written: {reason}", where=path, hint="Set NEUCO_REGISTRY to a folder")


def _lock(handle: int, root: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            "another run is writing records here", where=root, hint="Wait for it, or set NEUCO_REGISTRY"
        ) from None
    except OSError:  # some network file systems cannot lock a folder
        return
