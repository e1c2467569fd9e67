"""The label files of a run: ``<task>__<type>.csv`` in one folder."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

from neuco_core.errors import DataError, UnknownIdError

KINDS = {
    "regr": "regression",
    "regression": "regression",
    "cls": "classification",
    "classification": "classification",
}


@dataclass(frozen=True)
class Annotation:
    """One label file."""

    task: str
    kind: str
    path: Path


def find_annotations(folder: Path) -> tuple[Annotation, ...]:
    """The label files of a folder, by task name: the order in which the random stream runs through them."""
    if not folder.is_dir():
        raise DataError("no such folder", where=folder, expected="a folder of <task>__<type>.csv files")
    annotations = sorted(
        # Some systems leave a hidden file beside every file they copy.
        (_annotation(path) for path in folder.glob("*.csv") if not path.name.startswith(".")),
        key=lambda item: item.task,
    )
    if not annotations:
        raise DataError("no label files", where=folder, expected="files named <task>__<type>.csv")
    for first, second in itertools.pairwise(annotations):
        if first.task == second.task:
            got = f"{first.path.name} and {second.path.name}"
            raise DataError(f"two label files for the task {first.task!r}", where=folder, got=got)
    return tuple(annotations)


def select(annotations: tuple[Annotation, ...], names: tuple[str, ...] | None) -> tuple[Annotation, ...]:
    """The tasks that the config's ``task_filter`` asks for; a name without a file is an error, not an empty run."""
    if names is None:
        return annotations
    known = [annotation.task for annotation in annotations]
    for name in names:
        if name not in known:
            raise UnknownIdError("task", name, known, hint=f"The folder has {', '.join(known)}.")
    return tuple(annotation for annotation in annotations if annotation.task in names)


def _annotation(path: Path) -> Annotation:
    task, mark, suffix = path.stem.partition("__")
    suffix = suffix.lower()
    if not mark or not task or suffix not in KINDS:
        raise DataError("bad label file name", where=path, expected="<task>__<type>.csv, type " + "/".join(KINDS))
    return Annotation(task, KINDS[suffix], path)
