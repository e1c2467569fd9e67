"""Where the embeddings of a score come from: a registered method, or a file that is no plugin at all; and the labels.

A file of embeddings is a method made for one run (``EmbeddingsFile``), whose scores are recorded only if that is asked
for.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np

from neuco_core.encode.encoder import check_bands
from neuco_core.encode.run import AS_USUAL, EncodeOptions, method_embeddings
from neuco_core.errors import DataError, NeucoError, UsageError
from neuco_core.fetch.cache import exclusive
from neuco_core.files import write_atomic
from neuco_core.plugins.catalog import catalog, load_dataset, load_method
from neuco_core.scoring.leaks import columns_used, leaks
from neuco_core.specs import Method, Remote, Task
from neuco_core.tables.embeddings import Embeddings, read_embeddings
from neuco_core.tables.embeddings_files import as_file
from neuco_core.tables.labels import Labels


class MethodSource:
    """A registered method. The embeddings of the last dataset are kept: tasks come dataset by dataset."""

    def __init__(self, method: Method, options: EncodeOptions = AS_USUAL) -> None:
        self.method = method
        self.name = method.label
        self._options = options
        self._last: tuple[str, Embeddings] | None = None

    def describe(self) -> dict[str, Any]:
        """What goes into the JSON."""
        return {"method": self.method.id, "version": self.method.version}

    def why_not(self, task: Task, labels: Labels | None) -> str:
        """Why this source has nothing for a task, known without fetching or computing anything; "" if it has."""
        return why_not(self.method, task.dataset)

    def embeddings(self, task: Task) -> Embeddings:
        if self._last is None or self._last[0] != task.dataset:
            self._last = task.dataset, method_embeddings(self.method, task.dataset, {}, self._options)
        return self._last[1]


def why_not(method: Method, dataset_id: str) -> str:
    """Why a method has nothing for a dataset, known without fetching or computing anything; "" if it has."""
    if method.files:
        return "" if dataset_id in method.files else f"{method.label} has no file for dataset {dataset_id}"
    dataset = load_dataset(dataset_id)
    if dataset.cubes is None:
        return f"dataset {dataset.id} has no cubes to encode"
    try:
        if dataset.bands:
            check_bands(method, dataset.id, dataset.bands)
    except DataError as error:
        return str(error)
    return ""


class FileSource:
    """A file of embeddings, read once; it has something for every task whose ids it holds.

    ``made`` are embeddings that are in memory already: then the path is only a name.
    """

    def __init__(self, path: Path, *, name: str = "", strict: bool = False, made: Embeddings | None = None) -> None:
        self.path = path
        self.name = name or path.name
        self._strict = strict
        self._embeddings = made
        self._ids = frozenset(made.ids if made else ())

    def describe(self) -> dict[str, Any]:
        embeddings = self.read()
        return {"file": self.path.name, "sha256": embeddings.sha256, "replaced": dict(embeddings.replaced)}

    def read(self) -> Embeddings:
        if self._embeddings is None:
            self._embeddings = read_embeddings(self.path, strict=self._strict)
            self._ids = frozenset(self._embeddings.ids)
        return self._embeddings

    def why_not(self, task: Task, labels: Labels | None) -> str:
        if labels is None or self.matches(labels):
            return ""
        return f"no id of {self.name} has a label in it"

    def matches(self, labels: Labels) -> int:
        """How many labelled samples the file holds."""
        self.read()
        return sum(name in self._ids for name in labels.ids)

    def embeddings(self, task: Task) -> Embeddings:
        return self.read()


Source: TypeAlias = MethodSource | FileSource


def open_source(text: str, *, strict: bool = False, options: EncodeOptions = AS_USUAL) -> Source:
    """A method by its id, or a file by its path; an id has no dot and no slash, so the two cannot be confused."""
    if "." in text or "/" in text:
        return FileSource(Path(text).expanduser(), strict=strict)
    return MethodSource(load_method(text), options)


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

    With ``several``, a file may hold samples of more than one, as long as each sample belongs to one of them.
    """
    path = as_file(path)
    embeddings = read_embeddings(path, strict=strict)
    ids = frozenset(embeddings.ids)
    labelled: dict[str, frozenset[str]] = {}  # by task
    samples: dict[str, set[str]] = {}  # by dataset
    warnings: dict[str, None] = {}
    for task in tasks:
        with suppress(NeucoError):  # labels that cannot be had: the plan says so
            labels = shared_labels(task, shared)
            labelled[task.label] = ids.intersection(labels.ids)
            if labelled[task.label]:
                samples.setdefault(task.dataset, set()).update(labelled[task.label])
                warnings.update(dict.fromkeys(leaks(embeddings, labels)))
    overlap = any(first & second for first, second in itertools.combinations(samples.values(), 2))
    if not several or overlap:
        only_dataset(path, tasks, {task: len(names) for task, names in labelled.items()})
    left_out = {task: f"no id of {path.name} has a label in it" for task, names in labelled.items() if not names}
    if labelled and not samples:  # then nothing will be scored, and the reason is the same for all
        example = examples(embeddings.ids, shared_labels(tasks[0], shared).ids)
        left_out = {task: f"{reason}: {example}" for task, reason in left_out.items()}
    method = file_method(path, name or method_id(path), [*samples] or [tasks[0].dataset])
    return EmbeddingsFile(path.absolute(), method, strict, left_out, ids, columns_used(embeddings), tuple(warnings))


