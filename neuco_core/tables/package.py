"""Packaging labels: checked, written in one canonical form, and declared.

The same content gives the same bytes, whatever the order of the rows and the notation of the numbers: rows sorted
by id, the label columns and the groups only, each number in the fewest digits that give it again, ``\\n`` at the end
of each line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuco_core._validate import ID
from neuco_core.errors import DataError, NeucoError, UsageError
from neuco_core.tables import rows as _csv
from neuco_core.tables.labels import Labels, load_labels, read_labels

if TYPE_CHECKING:
    from neuco_core.specs import Task

KIND_BY_ENDING = {"regr": "regression", "regression": "regression", "cls": "classification"}
KIND_BY_ENDING["classification"] = "classification"
ENDING = {"regression": "regr", "classification": "cls"}


@dataclass(frozen=True)
class Package:
    """What was written, and how to declare it."""

    path: Path
    task: str
    kind: str
    kind_from: str
    sha256: str
    size: int
    rows: int
    dropped: Mapping[str, int]
    classes: tuple[str, ...]
    lowest: float
    highest: float
    compared: tuple[str, ...]
    not_compared: tuple[str, ...]
    declaration: str

    def to_json(self) -> dict[str, Any]:
        items = dict(self.__dict__)
        return items | {"path": str(self.path), "dropped": dict(self.dropped)}


def canonical_bytes(labels: Labels) -> bytes:
    """The one way to write these labels."""
    values = labels.values.reshape(len(labels), -1)
    lines = [["id", *labels.columns] + ["group"] * (labels.groups is not None)]
    for row in sorted(range(len(labels)), key=lambda row: labels.ids[row]):
        group = [] if labels.groups is None else [str(labels.groups[row])]
        lines.append([labels.ids[row], *(_cell(value, labels) for value in values[row]), *group])
    return "".join(",".join(map(_quoted, line)) + "\n" for line in lines).encode()


def _quoted(text: str) -> str:
    # Not the csv module's writer: which characters it quotes has changed between versions of Python.
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\r\n') else text


def _cell(value: float, labels: Labels) -> str:
    if labels.classes:
        return labels.classes[int(value)]
    # A class is a whole number; + 0.0 makes 0.0 of -0.0, which is the same label.
    return str(int(value)) if labels.kind == "classification" else repr(float(value) + 0.0)


def package_labels(
    source: Path,
    *,
    out: Path | None = None,
    kind: str | None = None,
    task: str | None = None,
    columns: Sequence[str] = ("label",),
    group_column: str | None = None,
    tasks: Iterable[Task] = (),
    replace: bool = False,
) -> Package:
    """Check a label file, compare it with the labels of ``tasks``, and write it in canonical form."""
    name = _task_id(source, task)
    kind, kind_from = (kind, "given") if kind else guess_kind(source, columns)
    labels = read_labels(source, kind, task=name, columns=columns, group_column=group_column)
    data = canonical_bytes(labels)
    others = [other for other in tasks if other.id != name]
    dataset, compared, not_compared = compare(labels, others)
    path = out or Path(f"{name}__{ENDING[kind]}.csv")
    _write(path, source, data, replace)
    digest = hashlib.sha256(data).hexdigest()
    return Package(
        path=path,
        task=name,
        kind=kind,
        kind_from=kind_from,
        sha256=digest,
        size=len(data),
        rows=len(labels),
        dropped=labels.dropped,
        classes=labels.classes,
        lowest=float(np.min(labels.values)),
        highest=float(np.max(labels.values)),
        compared=tuple(compared),
        not_compared=tuple(not_compared),
        declaration=declaration(labels, path.name, digest, len(data), dataset or "your_dataset"),
    )


def _task_id(source: Path, task: str | None) -> str:
    name = task if task is not None else source.stem.partition("__")[0].lower().replace(" ", "_")
    if not ID.fullmatch(name):
        expected = "1 to 64 of a-z, 0-9, _ and -"
        raise UsageError("not a task id", expected=expected, got=repr(name), hint="Give one with --task")
    return name


def guess_kind(source: Path, columns: Sequence[str]) -> tuple[str, str]:
    """The kind that the file's name says (``x__regr.csv``); without that, names and 0/1 are classes."""
    ending = source.stem.rpartition("__")[2] if "__" in source.stem else ""
    if ending in KIND_BY_ENDING:
        return KIND_BY_ENDING[ending], "the name of the file"
    _csv.scan(source)
    rows = _csv.read_rows(source)
    _, header = next(rows)
    places = [header.index(name) for name in columns if name in header]
    cells = {row[place].strip() for _, row in rows for place in places} - {""}
    if cells and (cells <= {"0", "1", "0.0", "1.0"} or not any(map(_is_number, cells))):
        return "classification", "the labels"
    return "regression", "the labels"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def compare(labels: Labels, others: Iterable[Task]) -> tuple[str | None, list[str], list[str]]:
    """Refuse labels that another task has. Gives the dataset they seem to belong to, and which tasks were compared.

    Only what is on this machine is read; a task whose labels would have to be fetched is not compared.
    """
    dataset: str | None = None
    compared: list[str] = []
    not_compared: list[str] = []
    for task in others:
        other = _local_labels(task)
        if other is None:
            not_compared.append(task.id)
            continue
        compared.append(task.id)
        if _content(other) == _content(labels):
            raise DataError(
                "another task has the same labels", where=f"task {task.id!r}", got=f"the same {len(labels)} rows"
            )
        if set(labels.ids) <= set(other.ids):
            dataset = task.dataset
    return dataset, compared, not_compared


def _content(labels: Labels) -> dict[str, bytes]:
    """The labels by id, whatever their columns are called: dictionaries do not mind the order."""
    return {name: row.tobytes() for name, row in zip(labels.ids, labels.values + 0.0, strict=True)}


def _local_labels(task: Task) -> Labels | None:
    from neuco_core.fetch.fetch import cached, is_local
    from neuco_core.fetch.links import linked_file

    try:
        here = is_local(task.source.url) or linked_file(task.dataset, task.source) or cached(task.source)
        return load_labels(task) if here else None
    except NeucoError:
        return None  # another task's broken file is not this contributor's concern; it counts as not compared


def _write(path: Path, source: Path, data: bytes, replace: bool) -> None:
    from neuco_core.files import write_atomic

    if path.exists() and not path.is_file():
        raise UsageError("not a file", where=path, hint="Give the name of a file with --out")
    if path.exists() and path.read_bytes() != data and not replace:
        what = "this is the source file itself" if path.samefile(source) else "another file exists there"
        raise UsageError(what, where=path, hint="Give another name with --out, or --force to replace it")
    try:
        write_atomic(path, data)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", where=path) from error


def declaration(labels: Labels, file: str, sha256: str, size: int, dataset: str) -> str:
    """The lines for the plugin's ``__init__.py``."""
    return "\n".join(_declaration(labels, file, sha256, size, dataset))


def _declaration(labels: Labels, file: str, sha256: str, size: int, dataset: str) -> Iterator[str]:
    yield "Task("
    yield f'    id="{labels.task}",'
    yield f'    dataset="{dataset}",'
    yield f'    kind="{labels.kind}",'
    if labels.columns != ("label",):
        yield f"    columns={labels.columns!r},"
    if labels.groups is not None:
        yield '    group_column="group",'
    yield "    source=Remote("
    address = f"pkg://neuco_tasks.{labels.task.replace('-', '_')}/{file}"  # a package's name has no hyphen
    yield f"        {json.dumps(address, ensure_ascii=False)},"
    yield f'        sha256="{sha256}",'
    yield f"        size={size},"
    yield "    ),"
    yield ")"
