"""What somebody at a prompt has in hand, as a source of embeddings and as tasks; what cannot be used is said."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from neuco_core.encode.run import EncodeOptions
from neuco_core.errors import UnknownIdError, UsageError
from neuco_core.plugins.catalog import catalog, list_tasks, protocols_for
from neuco_core.protocol import Protocol
from neuco_core.runs.files import method_id
from neuco_core.specs import Dataset, Method, Suite, Task
from neuco_core.studies.sources import FileSource, MethodSource, Source, open_source
from neuco_core.tables.embeddings import Embeddings, make_embeddings

if TYPE_CHECKING:
    import pandas

WHAT = (
    "a method or its id, a path, Embeddings, (ids, array), an array with ids=, a DataFrame with an id column or index, "
    "a mapping of ids to vectors, a function of a CubeBatch, or a list of these"
)
ON = "a task, a suite or a dataset, the id of one, or a list of these"
YOURS = "yours"
RESTLESS = ("Dropout", "DropPath", "BatchNorm")  # in the names of layers that differ in training mode


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
