"""Packaging labels: checked, written in one canonical form, and declared.

The same content gives the same bytes, whatever the order of the rows and the notation of the numbers: rows sorted
by id, the label columns, groups and split only, each number in the fewest digits that give it again, ``\\n`` at the end
of each line.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuco_core.errors import DataError, NeucoError, UsageError
from neuco_core.fetch.links import labels_here
from neuco_core.fields import ID
from neuco_core.files import replacing
from neuco_core.specs import Task
from neuco_core.tables import csv as _csv
from neuco_core.tables.labels import (
    LabelOptions,
    Labels,
    labels_from_table,
    load_labels,
    read_columns,
    read_labels,
    wanted_columns,
)

ENDING = {"regression": "regr", "classification": "cls", "multilabel": "multi"}
FEW = 20  # different whole numbers, which may be classes
LIST = re.compile(r"\s*[;|]\s*")  # between the labels of one sample
BRACKETS = re.compile(r"\[(.*)\]", re.DOTALL)  # the same as JSON or as Python prints it: ["forest", "water"]
Match = Callable[[Labels], Labels]


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
    columns: tuple[str, ...]
    declaration: str

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "path": str(self.path)}


def canonical_bytes(labels: Labels) -> bytes:
    """The one way to write these labels."""
    values = labels.values.reshape(len(labels), -1)
    parts = labels.parts()
    lines = [["id", *labels.columns, *parts]]
    for row in sorted(range(len(labels)), key=lambda row: labels.ids[row]):
        group_and_split = [str(part[row]) for part in parts.values()]
        lines.append([labels.ids[row], *(_cell(value, labels) for value in values[row]), *group_and_split])
    return "".join(",".join(map(_quoted, line)) + "\n" for line in lines).encode()


def _quoted(text: str) -> str:
    # Not the csv module's writer: which characters it quotes has changed between versions of Python.
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\r\n') else text


def _cell(value: float, labels: Labels) -> str:
    if labels.classes:
        return labels.classes[int(value)]
    # A class is a whole number; + 0.0 makes 0.0 of -0.0, which is the same label.
    return str(int(value)) if labels.kind != "regression" else repr(float(value) + 0.0)


def package_labels(
    source: Path,
    *,
    out: Path | None = None,
    kind: str | None = None,
    task: str | None = None,
    columns: Sequence[str] = ("label",),
    group_column: str | None = None,
    split_column: str | None = None,
    id_column: str = "id",
    tasks: Iterable[Task] = (),
    replace: bool = False,
    match: Match | None = None,
) -> Package:
    """Check a label file, compare it with the labels of ``tasks``, and write it in canonical form.

    ``match`` may give the samples the names that their dataset has for them, or refuse the labels.
    """
    name = task if task is not None else source.stem.partition("__")[0].lower().replace(" ", "_")
    if not ID.fullmatch(name):
        expected = "1 to 64 of a-z, 0-9, _ and -"
        raise UsageError("not a task id", expected=expected, got=repr(name), hint="Give one with --task")
    try:
        _, header = next(_csv.read_rows(source, id_column))
    except DataError as error:
        if error.what.startswith("no column"):
            error.hint += ", or give --id-column NAME"
        raise
    for column in columns:
        if column not in header:
            others = [other for other in header if other not in (id_column, group_column, split_column)]
            hint = f"Give --column {others[0]}" if len(others) == 1 else "Give --column with one of them"
            raise DataError(f"no column {column!r}", where=source, got=f"columns {_csv.shown(header)}", hint=hint)
    kind, kind_from = (kind, "given") if kind else guess_kind(source, columns, id_column)
    options = LabelOptions(task=name, columns=columns, group_column=group_column, split_column=split_column)
    if kind == "multilabel" and len(columns) == 1:
        labels = _from_lists(source, id_column, options)
    else:
        labels = read_labels(source, kind, id_column=id_column, **options)
    labels = match(labels) if match else labels
    data = canonical_bytes(labels)
    dataset, compared, not_compared = compare(labels, [other for other in tasks if other.id != name])
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
        columns=labels.columns,
        declaration=declaration(labels, path.name, digest, len(data), dataset or "your_dataset"),
    )


def _from_lists(source: Path, id_column: str, options: LabelOptions) -> Labels:
    """Labels of which a sample has several in one cell, ``forest; water``: a column of 0 and 1 for each."""
    wanted = wanted_columns(options)
    table, lines = read_columns(source, wanted, id_column)
    # An empty cell is a missing label, as everywhere; an empty list says that the sample has none of the labels.
    rows = [None if _csv.is_empty(cell) else _labels_in(cell.strip()) for cell in table.pop(wanted[1])]
    names = sorted({name for row in rows for name in row or ()})
    clash = [name for name in names if name in wanted or name in ("group", "split")]
    if clash:
        raise DataError(f"a label has the name of a column: {clash[0]!r}", where=source, hint="Rename the column")
    table |= {name: ["" if row is None else str(int(name in row)) for row in rows] for name in names}
    options["columns"] = names
    return labels_from_table(table, "multilabel", where=source, rows=lines, **options)


def _labels_in(cell: str) -> list[str]:
    """The labels of one sample."""
    inner = BRACKETS.fullmatch(cell)
    parts = inner[1].split(",") if inner else LIST.split(cell)
    return [part for part in (part.strip(" \t\n'\"") if inner else part for part in parts) if part]


def guess_kind(source: Path, columns: Sequence[str], id_column: str = "id") -> tuple[str, str]:
    """The kind that the file's name says (``x__regr.csv``); without that, names and 0/1 are classes.

    What could be either is asked for: a guess would become a score that nobody meant.
    """
    ending = source.stem.rpartition("__")[2] if "__" in source.stem else ""
    for kind, short in ENDING.items():
        if ending in (kind, short):
            return kind, "the name of the file"
    rows = _csv.read_rows(source, id_column)
    _, header = next(rows)
    wanted = [header.index(name) for name in columns if name in header]
    cells = [row[column].strip() for _, row in rows for column in wanted]
    distinct = set(cells) - {""}
    if distinct and distinct <= {"0", "1", "0.0", "1.0"}:
        several = len(wanted) > 1
        return ("multilabel", "the labels: several columns of 0 and 1") if several else ("classification", "the labels")
    numbers = {number for number in map(_csv.number_in, distinct) if number is not None}
    if distinct and not numbers:  # words, which may be lists of labels, or too many to be classes
        example = next((cell for cell in cells if len(_labels_in(cell)) > 1 or BRACKETS.fullmatch(cell)), "")
        if example:
            raise _which(source, f"{example!r}", "multilabel (several labels a sample) or classification")
        if len(distinct) > max(FEW, len(cells) // 2):
            got = f"{len(distinct)} different words in {len(cells)} rows, such as {cells[0]!r}"
            raise _which(source, got, "classification if these are classes; numbers are written as 12.5")
        return "classification", "the labels"
    few = len(numbers) <= FEW and len(cells) >= 5 * len(numbers)
    if numbers and few and len(numbers) == len(distinct) and all(number.is_integer() for number in numbers):
        got = f"{len(numbers)} different whole numbers from {min(numbers):g} to {max(numbers):g}"
        kinds = "classification (they are classes) or regression (they are amounts, or grades: then with --metric kappa"
        raise _which(source, got, f"{kinds} or mae)")
    return "regression", "the labels"


def _which(source: Path, got: str, kinds: str) -> UsageError:
    return UsageError("what kind of labels are these?", where=source, expected=f"--kind {kinds}", got=got)


def compare(labels: Labels, others: Iterable[Task]) -> tuple[str | None, list[str], list[str]]:
    """Refuse labels that another task on this machine has; gives their likely dataset, and what was compared."""
    dataset: str | None = None
    compared: list[str] = []
    not_compared: list[str] = []
    content = _content(labels)
    for task in others:
        try:
            other = load_labels(task) if labels_here(task) else None
        except NeucoError:  # another task's broken file is not this contributor's concern
            other = None
        if other is None:
            not_compared.append(task.id)
            continue
        compared.append(task.id)
        if _content(other) == content:
            got = f"the same {len(labels)} rows"
            raise DataError("another task has the same labels", where=f"task {task.id!r}", got=got)
        if set(labels.ids) <= set(other.ids):
            dataset = task.dataset
    return dataset, compared, not_compared


def _content(labels: Labels) -> dict[str, bytes]:
    """The labels by id, whatever their columns are called: dictionaries do not mind the order."""
    return {name: row.tobytes() for name, row in zip(labels.ids, labels.values + 0.0, strict=True)}


def _write(path: Path, source: Path, data: bytes, replace: bool) -> None:
    if path.exists() and not path.is_file():
        raise UsageError("not a file", where=path, hint="Give the name of a file with --out")
    if path.exists() and path.read_bytes() != data and not replace:
        what = "this is the source file itself" if path.samefile(source) else "another file exists there"
        raise UsageError(what, where=path, hint="Give another name with --out, or --force to replace it")
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def declaration(labels: Labels, file: str, sha256: str, size: int, dataset: str) -> str:
    """The lines for the plugin's ``__init__.py``."""
    address = f"pkg://neuco_tasks.{labels.task.replace('-', '_')}/{file}"  # a package's name has no hyphen
    lines = [f'    id="{labels.task}",', f'    dataset="{dataset}",', f'    kind="{labels.kind}",']
    if labels.columns != ("label",):
        lines.append(f"    columns={labels.columns!r},")
    lines += [f'    {name}_column="{name}",' for name in labels.parts()]
    if tuple(labels.parts()) == ("group",):
        lines.append('    splitter="group",')
    source = f'        {json.dumps(address, ensure_ascii=False)},\n        sha256="{sha256}",\n        size={size},'
    return "\n".join(["Task(", *lines, "    source=Remote(", source, "    ),", ")"])
