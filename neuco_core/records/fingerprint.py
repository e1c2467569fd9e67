"""What goes into a score, named by hashes that can be had without fetching, encoding or scoring anything.

``labels_from`` and ``embeddings_from`` say where labels and embeddings come from: the bytes of a file, or the
dataset, the code and the parameters of an encoder. As long as they are unchanged, so is what comes out of them,
and a record is compared with the present without making it again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from neuco_core.encode.lock import locked_versions, weight_hashes
from neuco_core.env import installed_version, requirement_name
from neuco_core.errors import DependencyError, NeucoError, OfflineError, UnpinnedError
from neuco_core.jsonio import hashed
from neuco_core.plugins.catalog import load_dataset, load_metric, load_probe, load_splitter
from neuco_core.plugins.code_key import code_key, home_of
from neuco_core.plugins.discovery import BUILTIN
from neuco_core.protocol import Protocol
from neuco_core.records.model import Record, Scalar
from neuco_core.specs import Dataset, Method, Spec, Task, resolve
from neuco_core.versions import behind

# Other versions of these change the last digits at most; a record made with them is not stale, its versions are noted.
NUMERICAL = frozenset(("numpy", "scipy", "scikit-learn", "torch", "torchvision", "numba", "pandas"))

UNKNOWN_CODE = secrets.token_hex(32)  # another one in every process


class Trace(NamedTuple):
    """The hash of where something comes from; or None and, if it is known that it cannot be had here, the reason."""

    key: str | None
    missing: str = ""


class Identity:
    """The identities of one run; each is worked out once. ``other`` is of the same run under another protocol."""

    def __init__(self, protocol: Protocol, other: Identity | None = None) -> None:
        self.protocol = protocol
        self._shared: dict[str, Scalar] = {
            **protocol_inputs(protocol),
            "probe_code": component(load_probe, protocol.probe, "factory"),
            "scorer": version_of("neuco_core.scoring.scorer", "score"),
            "strict_code": version_of("neuco_core.scoring.metrics", "strict_r2"),
        }
        # Where labels and embeddings come from has nothing to do with the protocol.
        self._labels: dict[str, Trace] = other._labels if other else {}
        self._embeddings: dict[tuple[str, str], Trace] = other._embeddings if other else {}
        self._cubes: dict[str, str | NeucoError] = other._cubes if other else {}
        self._codes: dict[str, str] = other._codes if other else {}
        self._tasks: dict[str, dict[str, Scalar]] = {}
        self._metrics: dict[str, dict[str, Scalar]] = {}

    def inputs(self, method: Method, task: Task) -> dict[str, Scalar]:
        """All inputs but the hashes of the contents."""
        if task.label not in self._tasks:
            self._tasks[task.label] = {**self._shared, **self._task(task)}
        return {
            **self._tasks[task.label],
            "method": method.id,
            "method_version": method.version,
            "embeddings_from": self.embeddings(method, task.dataset).key,
        }

    def claims(self, method: Method, task: Task) -> dict[str, Scalar]:
        """What a record must repeat of the method and the metric; of a metric that is not here nothing is known."""
        if task.metric not in self._metrics:
            self._metrics[task.metric] = direction(task.metric)
        return {"baseline": method.baseline, **self._metrics[task.metric]}

    def _task(self, task: Task) -> dict[str, Scalar]:
        return {
            "task": task.id,
            "task_version": task.version,
            "dataset": task.dataset,
            "kind": task.kind,
            "metric": task.metric,
            "metric_code": component(load_metric, task.metric, "function"),
            "labels_from": self.labels(task).key,
            "splitter": self.protocol.splitter_for(task.splitter),
            "splitter_code": component(load_splitter, self.protocol.splitter_for(task.splitter), "function"),
        }

    def labels(self, task: Task) -> Trace:
        if task.label not in self._labels:
            self._labels[task.label] = _attempt(lambda: _labels_from(task))
        return self._labels[task.label]

    def embeddings(self, method: Method, dataset_id: str) -> Trace:
        place = method.label, dataset_id
        if place not in self._embeddings:
            self._embeddings[place] = _attempt(lambda: self._embeddings_from(method, dataset_id))
        return self._embeddings[place]

    def _embeddings_from(self, method: Method, dataset_id: str) -> str:
        if method.files:
            from neuco_core.fetch.pins import require_pin

            return hashed({"file": require_pin(method.files[dataset_id]).sha256})
        return encoded_from(method, self.dataset(dataset_id), self._codes)

    def dataset(self, dataset_id: str) -> str:
        """What is known of a dataset's cubes; opening them reads no sample."""
        if dataset_id not in self._cubes:
            try:
                self._cubes[dataset_id] = cubes_key(load_dataset(dataset_id))
            except NeucoError as error:
                self._cubes[dataset_id] = error
        found = self._cubes[dataset_id]
        if isinstance(found, NeucoError):
            raise found
        return found


