"""Files of embeddings that no plugin registers: a method made for one run."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from neuco_core.errors import NeucoError, UsageError
from neuco_core.plugins.catalog import catalog
from neuco_core.runs.sources import examples
from neuco_core.specs import Method, Remote, Task

if TYPE_CHECKING:
    from neuco_core.tables.embeddings import Embeddings


@dataclass(frozen=True)
class EmbeddingsFile:
    """A file as a method; ``ids`` are its samples, ``left_out`` says of tasks why it has nothing for them.

    ``columns`` says which of its columns are taken for values, ``warnings`` which of them seem to hold labels.
    """

    path: Path
    method: Method
    strict: bool = False
    left_out: Mapping[str, str] = field(default_factory=dict)
    ids: frozenset[str] = frozenset()
    columns: str = ""
    warnings: tuple[str, ...] = ()


def open_file(
    path: Path,
    tasks: Sequence[Task],
    *,
    name: str = "",
    strict: bool = False,
    shared: str = "",
    several: bool = False,
) -> EmbeddingsFile:
    """Find the dataset that a file is about: the one whose labels it shares ids with.

    Ids such as 0, 1, 2 fit several datasets, and a score on the wrong one says nothing, so nothing is guessed then.
    With ``several``, a file may hold samples of more than one, as long as each sample belongs to one of them.
    """
    from neuco_core.runs.labels import run_labels
    from neuco_core.scoring.leaks import columns_used
    from neuco_core.tables.embeddings import read_embeddings
    from neuco_core.tables.terratorch_files import as_file

    path = as_file(path)
    found = read_embeddings(path, strict=strict)
    ids = frozenset(found.ids)
    labelled = _labelled(ids, tasks, shared)
    datasets = _datasets(tasks, labelled)
    overlap = [a & b for a, b in itertools.combinations(datasets.values(), 2)]
    if not several or any(overlap):
        only_dataset(path, tasks, {task: len(own) for task, own in labelled.items()})
    left_out = {task: f"no id of {path.name} has a label in it" for task, own in labelled.items() if not own}
    if labelled and not datasets:  # then nothing will be scored, and the reason is the same for all
        told = examples(found.ids, run_labels(tasks[0], shared).ids)
        left_out = dict.fromkeys(left_out, f"no id of {path.name} has a label in it: {told}")
    method = file_method(path, name or method_id(path), [*datasets] or [tasks[0].dataset])
    warnings = tuple(_leaks(found, [task for task in tasks if labelled.get(task.label)], shared))
    return EmbeddingsFile(path.absolute(), method, strict, left_out, ids, columns_used(found), warnings)


def _leaks(embeddings: Embeddings, tasks: Sequence[Task], shared: str) -> Iterator[str]:
    """What is wrong with the columns, each sentence once."""
    from neuco_core.runs.labels import run_labels
    from neuco_core.scoring.leaks import leaks

    told: set[str] = set()
    for task in tasks:
        for sentence in leaks(embeddings, run_labels(task, shared)):
            if sentence not in told:
                yield sentence
            told.add(sentence)


def _datasets(tasks: Sequence[Task], labelled: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """By dataset, the samples of a file that have a label there."""
    found: dict[str, set[str]] = {}
    for task in tasks:
        if own := labelled.get(task.label):
            found.setdefault(task.dataset, set()).update(own)
    return found


def only_dataset(path: Path, tasks: Sequence[Task], counts: Mapping[str, int]) -> str:
    """The one dataset that a file shares ids with, or ""; ``counts`` are labelled samples by task."""
    fitting: dict[str, int] = {}
    for task in tasks:
        if counts.get(task.label):
            fitting[task.dataset] = max(fitting.get(task.dataset, 0), counts[task.label])
    if len(fitting) > 1:
        got = ", ".join(f"{dataset} ({count} ids)" for dataset, count in sorted(fitting.items()))
        raise UsageError("the ids fit more than one dataset", where=path, got=got, hint="Say --dataset ID")
    return next(iter(fitting), "")


def _labelled(ids: Collection[str], tasks: Sequence[Task], shared: str) -> dict[str, set[str]]:
    """By task, the labelled samples that the file holds; labels that cannot be had are left to the plan."""
    from neuco_core.runs.labels import run_labels

    found: dict[str, set[str]] = {}
    for task in tasks:
        with suppress(NeucoError):
            found[task.label] = {sample for sample in run_labels(task, shared).ids if sample in ids}
    return found


def method_id(path: Path) -> str:
    """An id from a file's name that no registered method has."""
    name = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-")[:50] or "embeddings"
    return name if catalog().plugins.find_alike("method", name) is None else f"{name}-file"


def free_names(paths: Iterable[Path], name: str = "", taken: Collection[str] = ()) -> dict[Path, str]:
    """A method id for each file that no other file, nor any of those ``taken``, has."""
    names: dict[Path, str] = {}
    for path in paths:
        stem, used = name or method_id(path), {*taken, *names.values()}
        others = (f"{stem}-{number}" for number in itertools.count(2))
        names.setdefault(path, next(free for free in itertools.chain([stem], others) if free not in used))
    return names


def file_method(path: Path, name: str, datasets: Sequence[str]) -> Method:
    """A file as a method of this run, by a name that no registered one has."""
    taken = catalog().plugins.find_alike("method", name)
    if taken is not None:
        raise UsageError(f"there is a method {taken.id!r} already", where=taken.origin, hint="Choose another --name")
    data = path.read_bytes()
    remote = Remote(path.absolute().as_uri(), hashlib.sha256(data).hexdigest(), len(data))
    return Method(id=name, title=path.name, files=dict.fromkeys(datasets, remote))


def unregistered(name: str, dataset: str) -> Method:
    """The method of a saved record of a file. The file may be gone; what it held is in the record's inputs."""
    return Method(id=name, files={dataset: Remote("file:///unknown")})
