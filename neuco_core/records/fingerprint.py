"""What goes into a score, named by hashes, and by these which records are stale. Nothing is fetched or computed for it.

``labels_from`` and ``embeddings_from`` say where labels and embeddings come from: the bytes of a file, or the
dataset, the code and the parameters of an encoder. As long as they are unchanged, so is what comes out of them,
and a record is compared with the present without making it again. A record is stale if it is not what the registered
method, task and protocol would give; ``Present.why_stale`` decides it.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, ParamSpec

from neuco_core.encode.requirements import lock_of, read_lock
from neuco_core.encode.run import why_not
from neuco_core.env import installed_version, requirement_name
from neuco_core.errors import DependencyError, NeucoError, OfflineError, UnknownIdError, UnpinnedError
from neuco_core.fetch.cache import hash_file
from neuco_core.fetch.fetch import require_pin
from neuco_core.fetch.links import dataset_root, linked_file
from neuco_core.files import hashed
from neuco_core.plugins.catalog import (
    catalog,
    load_dataset,
    load_method,
    load_protocol,
    load_task,
    metric_under,
)
from neuco_core.plugins.code_key import code_key, home_of
from neuco_core.plugins.discovery import BUILTIN
from neuco_core.protocol import Protocol
from neuco_core.records.model import BY_PLACE, Key, Record, Scalar
from neuco_core.specs import Coder, Dataset, Method, Metric, Probe, Remote, Splitter, Task, resolve
from neuco_core.tables.positions import positions_key
from neuco_core.versions import behind

# Other versions of these change the last digits at most; a record made with them is not stale, its versions are noted.
NUMERICAL = frozenset(("numpy", "scipy", "scikit-learn", "torch", "torchvision", "numba", "pandas"))

P = ParamSpec("P")
UNKNOWN = "unknown"  # a component that is not here: the cell will fail with the reason
UNKNOWN_CODE = secrets.token_hex(32)  # another one in every process

# What a change of an input means, in words; protocol fields speak for themselves.
CHANGES = {
    "labels_from": "the label file, or how it is read, changed",
    "embeddings_from": "the embeddings' file, or the encoder's code, parameters or data, changed",
    "scorer": "the scorer changed",
    "metric_code": "the metric changed",
    "probe_code": "the probe changed",
    "splitter_code": "the splitter changed",
    BY_PLACE: "the dataset's positions changed",
    "strict_code": "R² of protocols that leave out test parts without variance changed",
}


class Trace(NamedTuple):
    """The hash of where something comes from; or None and, if it is known that it cannot be had here, the reason."""

    key: str | None
    missing: str = ""


class CellInputs:
    """What decides the cells of one run; each part is worked out once. ``other`` is of another protocol of the run."""

    def __init__(self, protocol: Protocol, other: CellInputs | None = None) -> None:
        self.protocol = protocol
        # Every field of the protocol, flat; a description changes no number.
        self.shared: dict[str, Scalar] = {"protocol": protocol.name}
        for item in dataclasses.fields(protocol):
            value = getattr(protocol, item.name)
            if isinstance(value, Mapping):
                self.shared |= {f"protocol.{item.name}.{key}": part for key, part in value.items()}
            elif item.name not in ("name", "description"):
                self.shared[f"protocol.{item.name}"] = value
        self.shared |= {
            "probe_code": component(Probe, protocol.probe, "factory") + made_of(protocol),
            "scorer": version_of("neuco_core.scoring.scorer", "score"),
            "strict_code": version_of("neuco_core.scoring.metrics", "strict_r2"),
        }
        # Where labels and embeddings come from has nothing to do with the protocol.
        self._labels: dict[str, Trace] = other._labels if other else {}
        self._embeddings: dict[tuple[str, str], Trace] = other._embeddings if other else {}
        self._cubes: dict[str, str] = other._cubes if other else {}
        self._tasks: dict[str, dict[str, Scalar]] = {}

    def of(self, method: Method, task: Task) -> dict[str, Scalar]:
        """All inputs but the hashes of the contents."""
        if task.label not in self._tasks:
            splitter, metric = self.protocol.splitter_for(task.splitter), metric_under(self.protocol, task)
            splitter_code = component(Splitter, splitter, "function")
            self._tasks[task.label] = {
                **self.shared,
                "task": task.id,
                "task_version": task.version,
                "dataset": task.dataset,
                "kind": task.kind,
                "metric": metric,
                "metric_code": component(Metric, metric, "function"),
                "labels_from": self.labels_from(task).key,
                "splitter": splitter,
                "splitter_code": splitter_code,
            }
            if splitter_code != UNKNOWN and catalog().load(Splitter, splitter).needs_positions:
                self._tasks[task.label][BY_PLACE] = positions_key(task.dataset)
        return {
            **self._tasks[task.label],
            "method": method.id,
            "method_version": method.version,
            "embeddings_from": self.embeddings_from(method, task.dataset).key,
        }

    def changes(self, record: Record, now: Mapping[str, Scalar], method: Method, task: Task) -> list[str]:
        """What is not as it was when a record was made, in words. What cannot be known here is not compared.

        Also what a score copied from its method or metric, where that no longer matches.
        """
        then, changes = record.inputs, []
        # The usual case, decided without looking at single fields.
        if not (now.items() <= then.items() and then.keys() - now.keys() == {"labels", "embeddings"}):
            for name in sorted(then.keys() | now.keys()):
                if name in ("labels", "embeddings") or (name.endswith("_from") and now.get(name) is None):
                    continue
                before, after = then.get(name), now.get(name)
                if before != after or (name in then) != (name in now):
                    changes.append(CHANGES.get(name) or f"{name} changed from {before!r} to {after!r}")
        if changes or not record.ok:
            return changes
        return [
            f"{name} is {getattr(record, name)!r}, but {value!r} by the {'method' if name == 'baseline' else 'metric'}"
            for name, value in claims(method, metric_under(self.protocol, task)).items()
            if getattr(record, name) != value
        ]

    def labels_from(self, task: Task) -> Trace:
        if task.label not in self._labels:
            self._labels[task.label] = _attempt(labels_key, task)
        return self._labels[task.label]

    def embeddings_from(self, method: Method, dataset_id: str) -> Trace:
        key = method.label, dataset_id
        if key not in self._embeddings:
            self._embeddings[key] = _attempt(embeddings_key, method, dataset_id, self._cubes)
        return self._embeddings[key]


def embeddings_key(method: Method, dataset_id: str, cubes: dict[str, str]) -> str:
    """Where embeddings come from: a file, or an encoder and the cubes of a dataset; ``cubes`` has the keys of these."""
    if method.uses_positions and dataset_id not in method.files:
        return hashed([method.label, dict(method.params), own_code(method), positions_key(dataset_id)])
    if method.files:
        return hashed({"file": require_pin(method.files[dataset_id]).sha256})
    if dataset_id not in cubes:
        dataset = load_dataset(dataset_id)
        of_cubes: list[Any] = []
        if dataset.cubes is not None:
            try:
                source = dataset.cubes()
            except NeucoError as error:
                if dataset_root(dataset_id) is None:
                    raise _NotHereError(str(error)) from error
                raise
            of_cubes = [source.version, list(source.bands), list(source.seasons), own_code(dataset)]
        cubes[dataset_id] = hashed([dataset.id, dataset.version, *of_cubes])
    # A package may hold the very weights. No versions but the locked ones are ever run.
    names = {requirement_name(item) for item in method.requires} - NUMERICAL
    lock = lock_of(method)
    locked = {item.name: item.version for item in read_lock(lock)} if lock else {}
    packages = {name: locked.get(name) or installed_version(name) for name in sorted(names)}
    if not all(packages.values()):
        # Without the package nobody can say whether it changed, or run it: a record is not stale, and not compared.
        lacking = ", ".join(name for name, version in packages.items() if not version)
        raise DependencyError(f"method {method.id!r} needs {lacking}, which is not installed")
    return hashed(
        {
            "method": [method.id, method.version, dict(method.params), list(method.bands), list(method.seasons)],
            "code": own_code(method),
            "packages": packages,
            "encode": version_of("neuco_core.encode.run", "encode_dataset"),
            "dataset": cubes[dataset_id],
            "weights": {name: require_pin(remote).sha256 for name, remote in method.weights.items()},
        }
    )


class _NotHereError(NeucoError):
    """Data that is not on this machine."""


def _attempt(make: Callable[P, str], *args: P.args, **kwargs: P.kwargs) -> Trace:
    try:
        return Trace(make(*args, **kwargs))
    except (UnpinnedError, OfflineError, DependencyError, _NotHereError) as error:
        return Trace(None, str(error))
    except NeucoError:
        # Whatever else is wrong will be met again, and reported with its type, when the cell is run.
        return Trace(None)
    except Exception:
        return Trace(UNKNOWN_CODE)  # the plugin's own code failed: nobody can say that nothing changed


def own_code(spec: Dataset | Method | Task) -> str:
    """The key of a plugin's own code that encodes, reads the labels or opens the cubes; "" if there is none.

    Of code that cannot be found nobody knows whether it changed, so: it did.
    """
    function = spec.encoder if isinstance(spec, Method) else spec.loader if isinstance(spec, Task) else spec.cubes
    return (code_key(function, home_of(spec)) or UNKNOWN_CODE) if function else ""


def labels_key(task: Task) -> str:
    """Where labels come from: the bytes of their file, and how it is read."""
    path = linked_file(task.dataset, task.source)
    content = hash_file(path) if path else require_pin(task.source).sha256
    columns = list(task.columns), task.group_column, task.split_column
    return hashed([content, task.kind, columns, own_code(task)])


def claims(method: Method, metric_id: str) -> dict[str, Scalar]:
    """What a record must repeat of the method and the metric; of a metric that is not here nothing is known."""
    try:
        metric = catalog().load(Metric, metric_id)
    except NeucoError:
        return {"baseline": method.baseline}
    direction = {"greater_is_better": metric.greater_is_better, "lower": metric.lower, "upper": metric.upper}
    return {"baseline": method.baseline, **direction}


def version_of(module: str, name: str) -> str:
    """The version of a component of neuco, with those of the components that it is made of."""
    versions = behind(module, name)
    return f"v{versions[name]}" + "".join(f"+{part}{number}" for part, number in versions.items() if part != name)


def made_of(protocol: Protocol) -> str:
    """The key of what decides the numbers of a protocol's probe besides its own code, after a mark; "" if nothing."""
    try:
        spec = catalog().load(Probe, protocol.probe)
        return f"+{resolve(spec.made_of)(protocol)}" if spec.made_of else ""
    except NeucoError:
        return ""  # the cell will fail with the reason


