"""Files of embeddings that no plugin registers: a method made for one run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from neuco_core.errors import NeucoError, UsageError
from neuco_core.plugins.catalog import catalog
from neuco_core.specs import Method, Remote, Task


@dataclass(frozen=True)
class EmbeddingsFile:
    """A file as a method of one dataset; ``left_out`` says of tasks why it has nothing for them."""

    path: Path
    method: Method
    strict: bool = False
    left_out: Mapping[str, str] = field(default_factory=dict)


def open_file(
    path: Path, tasks: Sequence[Task], *, name: str = "", strict: bool = False, shared: str = ""
) -> EmbeddingsFile:
    """Find the dataset that a file is about: the one whose labels it shares ids with.

    Ids such as 0, 1, 2 fit several datasets, and a score on the wrong one says nothing, so nothing is guessed then.
    """
    from neuco_core.tables.embeddings import read_embeddings

    ids = frozenset(read_embeddings(path, strict=strict).ids)
    counts = _labelled(ids, tasks, shared)
    dataset = only_dataset(path, tasks, counts) or tasks[0].dataset
    left_out = {task: f"no id of {path.name} has a label in it" for task, count in counts.items() if not count}
    return EmbeddingsFile(path.absolute(), _method(path, name or method_id(path), dataset), strict, left_out)


def only_dataset(path: Path, tasks: Sequence[Task], counts: Mapping[str, int]) -> str:
    """The one dataset that a file shares ids with, or ""; ``counts`` are labelled samples by task."""
    fitting: dict[str, int] = {}
    for task in tasks:
        if counts.get(task.id):
            fitting[task.dataset] = max(fitting.get(task.dataset, 0), counts[task.id])
    if len(fitting) > 1:
        got = ", ".join(f"{dataset} ({count} ids)" for dataset, count in sorted(fitting.items()))
        raise UsageError("the ids fit more than one dataset", where=path, got=got, hint="Say --dataset ID")
    return next(iter(fitting), "")


def _labelled(ids: Collection[str], tasks: Sequence[Task], shared: str) -> dict[str, int]:
    """By task, how many labelled samples the file holds; labels that cannot be had are left to the plan."""
    from neuco_core.runs.labels import run_labels

    counts: dict[str, int] = {}
    for task in tasks:
        with suppress(NeucoError):
            counts[task.id] = sum(sample in ids for sample in run_labels(task, shared).ids)
    return counts


def method_id(path: Path) -> str:
    """An id from a file's name that no registered method has."""
    name = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-")[:50] or "embeddings"
    return name if catalog().plugins.find("method", name) is None else f"{name}-file"


def _method(path: Path, name: str, dataset: str) -> Method:
    taken = catalog().plugins.find("method", name)
    if taken is not None:
        raise UsageError(f"there is a method {name!r} already", where=taken.origin, hint="Choose another --name")
    data = path.read_bytes()
    remote = Remote(path.absolute().as_uri(), hashlib.sha256(data).hexdigest(), len(data))
    return Method(id=name, title=path.name, files={dataset: remote})


def unregistered(name: str, dataset: str) -> Method:
    """The method of a saved record of a file. The file may be gone; what it held is in the record's inputs."""
    return Method(id=name, files={dataset: Remote("file:///unknown")})
