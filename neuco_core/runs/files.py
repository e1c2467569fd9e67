"""Files of embeddings, which are no plugins: each is a method for one run, recorded only if that is asked for."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from neuco_core.errors import DataError, NeucoError, UsageError
from neuco_core.plugins.catalog import catalog
from neuco_core.runs.worker import shared_labels
from neuco_core.scoring.leaks import Leak, columns_used, leaks, oddities
from neuco_core.specs import Method, Remote, Task
from neuco_core.tables.embeddings import FORMATS, read_embeddings
from neuco_core.tables.embeddings_files import SAMPLE, WHOLE, as_file
from neuco_core.text import counted, join_names

ALLOW = "--allow-labels"
NAMED = 3  # ids of samples may be 64 letters long
ONE_BY_ONE = "Name the files one by one, or by a pattern such as 'runs/*.csv'"


@dataclass(frozen=True)
class EmbeddingsFile:
    """A file as a method; ``ids`` are its samples, ``left_out`` says of tasks why it has nothing for them.

    ``columns`` says which of its columns are taken for values, ``warnings`` which of them seem to hold labels;
    ``gaps``, which are warnings, too, say which labelled samples it lacks. ``first_replaced`` is where the first value
    is that counts as 0.
    """

    path: Path
    method: Method
    strict: bool = False
    left_out: Mapping[str, str] = field(default_factory=dict)
    ids: frozenset[str] = frozenset()
    columns: str = ""
    warnings: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    first_replaced: str = ""


def open_file(
    path: Path,
    tasks: Sequence[Task],
    *,
    name: str = "",
    strict: bool = False,
    shared: str = "",
    several: bool = False,
    allow_labels: bool = False,
) -> EmbeddingsFile:
    """Find the dataset that a file is about: the one whose labels it shares ids with.

    With ``several``, a file may hold samples of more than one, as long as each sample belongs to one of them. One with
    a task's labels in a column is refused unless ``allow_labels`` says that they are meant.
    """
    path = as_file(path)
    embeddings = read_embeddings(path, strict=strict)
    ids = frozenset(embeddings.ids)
    labelled: dict[str, frozenset[str]] = {}  # by task
    samples: dict[str, set[str]] = {}  # by dataset
    comparable: dict[str, dict[str, None]] = {}  # by dataset: the samples that other methods are scored on
    warnings: dict[str, None] = dict.fromkeys(oddities(embeddings))
    all_leaks: list[Leak] = []
    for task in tasks:
        with suppress(NeucoError):  # labels that cannot be had: the plan says so
            labels = shared_labels(task, shared)
            labelled[task.label] = ids.intersection(labels.ids)
            if labelled[task.label]:
                samples.setdefault(task.dataset, set()).update(labelled[task.label])
                comparable.setdefault(task.dataset, {}).update(dict.fromkeys(labels.ids))
                of_task = list(leaks(embeddings, labels))
                all_leaks += of_task
                warnings.update((leak.sentence, None) for leak in of_task)
    if not allow_labels:
        refuse_labels(path, all_leaks)
    overlap = any(first & second for first, second in itertools.combinations(samples.values(), 2))
    if not several or overlap:
        require_one_dataset(path, tasks, {task: len(names) for task, names in labelled.items()})
    elsewhere = {name for names in comparable.values() for name in names}
    gaps = []
    for dataset, names in comparable.items():
        if gap := missing_samples(embeddings.ids, names, elsewhere):
            gaps.append(f"in {dataset}, {gap}")
    warnings.update(dict.fromkeys(gaps))
    left_out = {task: f"no id of {path.name} has a label in it" for task, names in labelled.items() if not names}
    if labelled and not samples:  # then nothing will be scored, and the reason is the same for all
        example = examples(embeddings.ids, shared_labels(tasks[0], shared).ids)
        left_out = {task: f"{reason}: {example}" for task, reason in left_out.items()}
    method = file_method(path, name or method_id(path), [*samples] or [tasks[0].dataset])
    columns = columns_used(embeddings)
    first = embeddings.first_replaced
    return EmbeddingsFile(path.absolute(), method, strict, left_out, ids, columns, tuple(warnings), tuple(gaps), first)


def refuse_labels(path: Path, all_leaks: Iterable[Leak]) -> None:
    """Refuse a file with labels beyond doubt: it would come first, and a warning is soon out of sight."""
    same = [leak for leak in all_leaks if leak.same]
    if same:
        columns = join_names([*dict.fromkeys(leak.column for leak in same)])
        hint = f"Leave {columns} out of the file; if it is meant, add {ALLOW}, in Python allow_labels=True"
        raise DataError(same[0].sentence, where=path, hint=hint)


def are_parts(files: Sequence[EmbeddingsFile]) -> bool:
    """Whether several files look like one that was cut: of the same dataset, each with gaps, no id in two of them."""
    datasets = {tuple(file.method.files) for file in files}
    if len(files) < 2 or len(datasets) > 1 or not all(file.gaps for file in files):
        return False
    return len(frozenset().union(*(file.ids for file in files))) == sum(len(file.ids) for file in files)


def require_one_dataset(path: Path, tasks: Sequence[Task], counts: Mapping[str, int]) -> None:
    """Refuse a file that shares ids with more than one dataset; ``counts`` are labelled samples by task.

    Ids such as 0, 1, 2 fit several datasets, and a score on the wrong one says nothing, so nothing is guessed then.
    """
    fitting: dict[str, int] = {}
    for task in tasks:
        if counts.get(task.label):
            fitting[task.dataset] = max(fitting.get(task.dataset, 0), counts[task.label])
    if len(fitting) > 1:
        got = ", ".join(f"{dataset} ({count} ids)" for dataset, count in sorted(fitting.items()))
        raise UsageError("the ids fit more than one dataset", where=path, got=got, hint="Say --dataset ID")


def examples(ids: Collection[str], labelled: Collection[str]) -> str:
    """An id of either side, where they share none: mostly it is a suffix or a prefix."""
    return f"ids such as {next(iter(ids), '')!r}, and the task has {next(iter(labelled), '')!r}"


def missing_samples(ids: Sequence[str], labelled: Collection[str], elsewhere: Collection[str] = ()) -> str:
    """Which labelled samples have no embedding, and which ids there are instead, maybe misspelt; "" if none lacks.

    Ids without a label say nothing by themselves: a dataset may have more samples than a task. Those that have one
    ``elsewhere`` are known.
    """
    present = frozenset(ids)
    lacking = [name for name in labelled if name not in present]
    if not lacking:
        return ""
    count = f"{len(lacking)} of {counted(len(labelled), 'labelled sample')}"
    sentence = f"no embedding for {count} ({join_names(lacking, NAMED)}): not comparable with methods that have all"
    labelled = {*labelled, *elsewhere}
    unknown = [name for name in ids if name not in labelled]
    return (
        f"{sentence}; no label for {counted(len(unknown), 'id')} ({join_names(unknown, NAMED)})"
        if unknown
        else sentence
    )


def method_id(path: Path) -> str:
    """An id from a file's name that no registered method has."""
    name = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-")[:50] or "embeddings"
    return name if catalog().plugins.find("method", name, any_spelling=True) is None else f"{name}-file"