def encoded_from(method: Method, dataset: str, codes: dict[str, str] | None = None) -> str:
    """Where the embeddings of an encoder come from; ``dataset`` is the key of its cubes.

    ``codes`` keeps the keys of methods' code, by label: on several datasets it is the same.
    """
    packages = _packages(method)
    if not all(packages.values()):
        # Without the package nobody can say whether it changed, or run it: a record is not stale, and not compared.
        lacking = ", ".join(name for name, version in packages.items() if not version)
        raise DependencyError(f"method {method.id!r} needs {lacking}, which is not installed")
    codes = {} if codes is None else codes
    if method.label not in codes:
        codes[method.label] = method_code(method)
    return hashed(
        {
            "method": [method.id, method.version, dict(method.params), list(method.bands), list(method.seasons)],
            "code": codes[method.label],
            "packages": packages,
            "encode": version_of("neuco_core.encode.run", "encode_dataset"),
            "dataset": dataset,
            "weights": weight_hashes(method),
        }
    )


def _attempt(make: Callable[[], str]) -> Trace:
    try:
        return Trace(make())
    except (UnpinnedError, OfflineError, DependencyError, _NotHereError) as error:
        return Trace(None, str(error))
    except NeucoError:
        # Whatever else is wrong will be met again, and reported with its type, when the cell is run.
        return Trace(None)
    except Exception:
        return Trace(UNKNOWN_CODE)  # the plugin's own code failed: nobody can say that nothing changed


class _NotHereError(NeucoError):
    """Data that is not on this machine."""


def method_code(method: Method) -> str:
    """The key of an encoder's code and of the files beside it; of a method that is a file there is none."""
    return _code(method.encoder, method) if method.encoder else ""


def _labels_from(task: Task) -> str:
    from neuco_core.fetch.links import linked_file
    from neuco_core.fetch.pins import require_pin

    path = linked_file(task.dataset, task.source)
    content = _file_hash(path) if path else require_pin(task.source).sha256
    columns = list(task.columns), task.group_column, task.split_column
    return hashed([content, task.kind, columns, task_code(task)])


def task_code(task: Task) -> str:
    """The hash of the code that reads a task's labels, if it has its own."""
    return _code(task.loader, task) if task.loader else ""


def cubes_code(dataset: Dataset) -> str:
    """The key of the code that opens and reads a dataset's cubes."""
    return code_key(dataset.cubes, home_of(dataset)) or UNKNOWN_CODE


def cubes_key(dataset: Dataset) -> str:
    """What is known of a dataset's cubes, as a key."""
    from neuco_core.fetch.links import dataset_root

    if dataset.cubes is None:
        return hashed([dataset.id, dataset.version])
    try:
        source = dataset.cubes()
    except NeucoError as error:
        if dataset_root(dataset.id) is None:
            raise _NotHereError(str(error)) from error
        raise
    own = [dataset.id, dataset.version, source.version, list(source.bands), list(source.seasons)]
    return hashed([*own, cubes_code(dataset)])


