"""The label files of a run, ``<task>__<type>.csv`` in one folder: a file that is odd concerns its own task, no other.

Our own reader refuses what cannot be meant. NeuCo-Bench computes with it, so a drop-in must as well: two classes by any
two numbers (it scales labels to 0 … 1 also for a classification), and labels that are all the same if it is told not
to scale them. What even NeuCo-Bench gets no score from is kept as a reason; its ids still count for standardising, and
its random numbers are still drawn.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuco_core.errors import DataError
from neuco_core.tables.csv import clean_id, read_rows, shown
from neuco_core.tables.labels import Labels, content_hash, read_labels

KINDS = {
    "regr": "regression",
    "regression": "regression",
    "cls": "classification",
    "classification": "classification",
}


@dataclass(frozen=True)
class LabelFile:
    task: str
    kind: str
    path: Path


@dataclass(frozen=True)
class TaskLabels:
    """The rows of a file that have a label. Without ``labels``, ``problem`` says why they cannot be scored."""

    ids: tuple[str, ...]
    labels: Labels | None
    problem: str = ""
    note: str = ""


def find_label_files(folder: Path) -> tuple[LabelFile, ...]:
    """The label files of a folder, by task name: the order in which the random stream runs through them."""
    if not folder.is_dir():
        raise DataError("no such folder", where=folder, expected="a folder of <task>__<type>.csv files")
    files = []
    for path in folder.glob("*.csv"):
        if path.name.startswith("."):  # some systems leave a hidden file beside every file they copy
            continue
        task, mark, suffix = path.stem.partition("__")
        if not mark or not task or suffix.lower() not in KINDS:
            raise DataError("bad label file name", where=path, expected="<task>__<type>.csv, type " + "/".join(KINDS))
        files.append(LabelFile(task, KINDS[suffix.lower()], path))
    if not files:
        raise DataError("no label files", where=folder, expected="files named <task>__<type>.csv")
    files.sort(key=lambda file: file.task)
    for first, second in itertools.pairwise(files):
        if first.task == second.task:
            got = f"{first.path.name} and {second.path.name}"
            raise DataError(f"two label files for the task {first.task!r}", where=folder, got=got)
    return tuple(files)


def read_task_labels(file: LabelFile, *, normalize: bool) -> TaskLabels:
    """A label file, strictly if possible; ``normalize`` tells whether labels are scaled to 0 … 1 afterwards."""
    try:
        labels = read_labels(file.path, file.kind, task=file.task)
    except DataError as error:
        return _as_upstream(file, normalize, error)
    if labels.classes[:1] == ("1",):  # there, only scaling makes 0 and 1 of them
        what = "classes that are not counted from 0"
        return _as_upstream(file, normalize, DataError(what, where=file.path, got=shown(labels.classes)))
    return TaskLabels(labels.ids, labels)


def _as_upstream(file: LabelFile, normalize: bool, refused: DataError) -> TaskLabels:
    try:
        rows = read_rows(file.path)
        _, header = next(rows)
        name, label = header.index("id"), header.index("label")
        labelled = [(clean_id(row[name]), row[label]) for _, row in rows if row[label].strip()]
    except (DataError, ValueError):  # this is not a table of ids and labels at all
        labelled = []
    ids = tuple(sample for sample, _ in labelled)
    values = np.array([_number(cell) for _, cell in labelled], dtype=np.float64)
    # Two rows for one sample would both be trained on there; which of them is meant nobody can tell.
    if not ids or len(set(ids)) < len(ids) or not np.isfinite(values).all():
        return TaskLabels(ids, None, str(refused))
    low, high = values.min(), values.max()
    note = ""
    if file.kind == "classification" and normalize and len(np.unique(values)) == 2:
        values, note = (values == high).astype(np.float64), f"classes {low:g} and {high:g} are read as 0 and 1"
    elif normalize or low != high or (file.kind == "classification" and low not in (0, 1)):
        return TaskLabels(ids, None, str(refused))
    return TaskLabels(ids, Labels(file.task, file.kind, ids, values, content_hash(ids, values, None)), note=note)


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan
