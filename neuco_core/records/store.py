"""Records in the registry: ``results/METHOD/TASK.json``, each a file of its own or, at the same place, in a pack.

A run writes files; publishing packs them (see ``packs``), and a file hides the packed record of its cell. A record is
named by its place either way: whoever has the path can read it here. A protocol other than the usual one is part of the
name, ``TASK@ridge.json``; so are versions after the first, ``METHOD.2/TASK.3.json``: no version takes the place of
another.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import msgspec

from neuco_core.errors import DataError, UsageError
from neuco_core.paths import layers
from neuco_core.records.model import CLAIMS, Key, Record, Scalar, digest, record_bytes
from neuco_core.records.packs import DEFAULT_PROTOCOL as DEFAULT_PROTOCOL  # noqa: PLC0414 - one place for readers
from neuco_core.records.packs import PacksAwayError, change_packs, key_at, packed, read_manifest
from neuco_core.records.packs import folder_name as folder_name  # noqa: PLC0414
from neuco_core.records.packs import record_name as record_name  # noqa: PLC0414
from neuco_core.records.parse import EDITED, LARGEST_FILE, parse_record, rescore
from neuco_core.records.upgrade import inputs_of, upgraded
from neuco_core.text import counted

log = logging.getLogger(__name__)
MOVE = "Move it to where it belongs, or delete it"
NOT_A_FILE = "not a regular file"


def record_path(registry: Path, method: str, task: str, protocol: str) -> Path:
    """Where the record of a cell (see ``Record.key``) is kept in one registry."""
    return registry / "results" / folder_name(method) / record_name(task, protocol)


def find_record(registry: Path, method: str, task: str, protocol: str) -> Path | None:
    """The record's place in the registry or in one that lies below it."""
    paths = [record_path(layer, method, task, protocol) for layer in layers(registry)]
    return next((path for path in paths if os.path.lexists(path) or _packed(path) is not None), None)


def record_names(registry: Path, method: str) -> set[str]:
    """The file names of all records of a method."""
    folder = folder_name(method)
    found: set[str] = set()
    for layer in layers(registry):
        found |= {path.name for path in (layer / "results" / folder).glob("[!.]*.json")}
        try:
            found |= packed(layer, folder).keys()
        except PacksAwayError as error:
            _say_away(str(error))
    return found


def _packed(path: Path) -> bytes | None:
    """The packed record that has this place; packs that cannot be had now have none, which is said."""
    *_, results, folder, name = ("", "", *path.absolute().parts)
    if results != "results":
        return None
    try:
        return packed(path.absolute().parents[2], folder).get(name)
    except PacksAwayError as error:
        _say_away(str(error))
        return None


@cache
def _say_away(error_text: str) -> None:
    log.warning("%s", error_text)


def read_record(path: Path, *, expect_place: bool = True) -> Record:
    """Read a record strictly. ``expect_place`` also demands that its folder and file name are those of its ids."""
    record = parse_record(record_content(path), path)
    if expect_place:
        wanted = record_path(Path(), *record.key).parts[-2:]
        if path.absolute().parts[-2:] != wanted:
            expected, got = "/".join(wanted), "/".join(path.parts[-2:])
            raise DataError("a record in the wrong place", where=path, expected=expected, got=got, hint=MOVE)
    return record