def protocol_inputs(protocol: Protocol) -> dict[str, Scalar]:
    """Every field of the protocol, flat; a description changes no number."""
    inputs: dict[str, Scalar] = {"protocol": protocol.name}
    for item in dataclasses.fields(protocol):
        value = getattr(protocol, item.name)
        if isinstance(value, Mapping):
            inputs |= {f"protocol.{item.name}.{key}": part for key, part in value.items()}
        elif item.name not in ("name", "description"):
            inputs[f"protocol.{item.name}"] = value
    return inputs


def direction(metric: str) -> dict[str, Scalar]:
    try:
        found = load_metric(metric)
    except NeucoError:
        return {}
    return {"greater_is_better": found.greater_is_better, "lower": found.lower, "upper": found.upper}


def version_of(module: str, name: str) -> str:
    """The version of a component of neuco, with those of the components that it is made of."""
    own, *others = sorted(behind(module, name).items(), key=lambda item: item[0] != name)
    return "".join([f"v{own[1]}", *(f"+{part}{number}" for part, number in others)])


def component(load: Callable[[str], Spec], spec_id: str, attribute: str) -> str:
    """What decides the numbers of a metric, probe or splitter: its version if it comes with neuco, else its code."""
    try:
        spec = load(spec_id)
    except NeucoError:
        return "unknown"  # the cell will fail with the reason
    target = getattr(spec, attribute)
    if spec.origin is not None and spec.origin.plugin in BUILTIN:
        return version_of(*target.split(":"))
    try:
        return _code(resolve(target), spec)
    except (ImportError, AttributeError):  # a name that leads nowhere: the cell will fail with the reason
        return "unknown"


def _code(function: Callable[..., Any] | None, spec: Spec) -> str:
    """The key of a function's code; of code that cannot be found nobody knows whether it changed, so: it did."""
    return code_key(function, home_of(spec)) or UNKNOWN_CODE


def _packages(method: Method) -> dict[str, str]:
    """Versions of what a method requires, as locked or else as installed; a package may hold the very weights."""
    names = {requirement_name(item) for item in method.requires}
    locked = locked_versions(method)  # no other versions are ever run, and these are known where none is installed
    return {name: locked.get(name) or installed_version(name) for name in sorted(names - NUMERICAL)}


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# What a change of an input means, in words; protocol fields speak for themselves.
CHANGES = {
    "labels_from": "the label file, or how it is read, changed",
    "embeddings_from": "the embeddings' file, or the encoder's code, parameters or data, changed",
    "scorer": "the scorer changed",
    "metric_code": "the metric changed",
    "probe_code": "the probe changed",
    "splitter_code": "the splitter changed",
    "strict_code": "R² of protocols that leave out test parts without variance changed",
}


def differences(recorded: Mapping[str, Scalar], now: Mapping[str, Scalar]) -> list[str]:
    """What is not as it was when the record was made, in words. What cannot be known here is not compared."""
    if now.items() <= recorded.items() and recorded.keys() - now.keys() == {"labels", "embeddings"}:
        return []  # the usual case, decided without looking at single fields
    found = []
    for name in sorted(recorded.keys() | now.keys()):
        if name in ("labels", "embeddings") or (name.endswith("_from") and now.get(name) is None):
            continue
        before, after = recorded.get(name), now.get(name)
        if before != after or (name in recorded) != (name in now):
            found.append(CHANGES.get(name) or f"{name} changed from {before!r} to {after!r}")
    return found


def contradictions(record: Record, registered: Mapping[str, Scalar]) -> list[str]:
    """What a record says of its method and its metric and they do not say themselves, in words."""
    return [
        f"{name} is {getattr(record, name)!r}, but {value!r} by the {'method' if name == 'baseline' else 'metric'}"
        for name, value in registered.items()
        if getattr(record, name) != value
    ]