def find_files(names: Iterable[Path]) -> list[Path]:
    """The files that paths, patterns (``runs/*.csv``) and folders name; a folder of TerraTorch's stays one."""
    files: list[Path] = []
    for name in names:
        paths_found = _files_of(name)
        by_id: dict[str, list[str]] = {}
        for path in paths_found:
            by_id.setdefault(method_id(path), []).append(path.name)
        alike = next((paths for paths in by_id.values() if len(paths) > 1), None)
        if alike:
            raise UsageError("two files would be the same method", where=name, got=", ".join(alike), hint=ONE_BY_ONE)
        files += paths_found
    return files


def _files_of(name: Path) -> list[Path]:
    if name.is_dir():
        paths = sorted(path for path in name.iterdir() if path.is_file() and path.suffix.lower() in FORMATS)
        theirs = [path for path in paths if path.name in WHOLE or path.name.endswith(SAMPLE)]
        if theirs and paths != theirs:
            got = f"{theirs[0].name} and {next(path.name for path in paths if path not in theirs)}"
            raise UsageError("TerraTorch's embeddings and other files", where=name, got=got, hint=ONE_BY_ONE)
        return [name] if theirs or not paths else paths
    if name.exists():
        return [name]
    if not any(mark in str(name) for mark in "*?["):
        raise DataError("no such file", where=name)
    paths = sorted(Path(name.anchor or ".").glob(str(name.relative_to(name.anchor))))
    if not paths:
        raise UsageError("no file fits this pattern", where=name)
    return paths


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
    taken = catalog().plugins.find("method", name, any_spelling=True)
    if taken is not None:
        raise UsageError(f"there is a method {taken.id!r} already", where=taken.origin, hint="Choose another --name")
    data = path.read_bytes()
    remote = Remote(path.absolute().as_uri(), hashlib.sha256(data).hexdigest(), len(data))
    return Method(id=name, title=path.name, files=dict.fromkeys(datasets, remote))