def only_dataset(path: Path, tasks: Sequence[Task], counts: Mapping[str, int]) -> str:
    """The one dataset that a file shares ids with, or ""; ``counts`` are labelled samples by task.

    Ids such as 0, 1, 2 fit several datasets, and a score on the wrong one says nothing, so nothing is guessed then.
    """
    fitting: dict[str, int] = {}
    for task in tasks:
        if counts.get(task.label):
            fitting[task.dataset] = max(fitting.get(task.dataset, 0), counts[task.label])
    if len(fitting) > 1:
        got = ", ".join(f"{dataset} ({count} ids)" for dataset, count in sorted(fitting.items()))
        raise UsageError("the ids fit more than one dataset", where=path, got=got, hint="Say --dataset ID")
    return next(iter(fitting), "")


def examples(ids: Collection[str], labelled: Collection[str]) -> str:
    """An id of either side, where they share none: mostly it is a suffix or a prefix."""
    return f"ids such as {next(iter(ids), '')!r}, and the task has {next(iter(labelled), '')!r}"


def method_id(path: Path) -> str:
    """An id from a file's name that no registered method has."""
    name = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-")[:50] or "embeddings"
    return name if catalog().plugins.find_alike("method", name) is None else f"{name}-file"


def free_names(paths: Iterable[Path], name: str = "", taken: Collection[str] = ()) -> dict[Path, str]:
    """A method id for each file that no other file, nor any of those ``taken``, has."""
    names: dict[Path, str] = {}
    for path in dict.fromkeys(paths):
        stem = name or method_id(path)
        free, number = stem, 2
        while free in taken or free in names.values():
            free, number = f"{stem}-{number}", number + 1
        names[path] = free
    return names


def file_method(path: Path, name: str, datasets: Sequence[str]) -> Method:
    """A file as a method of this run, by a name that no registered one has."""
    taken = catalog().plugins.find_alike("method", name)
    if taken is not None:
        raise UsageError(f"there is a method {taken.id!r} already", where=taken.origin, hint="Choose another --name")
    data = path.read_bytes()
    remote = Remote(path.absolute().as_uri(), hashlib.sha256(data).hexdigest(), len(data))
    return Method(id=name, title=path.name, files=dict.fromkeys(datasets, remote))


def shared_labels(task: Task, folder: str) -> Labels:
    """The labels of a task: whichever worker of a run needs them first loads and verifies them, the others read them.

    ``folder`` is shared by the workers of a run, or "" where they share none.
    """
    shared = Path(folder)
    if not folder or not shared.is_dir():  # e.g. a worker on another machine
        return task.labels()
    path = shared / f"{task.label}.labels"
    with exclusive(shared / task.label):
        if not path.exists():
            labels = task.labels()
            with suppress(OSError):  # a full disk: the others load them as well
                write_atomic(path, msgspec.msgpack.encode(labels, enc_hook=_pack_array))
            return labels
    return msgspec.msgpack.decode(path.read_bytes(), type=Labels, dec_hook=_unpack_array)


def _pack_array(array: np.ndarray) -> tuple[str, tuple[int, ...], bytes]:
    return array.dtype.str, array.shape, array.tobytes()


def _unpack_array(_: type, packed: tuple[str, tuple[int, ...], bytes]) -> np.ndarray:
    dtype, shape, data = packed
    return np.frombuffer(data, dtype).reshape(shape).copy()  # a buffer's own array is read-only