def record_content(path: Path) -> bytes:
    """The bytes of a record, by its place."""
    data = None if os.path.lexists(path) else _packed(path)
    return _read(path) if data is None else data


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
    """The places of all records, by method and task, each cell once: a registry hides the same cell in those below it.

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
        for method in read_manifest(layer).by_method:
            for name in packed(layer, method):
                found.setdefault((method, name), root / method / name)
    yield from (found[place] for place in sorted(found))


def _visible(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        what = f"the folder of records cannot be read: {error.strerror or error}"
        raise DataError(what, where=folder, hint="Set NEUCO_REGISTRY to a registry that can be read") from error


def _stray(path: Path, expected: str) -> DataError:
    return DataError("not a record, in the folder of records", where=path, expected=expected, hint=MOVE)


def read_all(registry: Path) -> list[Record]:
    """All records, each read strictly."""
    return [read_record(path) for path in record_files(registry)]


def read_some(registry: Path, keys: Iterable[Key]) -> list[Record]:
    """The records of these cells, as far as there are any."""
    paths = (find_record(registry, *key) for key in keys)
    return [read_record(path) for path in paths if path is not None]


def read_keys(registry: Path) -> Iterator[Key]:
    """All cells that have a record, by the places of the records, which nobody has opened."""
    return (key_at(path.parent.name, path.name) for path in record_files(registry))


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
    """The heads of all records by folder and file name. Packs that cannot be had now are said, and count as nothing."""
    heads: dict[tuple[str, str], Head] = {}
    for layer in reversed(layers(registry)):
        heads |= _packed_heads(layer)
        root = layer / "results"
        for folder in os.scandir(root) if root.is_dir() else ():
            if folder.is_dir() and not folder.name.startswith("."):
                for file in os.scandir(folder.path):
                    if file.name.endswith(".json") and not file.name.startswith("."):
                        heads[folder.name, file.name] = read_head(file.path)
    return heads


def _packed_heads(layer: Path) -> dict[tuple[str, str], Head]:
    heads: dict[tuple[str, str], Head] = {}
    away: list[PacksAwayError] = []
    for method in read_manifest(layer).by_method:
        try:
            # The hash of the whole pack was right, so no digest of its records is computed.
            records = packed(layer, method)
            heads |= {(method, name): _head(data, name, signed=False) for name, data in records.items()}
        except PacksAwayError as error:
            away.append(error)
    if away:
        _say_away(f"{away[0]}. Without them, the cells of {counted(len(away), 'method')} count as not scored")
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
    except FileNotFoundError as error:
        data = _packed(Path(path)) or b""
        if not data:
            return Head(problem=f"the record cannot be read: {error}")
    except OSError as error:
        return Head(problem=f"the record cannot be read: {error}")
    return _head(data, path)


def _head(data: bytes, where: str, *, signed: bool = True) -> Head:
    try:
        head = _decode_head(data)
        if signed and head.digest != digest(data):
            return Head(problem=EDITED)
        upgraded({"schema": head.schema}, where)
        inputs = inputs_of(head.schema, head.inputs)
    except (ValueError, RecursionError, DataError) as error:
        return Head(problem=f"the record cannot be read: {getattr(error, 'what', error)}")
    return msgspec.structs.replace(head, inputs=inputs)


def pack_records(registry: Path, new: Iterable[Record], gone: Iterable[Key] = (), urls: Iterable[str] = ()) -> None:
    """Put records into the packs of a registry, and take the cells in ``gone`` away, wherever their records are.

    What the strict reader would refuse is never packed.
    """
    content: dict[str, dict[str, bytes]] = {}
    for record in new:
        path, data = record_path(registry, *record.key), record_bytes(record)
        parse_record(data, path)
        content.setdefault(path.parent.name, {})[path.name] = data
    places = [record_path(registry, *key) for key in gone]
    change_packs(registry, content, [(path.parent.name, path.name) for path in places], urls)
    for path in (*places, *(registry / "results" / folder / name for folder in content for name in content[folder])):
        path.unlink(missing_ok=True)  # a loose record would hide what was packed


def pack_all(registry: Path) -> int:
    """Pack every record that is a file of its own, as it is; gives how many."""
    content: dict[str, dict[str, bytes]] = {}
    paths = [path for path in record_files(registry) if path.is_file()]
    for path in paths:
        read_record(path)
        content.setdefault(path.parent.name, {})[path.name] = path.read_bytes()
    change_packs(registry, content)
    for path in paths:
        path.unlink()
        if not any(path.parent.iterdir()):
            path.parent.rmdir()
    return len(paths)


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
