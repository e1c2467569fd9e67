"""Records in the registry: ``records/METHOD.jsonl``, one record a line, sorted by task and protocol.

A version after the first has a file of its own, ``METHOD@2.jsonl``: no version takes the place of another. Whatever is
read is read strictly, and refused with the file and the line: only neuco writes records, so a line is what neuco would
write, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import msgspec

from neuco_core.env import layers
from neuco_core.errors import DataError, UsageError
from neuco_core.files import read_limited, write_atomic
from neuco_core.records.model import LABEL, SCHEMA, Key, Record, Sha256, problems, record_line
from neuco_core.specs import versioned_id
from neuco_core.text import shorten

FOLDER = "records"
LARGEST_FILE = 500_000_000  # bytes: 400,000 records of 40 splits
RESCORE = "Delete the line, and run `neuco score` for its cell again"
MOVE = "Move it to where it belongs, or delete it"


class _Line(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    digest: Sha256


class _Schema(msgspec.Struct):
    schema: int = 0


class _Cell(msgspec.Struct):
    """What says which cell a line is about."""

    method: str
    method_version: int
    task: str
    task_version: int
    protocol: str


_line = msgspec.json.Decoder(_Line).decode
_cell = msgspec.json.Decoder(_Cell).decode
_schema = msgspec.json.Decoder(_Schema).decode


def parse_record(line: bytes, where: object) -> Record:
    """A record from its line, which may come from a stranger; what is wrong is an error with the reason."""
    try:
        schema = _schema(line).schema
        if schema != SCHEMA:  # once there is an older one, this is the place that turns its values into today's
            newer = schema > SCHEMA
            raise DataError(
                "this record was made by a newer version of neuco" if newer else "not a record of a known schema",
                where=where,
                expected=f"schema {SCHEMA}",
                got=f"schema {shorten(schema)}",
                hint="Update neuco, or delete the line" if newer else RESCORE,
            )
        values = msgspec.structs.asdict(_line(line))
    except (ValueError, RecursionError) as error:
        what, _, field = str(error).partition(" - at `$")
        what = f"bad {field.strip('.`')[:80] or 'record'}: {what[:300]}"
        raise DataError(what, where=where, hint=RESCORE) from error
    digest = values.pop("digest")
    record = Record(**values)
    for problem in problems(record):
        raise DataError(problem, where=where, hint=RESCORE)
    written = record_line(record)
    if digest.encode() not in written:
        raise DataError("it was edited after it was written: its digest does not match", where=where, hint=RESCORE)
    if written != line:
        what = "a name that is there twice, or a text that neuco would not write"
        raise DataError(what, where=where, hint=RESCORE)
    return record


def records_file(registry: Path, method: str) -> Path:
    """Where the records of a method (its label, ``x`` or ``x@2``) are kept in one registry."""
    return registry / FOLDER / f"{method}.jsonl"


def read_all(registry: Path, top: Path | None = None) -> list[Record]:
    """All records, by method, task and protocol. A registry hides the same cells in those that lie below it.

    ``top`` leaves out the registries above that one.
    """
    records: dict[Key, Record] = {}
    for layer in reversed(layers(registry, top)):
        for path in _files(layer / FOLDER):
            records |= _read(path)
    return [records[key] for key in sorted(records)]


def read_method(registry: Path, method: str) -> dict[Key, Record]:
    """All records of a method by their cells, in order of task and protocol."""
    records: dict[Key, Record] = {}
    for layer in reversed(layers(registry)):
        path = records_file(layer, method)
        if path.exists() or path.is_symlink():
            _check_file(path)
            records |= _read(path)
    return {key: records[key] for key in sorted(records)}


def find_record(registry: Path, key: Key) -> Record | None:
    """The record of a cell (see ``Record.key``)."""
    return read_method(registry, key[0]).get(key)


def _files(folder: Path) -> list[Path]:
    """The files of records in a folder. Hidden ones are none: a killed run may leave one half-written.

    Whatever else is there is refused: records under a wrong name would otherwise be missing without a word.
    """
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        what = f"the folder of records cannot be read: {error.strerror or error}"
        raise DataError(what, where=folder, hint="Set NEUCO_REGISTRY to a registry that can be read") from error
    for path in paths:
        _check_file(path)
    return paths


def _check_file(path: Path) -> None:
    # What a link leads to may be elsewhere tomorrow; a pipe or a device may never end.
    if path.suffix != ".jsonl" or not LABEL.fullmatch(path.stem) or path.is_symlink() or not path.is_file():
        raise DataError("not a file of records, in their folder", where=path, expected="METHOD.jsonl", hint=MOVE)


def _read(path: Path) -> Mapping[Key, Record]:
    status = path.stat()
    return _read_file(path, (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))


@lru_cache(maxsize=256)
def _read_file(path: Path, state: tuple[int, ...]) -> Mapping[Key, Record]:
    """The records of a file, read once in a process while it stays as it is."""
    records: dict[Key, Record] = {}
    for number, line in enumerate(_content(path).splitlines(keepends=True), 1):
        where = f"{path}:{number}"
        record = parse_record(line, where)
        if record.key[0] != path.stem:
            raise DataError("a record in the wrong file", where=where, expected=f"{record.key[0]}.jsonl", hint=MOVE)
        if record.key in records:
            raise DataError("a second record of the same cell", where=where, hint="Delete one of the two lines")
        records[record.key] = record
    return records


def _content(path: Path) -> bytes:
    try:
        return read_limited(path, LARGEST_FILE)
    except OSError as error:
        what = f"the records cannot be read: {error.strerror or error}"
        raise DataError(what, where=path, hint="Make the file readable") from error


def write_records(registry: Path, new: Iterable[Record], gone: Iterable[Key] = ()) -> None:
    """Add records, or put them in the place of others, and take the cells in ``gone`` away; each file at once.

    What the strict reader would refuse is never written. Lines of other cells stay as they are.
    """
    changes: dict[str, dict[Key, bytes]] = {}
    for record in new:
        line = record_line(record)
        parse_record(line, records_file(registry, record.key[0]))
        changes.setdefault(record.key[0], {})[record.key] = line
    for key in gone:
        changes.setdefault(key[0], {})[key] = b""
    for method, cells in changes.items():
        path = records_file(registry, method)
        lines: dict[Key, bytes] = {}
        # Not read strictly: each finished cell of a run writes its file again.
        for number, line in enumerate(_content(path).splitlines(keepends=True) if path.exists() else (), 1):
            try:
                cell = _cell(line)
            except (ValueError, RecursionError) as error:
                raise DataError(f"bad record: {str(error)[:300]}", where=f"{path}:{number}", hint=RESCORE) from error
            task = versioned_id(cell.task, cell.task_version)
            lines[versioned_id(cell.method, cell.method_version), task, cell.protocol] = line
        lines |= cells
        data = b"".join(lines[key] for key in sorted(lines))
        if data:
            write_atomic(path, data)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def exclusive(registry: Path) -> Iterator[None]:
    """Let one run at a time write records, and clear away what a killed one left half-written."""
    from filelock import FileLock, Timeout  # heavy: asyncio, 0.1 s, and only runs need it

    folder = registry / FOLDER
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        hint = "Wait for it, or set NEUCO_REGISTRY"
        raise UsageError("another run is writing records here", where=folder, hint=hint) from None
    except NotImplementedError:  # some network file systems cannot lock
        pass
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        for path in folder.glob(".*.jsonl.*"):
            path.unlink(missing_ok=True)
        yield
    finally:
        lock.release()


def unwritable(path: Path, error: OSError) -> UsageError:
    reason = error.strerror or str(error)
    return UsageError(f"the registry cannot be written: {reason}", where=path, hint="Set NEUCO_REGISTRY to a folder")
