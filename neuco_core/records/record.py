"""The score record: one immutable JSON file per (method, task, protocol), written by neuco and never by hand.

A file has one field per line, in alphabetical order, so that a change is easy to read. ``digest`` is the sha256 of
all lines but its own and ``provenance``: an edited number is noticed, and the same score made elsewhere is the
same text apart from those two.
"""

from __future__ import annotations

import hashlib
import math
import re
import shlex
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

from neuco_core._validate import ID
from neuco_core.errors import DataError
from neuco_core.jsonio import canonical
from neuco_core.scoring.quality import summarize

SCHEMA = 1
STATUSES = ("ok", "failed", "skipped", "not-applicable")
FAILURES = ("data", "dependency", "method", "timeout", "memory", "crash")
DEFAULT_PROTOCOL = "neuco-2025"
LARGEST_FILE = 4_000_000
MOVE = "Move it to where it belongs, or delete it"

# What a record repeats of the registered method and metric. It changes no score, and so it is no input.
CLAIMS = ("baseline", "greater_is_better", "lower", "upper")

Scalar: TypeAlias = str | int | float | bool | None
Key: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True)
class Record:
    """The outcome of one method on one task under one protocol; ``None`` in ``per_split`` is an undefined split.

    ``inputs`` is all that can change the numbers, and ``fingerprint`` its hash; ``provenance`` tells who made the
    record, where and how long it took.
    """

    method: str
    method_version: int
    task: str
    task_version: int
    dataset: str
    kind: str
    metric: str
    protocol: str
    status: str
    fingerprint: str
    inputs: Mapping[str, Scalar]
    greater_is_better: bool
    reason: str = ""
    failure: str | None = None
    per_split: tuple[float | None, ...] = ()
    mean: float | None = None
    std: float | None = None
    q: float | None = None
    metrics: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    samples: Mapping[str, int] = field(default_factory=dict)
    folds: Mapping[str, int] = field(default_factory=dict)
    lower: float | None = None
    upper: float | None = None
    baseline: bool = False
    dim: int | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA

    @property
    def key(self) -> Key:
        return self.method, self.task, self.protocol

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    def to_json(self) -> dict[str, Any]:
        """Plain values, the digest left out."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}


FIELDS = tuple(f.name for f in fields(Record))


def summary(per_split: Sequence[float | None], greater_is_better: bool) -> tuple[float, float, float] | None:
    """Mean, population std and Q over the defined splits, or None if there are none."""
    found = summarize(per_split, greater_is_better=greater_is_better)
    return None if math.isnan(found.mean) else (found.mean, found.std, found.q)


def fingerprint(inputs: Mapping[str, Scalar]) -> str:
    return hashlib.sha256(canonical(dict(inputs)).encode()).hexdigest()


def record_bytes(record: Record) -> bytes:
    """The file's content."""
    lines = {name: f'"{name}": {canonical(value)}' for name, value in record.to_json().items()}
    # The digest's own line is not part of what it is taken of, so a stand-in of any value will do.
    stand_in = f'"digest": "{"0" * 64}"'
    lines["digest"] = stand_in
    body = ("{\n" + ",\n".join(lines[name] for name in sorted(lines)) + "\n}\n").encode()
    return body.replace(stand_in.encode(), f'"digest": "{digest(body)}"'.encode())


_UNSIGNED = re.compile(rb'^"(?:digest|provenance)": .*\n', re.MULTILINE)


def digest(data: bytes) -> str:
    return hashlib.sha256(_UNSIGNED.sub(b"", data)).hexdigest()


def record_path(registry: Path, method: str, task: str, protocol: str) -> Path:
    """Where a record is kept; the usual protocol is not named, others are, with odd characters escaped."""
    return registry / "results" / method / record_name(task, protocol)


def record_name(task: str, protocol: str) -> str:
    suffix = "" if protocol == DEFAULT_PROTOCOL else "@" + quote(protocol, safe="+=,")
    return f"{task}{suffix}.json"


def rebuild(where: object) -> str:
    """The advice for a record that cannot be used: the command that makes its cell anew, told by the file's name."""
    path = Path(str(where))
    task, _, protocol = unquote(path.stem).partition("@")
    if not (ID.fullmatch(path.parent.name) and ID.fullmatch(task)):
        return "Delete the file, and make its cell anew with `neuco score --all`"
    chosen = ("--method", path.parent.name, "--task", task, "--protocol", protocol or DEFAULT_PROTOCOL)
    return f"Delete the file and run `{shlex.join(('neuco', 'score', '--all', *chosen))}`"


def read_record(path: Path, *, expect_place: bool = True) -> Record:
    """Read a record strictly: it may come from a stranger. Whatever is wrong with it is an error with the reason.

    ``expect_place`` also demands that its folder and file name are those of its ids.
    """
    from neuco_core.records.check import parse_record

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
            raise DataError("not a record", where=path, expected="a file", hint="Name a record's file")
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        what = f"the record cannot be read: {error.strerror or error}"
        raise DataError(what, where=path, hint=f"Make it readable, or: {rebuild(path)}") from error
    if len(data) > LARGEST_FILE:
        expected = f"at most {LARGEST_FILE} bytes"
        raise DataError("too large for a record", where=path, expected=expected, hint=rebuild(path))
    return data


def write_record(record: Record, registry: Path) -> Path:
    """Write a record atomically. What a strict reader would refuse is never written."""
    from neuco_core.files import write_atomic
    from neuco_core.records.check import parse_record

    path = record_path(registry, *record.key)
    data = record_bytes(record)
    parse_record(data, path)
    write_atomic(path, data)
    return path


def record_files(registry: Path) -> Iterator[Path]:
    """All record files, by method and task. Hidden files are not records: a killed run may leave one half-written.

    Whatever else is there is refused: a record with a wrong name would otherwise be missing without a word. So is a
    link: what it leads to may be elsewhere tomorrow, or be no file at all.
    """
    root = registry / "results"
    if not root.exists():
        return
    for folder in _visible(root):
        if not folder.is_dir():
            raise _stray(folder, "METHOD/TASK.json")
        for file in _visible(folder):
            if file.suffix != ".json" or file.is_symlink() or not file.is_file():
                raise _stray(file, f"{folder.name}/TASK.json")
            yield file


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


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
