"""Records in the registry: ``results/METHOD/TASK.json``; a protocol other than the usual one is part of the name."""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from neuco_core._validate import ID
from neuco_core.errors import DataError, UsageError
from neuco_core.jsonio import canonical
from neuco_core.paths import layers
from neuco_core.records.model import CLAIMS, LARGEST_INT, Record, Scalar, digest, layout, problems, record_bytes
from neuco_core.records.upgrade import inputs_of, upgraded

DEFAULT_PROTOCOL = "neuco-2025"
LARGEST_FILE = 4_000_000
DEEPEST = 20
MOVE = "Move it to where it belongs, or delete it"
EDITED = "it was edited after it was written: its digest does not match"
NOT_A_FILE = "not a regular file"


def record_path(registry: Path, method: str, task: str, protocol: str) -> Path:
    """Where a record is kept in one registry."""
    return registry / "results" / method / record_name(task, protocol)


def record_name(task: str, protocol: str) -> str:
    suffix = "" if protocol == DEFAULT_PROTOCOL else "@" + quote(protocol, safe="+=,")
    return f"{task}{suffix}.json"


def find_record(registry: Path, method: str, task: str, protocol: str) -> Path | None:
    """The record's file in the registry or in one that lies below it."""
    paths = [record_path(layer, method, task, protocol) for layer in layers(registry)]
    return next((path for path in paths if path.exists() or path.is_symlink()), None)


def rescore(where: object) -> str:
    """The advice for a record that cannot be used: the command that scores its cell again, from the file's name."""
    path = Path(str(where))
    task, _, protocol = unquote(path.stem).partition("@")
    if not (ID.fullmatch(path.parent.name) and ID.fullmatch(task)):
        return "Delete the file, and score its cell again with `neuco score`"
    chosen = ("--method", path.parent.name, "--task", task, "--protocol", protocol or DEFAULT_PROTOCOL)
    return f"Delete the file and run `{shlex.join(('neuco', 'score', *chosen))}`"


def parse_record(data: bytes, where: object) -> Record:
    """Check the content of a record file, which may come from a stranger; what is wrong is an error with the reason."""
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


def read_record(path: Path, *, expect_place: bool = True) -> Record:
    """Read a record strictly. ``expect_place`` also demands that its folder and file name are those of its ids."""
    record = parse_record(_read(path), path)
    if expect_place:
        wanted = record_path(Path(), *record.key).parts[-2:]
        if path.absolute().parts[-2:] != wanted:
            expected, got = "/".join(wanted), "/".join(path.parts[-2:])
            raise DataError("a record in the wrong place", where=path, expected=expected, got=got, hint=MOVE)
    return record


def _read(path: Path) -> bytes:
    try:
        # A device or a pipe says that it has 0 bytes, and may never end.
        if not stat.S_ISREG(path.stat().st_mode):
            raise DataError(NOT_A_FILE, where=path, expected="a record", hint="Name a record's file")
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        what = f"the record cannot be read: {error.strerror or error}"
        raise DataError(what, where=path, hint=f"Make it readable, or: {rescore(path)}") from error
    if len(data) > LARGEST_FILE:
        expected = f"at most {LARGEST_FILE} bytes"
        raise DataError("too large for a record", where=path, expected=expected, hint=rescore(path))
    return data


def write_record(record: Record, registry: Path) -> Path:
    """Write a record atomically. What the strict reader would refuse is never written."""
    from neuco_core.files import write_atomic

    path = record_path(registry, *record.key)
    data = record_bytes(record)
    parse_record(data, path)
    write_atomic(path, data)
    return path


def record_files(registry: Path) -> Iterator[Path]:
    """All record files, by method and task, each cell once: a registry hides the same cell in those below it.

    Hidden files are not records: a killed run may leave one half-written. Whatever else is there is refused: a record
    with a wrong name would otherwise be missing without a word. So is a link: what it leads to may be elsewhere
    tomorrow.
    """
    found: dict[tuple[str, str], Path] = {}
    for layer in layers(registry):
        root = layer / "results"
        for folder in _visible(root) if root.exists() else ():
            if not folder.is_dir():
                raise _stray(folder, "METHOD/TASK.json")
            for file in _visible(folder):
                if file.suffix != ".json" or file.is_symlink() or not file.is_file():
                    raise _stray(file, f"{folder.name}/TASK.json")
                found.setdefault((folder.name, file.name), file)
    yield from (found[place] for place in sorted(found))


def _visible(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        what = f"the folder of records cannot be read: {error.strerror or error}"
        raise DataError(what, where=folder, hint="Set NEUCO_REGISTRY to a registry that can be read") from error


def _stray(path: Path, expected: str) -> DataError:
    return DataError("not a record, in the folder of records", where=path, expected=expected, hint=MOVE)


def read_all(registry: Path, *, tasks: Collection[str] | None = None) -> list[Record]:
    """All records, each read strictly. With ``tasks``, a record of any other task is refused too."""
    records = []
    for path in record_files(registry):
        record = read_record(path)
        if tasks is not None and record.task not in tasks:
            raise DataError(f"a record of the unknown task {record.task!r}", where=path, hint="See `neuco tasks`")
        records.append(record)
    return records


class Head(msgspec.Struct, frozen=True):
    """What a plan needs of a record; ``problem`` says why the file cannot be used, if so.

    A file whose digest is right is nearly always as neuco wrote it, and neuco writes only what its strict reader
    accepts; so this much is enough for a plan, and 100,000 records are no matter. Whoever uses the numbers reads
    with ``read_record``.
    """

    status: str = ""
    schema: int = 0
    digest: str = ""
    failure: str | None = None
    reason: str = ""
    inputs: Mapping[str, Scalar] = {}
    baseline: bool = False
    greater_is_better: bool = True
    lower: float | None = None
    upper: float | None = None
    problem: str = ""

    @property
    def claims(self) -> dict[str, Scalar]:
        return {name: getattr(self, name) for name in CLAIMS}


_decode_head = msgspec.json.Decoder(Head).decode


def read_heads(registry: Path) -> dict[tuple[str, str], Head]:
    """The heads of all records by folder and file name."""
    heads: dict[tuple[str, str], Head] = {}
    for layer in reversed(layers(registry)):
        root = layer / "results"
        for folder in os.scandir(root) if root.is_dir() else ():
            if folder.is_dir() and not folder.name.startswith("."):
                for file in os.scandir(folder.path):
                    if file.name.endswith(".json") and not file.name.startswith("."):
                        heads[folder.name, file.name] = read_head(file.path)
    return heads


def read_head(path: str) -> Head:
    """The head of one record; never raises."""
    try:
        known = os.lstat(path)
        if not stat.S_ISREG(known.st_mode):
            return Head(problem=NOT_A_FILE)
        if known.st_size > LARGEST_FILE:
            return Head(problem=f"too large for a record; expected at most {LARGEST_FILE} bytes")
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a Path for each of 100,000 files costs a second
            data = file.read(known.st_size)
        head = _decode_head(data)
        if head.digest != digest(data):
            return Head(problem=EDITED)
        upgraded({"schema": head.schema}, path)
        inputs = inputs_of(head.schema, head.inputs)
    except (OSError, ValueError, RecursionError, DataError) as error:
        return Head(problem=f"the record cannot be read: {getattr(error, 'what', error)}")
    return msgspec.structs.replace(head, inputs=inputs)


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
