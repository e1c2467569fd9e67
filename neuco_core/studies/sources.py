"""What a study starts from: embeddings of a method, of a file, or of what is in hand, and tasks with their labels.

Of a task that is left out there is the reason; of what cannot be used, what to bring instead.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from neuco_core.encode.run import AS_USUAL, EncodeOptions, method_embeddings, why_not
from neuco_core.errors import NeucoError, OfflineError, PluginError, UnknownIdError, UnpinnedError, UsageError
from neuco_core.fetch.links import dataset_root
from neuco_core.plugins.catalog import catalog, list_tasks, load_method, protocols_for
from neuco_core.protocol import Protocol
from neuco_core.runs.files import method_id, require_one_dataset
from neuco_core.scoring.leaks import Leak, leaks, oddities, replaced_values
from neuco_core.specs import Dataset, Method, Suite, Task
from neuco_core.tables.embeddings import Embeddings, make_embeddings, read_embeddings
from neuco_core.tables.labels import Labels

if TYPE_CHECKING:
    import pandas

WHAT = (
    "a method or its id, a path, Embeddings, (ids, array), an array with ids=, a DataFrame with an id column or index, "
    "a mapping of ids to vectors, a function of a CubeBatch, or a list of these"
)
ON = "a task, a suite or a dataset, the id of one, or a list of these"
YOURS = "yours"
RESTLESS = ("Dropout", "DropPath", "BatchNorm")  # in the names of layers that differ in training mode


class MethodSource:
    """A method. The embeddings of the last dataset are kept: tasks come dataset by dataset.

    ``doubts`` are warnings about the embeddings that were made.
    """

    def __init__(self, method: Method, options: EncodeOptions = AS_USUAL, *, name: str = "") -> None:
        self.method = method
        self.name = name or method.label
        self.doubts: list[str] = []
        self._options = replace(options, doubts=self.doubts)
        self._last: tuple[str, Embeddings] | None = None

    def why_not(self, task: Task, labels: Labels | None) -> str:
        """Why this source has nothing for a task, known without fetching or computing anything; "" if it has."""
        return why_not(self.method, task.dataset)

    def embeddings(self, task: Task) -> Embeddings:
        if self._last is None or self._last[0] != task.dataset:
            self._last = task.dataset, method_embeddings(self.method, task.dataset, {}, self._options)
        return self._last[1]

    def leaks(self, labels: Labels) -> list[Leak]:
        return []


class FileSource:
    """A file of embeddings, read once; it has something for every task whose ids it holds.

    ``made`` are embeddings that are in memory already: then the path is only a name.
    """

    def __init__(self, path: Path, *, name: str = "", strict: bool = False, made: Embeddings | None = None) -> None:
        self.path = path
        self.name = name or path.name
        self._strict = strict
        self._embeddings = made

    def read(self) -> Embeddings:
        if self._embeddings is None:
            self._embeddings = read_embeddings(self.path, strict=self._strict)
        return self._embeddings

    @cached_property
    def _ids(self) -> frozenset[str]:
        return frozenset(self.read().ids)

    def why_not(self, task: Task, labels: Labels | None) -> str:
        if labels is None or self.matches(labels):
            return ""
        return f"no id of {self.name} has a label in it"

    def matches(self, labels: Labels) -> int:
        """How many labelled samples the file holds."""
        return len(self._ids.intersection(labels.ids))

    def embeddings(self, task: Task) -> Embeddings:
        return self.read()

    @cached_property
    def doubts(self) -> list[str]:
        return [*oddities(self.read()), *filter(None, [replaced_values(self.read())])]

    def leaks(self, labels: Labels) -> list[Leak]:
        """The columns that seem to be labels."""
        return list(leaks(self.read(), labels))


Source: TypeAlias = MethodSource | FileSource


def open_source(text: str, *, strict: bool = False, options: EncodeOptions = AS_USUAL, name: str = "") -> Source:
    """A method by its id, or a file by its path; an id has no dot and no slash, so the two cannot be confused."""
    if "." in text or "/" in text:
        return FileSource(Path(text).expanduser(), name=name, strict=strict)
    return MethodSource(load_method(text), options, name=name)


@dataclass(frozen=True)
class Input:
    """A task and its labels, loaded once; without them ``status`` is skipped or failed, and ``reason`` says why."""

    task: Task
    labels: Labels | None = None
    status: str = "ok"
    reason: str = ""


def gather(tasks: Sequence[Task], *sources: Source, same_dataset: bool = False) -> list[Input]:
    """The tasks, dataset by dataset, with their labels if all sources have embeddings for them.

    ``same_dataset`` says that the caller chose the dataset, so that a file's ids need not tell it.
    """
    tasks = sorted(tasks, key=lambda task: (task.dataset, task.label))
    labels = {task.label: _labels(task) for task in tasks}
    for source in sources:
        if isinstance(source, FileSource):  # a bad file is one error, not one for every task
            source.read()
            if not same_dataset:
                counts = {name: source.matches(item) for name, item in labels.items() if isinstance(item, Labels)}
                require_one_dataset(source.path, tasks, counts)
    return [_input(task, labels[task.label], sources) for task in tasks]


def _labels(task: Task) -> Labels | NeucoError:
    try:
        return task.labels()
    except NeucoError as error:
        return error
    except Exception as error:  # a task's loader is a stranger's code
        return PluginError(f"the labels cannot be loaded: {type(error).__name__}: {error}", where=task.origin)


def _input(task: Task, labels: Labels | NeucoError, sources: Iterable[Source]) -> Input:
    if isinstance(labels, UnpinnedError) and dataset_root(task.dataset) is None:
        # The same words for all tasks of a dataset, so that they are grouped into one line.
        link = f"`neuco data link {task.dataset} FOLDER` to use your copy"
        reason = f"the labels are not downloaded yet: run `neuco data pin TASK` to download and confirm them, or {link}"
        return Input(task, status="skipped", reason=reason)
    if isinstance(labels, NeucoError):
        status = "skipped" if isinstance(labels, (OfflineError, UnpinnedError)) else "failed"
        return Input(task, status=status, reason=str(labels))
    try:
        reason = next(filter(None, (source.why_not(task, labels) for source in sources)), "")
    except NeucoError as error:
        return Input(task, status="failed", reason=str(error))
    return Input(task, status="skipped", reason=reason) if reason else Input(task, labels)


def grouped(lines: Iterable[tuple[str, str, str]]) -> list[str]:
    """Lines for (status, name, reason); names with the same status and reason share a line."""
    groups: dict[tuple[str, str], list[str]] = {}
    for status, name, reason in lines:
        if reason:
            groups.setdefault((status, reason), []).append(name)
    return [f"{status} {', '.join(names)}: {reason}" for (status, reason), names in groups.items()]


def as_source(what: Any, ids: Iterable[object] | None = None, name: str = "", *, quiet: bool = False) -> Source:
    """Whatever ``evaluate`` is given, as something that has embeddings for a task; ``quiet`` encoders show no bar."""
    if not isinstance(name, str):
        raise UsageError("bad name", expected="text", got=_kind(name))
    progress = False if quiet else None
    if ids is not None:
        return _in_memory(_rows(ids, what), name)
    if isinstance(what, Method):
        return MethodSource(what, EncodeOptions(progress=progress), name=name)
    if isinstance(what, str):
        try:
            return open_source(what, options=EncodeOptions(progress=progress), name=name)
        except UnknownIdError as error:
            error.hint += f"{'' if error.hint.endswith('?') else '.'} A file is known by its suffix: {what}.csv"
            raise
    if isinstance(what, os.PathLike):
        return FileSource(Path(what).expanduser(), name=name)
    if isinstance(what, Embeddings):
        return _in_memory(what, name)
    pandas = sys.modules.get("pandas")  # whoever has a DataFrame has loaded it
    if pandas is not None and isinstance(what, pandas.DataFrame):
        return _in_memory(_from_frame(what), name)
    if isinstance(what, tuple) and len(what) == 2:
        return _in_memory(_rows(*what), name)
    if isinstance(what, Mapping):
        return _in_memory(_rows(what.keys(), list(what.values())), name)
    if hasattr(what, "__array__") and not isinstance(what, type):
        got = f"an array of shape {np.shape(what)} without ids"
        raise UsageError("an array needs ids: evaluate(array, on, ids=ids)", got=got)
    if callable(what) or hasattr(what, "encode"):
        options = EncodeOptions(cached=False, threads=1, progress=progress)
        return MethodSource(_encoder(what, name or YOURS), options, name=name or YOURS)
    hint = "Pass a method id, a file, (ids, array), a DataFrame indexed by id, or a function of a batch"
    raise UsageError(f"cannot use {_kind(what)} as embeddings", hint=hint)


def _in_memory(embeddings: Embeddings, name: str) -> FileSource:
    return FileSource(Path(YOURS), name=name or YOURS, made=embeddings)


def _rows(ids: Any, values: Any) -> Embeddings:
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise UsageError("bad ids", expected="a list of strings, one for each row", got=_kind(ids))
    names = list(ids)
    numbers = next((name for name in names if not isinstance(name, str)), None)
    if numbers is not None:
        hint = "Ids are text, also where they look like numbers: [str(i) for i in ids]"
        raise UsageError("bad ids", expected="strings", got=f"{numbers!r} ({type(numbers).__name__})", hint=hint)
    try:
        array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    except Exception as error:  # rows of different lengths, tensors of some device, whatever a class of theirs raises
        raise UsageError(f"not an array: {error}", expected="one row of numbers for each id") from error
    return make_embeddings(names, array, where="embeddings")


def _from_frame(frame: pandas.DataFrame) -> Embeddings:
    from neuco_core.tables.embeddings_csv import value_columns

    if frame.index.nlevels > 1 or frame.columns.nlevels > 1:
        hint = "Bring it to one level: frame.reset_index(), or frame.columns = [...]"
        raise UsageError("an index of several levels", where="DataFrame", expected="ids in one level", hint=hint)
    table = frame if "id" in frame.columns else frame.rename_axis("id").reset_index()
    names = [str(name) for name in table.columns]
    columns = value_columns(names, "DataFrame", None)
    values = table.set_axis(names, axis=1)[columns]
    wrong = [name for name in columns if values[name].dtype.kind not in "fiub"]
    if wrong:
        raise UsageError("columns that hold no numbers", where="DataFrame", got=", ".join(wrong[:5]))
    ids = list(table["id"])
    if not all(isinstance(name, str) for name in ids):
        hint = "Put the ids into a column id, or make them the index: frame.set_index('id')"
        raise UsageError("no ids", where="DataFrame", expected="text in a column id or in the index", hint=hint)
    ignored = [name for name in names if name not in {"id", *columns}]
    return make_embeddings(ids, values.to_numpy(float), columns=columns, ignored=ignored, where="DataFrame")


def _encoder(what: Any, name: str) -> Method:
    """A method made for one call; nothing of it is cached, since nobody knows when its code changes."""
    torch = sys.modules.get("torch")  # whoever has a network has loaded it
    if torch is not None:
        if isinstance(what, torch.nn.Module):
            hint = "Call it inside a function of a batch, as docs/your-model.md does"
            expected = "a function of a CubeBatch"
            raise UsageError("a network does not know bands and seasons", expected=expected, hint=hint)
        for network in {item for item in _held(what) if isinstance(item, torch.nn.Module)}:
            _warn_of_training(network, name)
    encoder = what if hasattr(what, "encode") else SimpleNamespace(encode=what)
    return Method(id=method_id(Path(name)), title=name, encoder=what if isinstance(what, type) else lambda: encoder)


def _held(what: Any) -> list[Any]:
    """What a function or an encoder holds, as far as it can be seen: variables and attributes."""
    function = inspect.unwrap(getattr(what, "encode", what))
    owners = [what, function, getattr(function, "__self__", None)]
    held = [*owners, *(value for owner in owners for value in getattr(owner, "__dict__", {}).values())]
    with contextlib.suppress(TypeError, ValueError):  # not written in Python, or a variable that has no value yet
        variables = inspect.getclosurevars(function)
        held += [*variables.nonlocals.values(), *variables.globals.values()]
    return held


def _warn_of_training(network: Any, name: str) -> None:
    """Dropout makes embeddings random, and batch normalisation lets them depend on their neighbours."""
    kinds = [type(layer).__name__ for layer in network.modules() if layer.training]
    restless = next((kind for kind in kinds if any(word in kind for word in RESTLESS)), "")
    if restless:
        what = f"the network of {name!r} is in training mode and has a layer {restless}"
        warnings.warn(f"{what}: its embeddings depend on chance or on the batch. Call model.eval() first", stacklevel=5)


def as_tasks(on: Any, protocol: Any, changes: Mapping[str, Any]) -> list[tuple[Task, Protocol]]:
    """The tasks, each once, with how they are scored: as named, as their suite says, or as their dataset says."""
    if protocol is not None and not isinstance(protocol, str | Protocol):
        expected = "a name such as 'ridge', or a Protocol"
        raise UsageError("bad protocol", expected=expected, got=_kind(protocol), hint="See `neuco protocols`")
    chosen: dict[str, tuple[Task, Protocol]] = {}
    for tasks, rules in _listed(on):
        for used, its_tasks in protocols_for(tasks, protocol or rules, None, **changes):
            for task in its_tasks:
                chosen.setdefault(task.label, (task, used))
    if not chosen:
        raise UsageError("no task to score on", expected=ON, got=_kind(on))
    return list(chosen.values())


def _listed(on: Any) -> list[tuple[Sequence[Task], str | None]]:
    """Tasks, and the protocol that comes with them."""
    if isinstance(on, Task):
        return [([on], None)]
    if isinstance(on, Suite):
        return [(catalog().suite_tasks(on), on.protocol)]
    if isinstance(on, Dataset):
        return [(list_tasks(dataset=on.id), None)]
    if isinstance(on, str):
        return [_by_name(on)]
    if isinstance(on, Iterable) and not isinstance(on, Mapping):
        return [item for part in on for item in _listed(part)]
    raise UsageError("nothing to score on", expected=ON, got=_kind(on))


def _by_name(name: str) -> tuple[Sequence[Task], str | None]:
    """A task goes before a suite, and a suite before the dataset of the same name: it says how to score."""
    if any(mark in name for mark in "*?["):
        return list_tasks(name), None
    if isinstance(task := catalog().plugins.find("task", name), Task):
        return [task], None
    suites, bad = catalog().survey_suites()
    if name in bad:
        raise bad[name]
    if name in suites:
        return catalog().suite_tasks(suites[name]), suites[name].protocol
    datasets = catalog().all(Dataset)
    if name in datasets:
        return list_tasks(dataset=name), None
    candidates = [*catalog().all(Task), *suites, *datasets]
    raise UnknownIdError("task, suite or dataset", name, candidates, "See `neuco tasks`, `neuco suites`")


def _kind(value: object) -> str:
    return f"{type(value).__name__}" + (f" of {len(value)}" if isinstance(value, list | tuple | dict) else "")