def component(noun: type[Coder | Metric | Probe | Splitter], spec_id: str, attribute: str) -> str:
    """What decides the numbers of a metric, probe or splitter: its version if it comes with neuco, else its code."""
    try:
        spec = catalog().load(noun, spec_id)
    except NeucoError:
        return UNKNOWN
    target = getattr(spec, attribute)
    if spec.origin is not None and spec.origin.plugin in BUILTIN:
        return version_of(*target.split(":"))
    try:
        return code_key(resolve(target), home_of(spec)) or UNKNOWN_CODE
    except (ImportError, AttributeError):  # a name that leads nowhere: the cell will fail with the reason
        return UNKNOWN


class Present:
    """What is registered at this moment, to compare records with."""

    def __init__(self) -> None:
        self._inputs: dict[str, CellInputs] = {}

    def why_stale(self, record: Record) -> str:
        """Why a record is no longer true: an input changed, its ids are gone, or it contradicts what is registered.

        A score of a method that has nothing for the task's dataset cannot be true either. What cannot be compared on
        this machine, such as a dataset that is not here, does not make a record stale.
        """
        try:
            if record.protocol not in self._inputs:
                other = next(iter(self._inputs.values()), None)
                self._inputs[record.protocol] = CellInputs(load_protocol(record.protocol), other)
            inputs = self._inputs[record.protocol]
            taken = None if record.registered else catalog().plugins.find("method", record.method, any_spelling=True)
            if taken is not None:
                return f"made from a file, but {taken.id!r} is a registered method now"
            method, task = self._method(record), load_task(f"{record.task}@{record.task_version}")
            nothing = why_not(method, task.dataset)
            if nothing and record.ok:
                return f"there is nothing to score: {nothing}"
            now = inputs.of(method, task)
            if nothing:  # as a record that says so: it is of no embeddings
                now |= {"embeddings_from": None}
            if record.method_version < method.version:
                # The code of the earlier version is gone, so its embeddings cannot be compared.
                now |= {"method_version": record.method_version, "embeddings_from": None}
            return "; ".join(inputs.changes(record, now, method, task))
        except UnknownIdError as error:
            return f"{error.noun} {error.name!r} is not registered"
        except NeucoError as error:
            return str(error)

    def why_not_compared(self, record: Record) -> str:
        """What this machine lacks to compare a record that is not stale; "" if all of it was compared."""
        inputs, task = self._inputs[record.protocol], load_task(f"{record.task}@{record.task_version}")
        traces = [inputs.labels_from(task)]
        if record.registered and not self.is_replaced(record):
            traces.append(inputs.embeddings_from(self._method(record), record.dataset))
        return next((trace.missing for trace in traces if trace.missing), "")

    def is_replaced(self, record: Record) -> bool:
        """Whether a later version of the method has taken the place of the record's, which cannot be run again."""
        return record.registered and self._method(record).version > record.method_version

    def _method(self, record: Record) -> Method:
        """The method in the record's version, or the newest one if a later version has replaced that."""
        if not record.registered:
            # Made from a file, which may be gone; what it held is in the record's inputs.
            return Method(id=record.method, files={record.dataset: Remote("file:///unknown")})
        try:
            return load_method(f"{record.method}@{record.method_version}")
        except UnknownIdError:
            newest = load_method(record.method)
            if record.method_version < newest.version:
                return newest
            raise


def stale_records(records: Iterable[Record], present: Present | None = None) -> dict[Key, str]:
    """The records that are no longer true, each with the reason."""
    present = present or Present()
    reasons = {record.key: present.why_stale(record) for record in records}
    return {key: reason for key, reason in reasons.items() if reason}
