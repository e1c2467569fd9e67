"""What goes into a score, named by hashes that can be had without fetching, encoding or scoring anything.

``labels_from`` and ``embeddings_from`` say where labels and embeddings come from: the bytes of a file, or the
dataset, the code and the parameters of an encoder. As long as they are unchanged, so is what comes out of them,
and a record is compared with the present without making it again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from neuco_core.env import installed_version
from neuco_core.errors import DependencyError, NeucoError, OfflineError, UnpinnedError
from neuco_core.jsonio import hashed
from neuco_core.plugins.catalog import load_dataset, load_metric, load_probe, load_splitter
from neuco_core.plugins.code import code_key, home_of
from neuco_core.plugins.discovery import BUILTIN
from neuco_core.protocol import Protocol
from neuco_core.records.model import Scalar
from neuco_core.specs import Dataset, Method, Spec, Task
from neuco_core.versions import behind

# Other versions of these change the last digits at most; a record made with them is not stale, its versions are noted.
NUMERICAL = frozenset(("numpy", "scipy", "scikit-learn", "torch", "torchvision", "numba", "pandas"))

UNKNOWN_CODE = secrets.token_hex(32)  # another one in every process


class Trace(NamedTuple):
    """The hash of where something comes from; or None and, if it is known that it cannot be had here, the reason."""

    key: str | None
    missing: str = ""


class Identity:
    """The identities of one run; each is worked out once."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self._shared = {**protocol_inputs(protocol), **_components(protocol)}
        self._labels: dict[str, Trace] = {}
        self._embeddings: dict[tuple[str, str], Trace] = {}
        self._cubes: dict[str, str | NeucoError] = {}
        self._tasks: dict[str, dict[str, Scalar]] = {}
        self._metrics: dict[str, dict[str, Scalar]] = {}

    def inputs(self, method: Method, task: Task) -> dict[str, Scalar]:
        """All inputs but the hashes of the contents."""
        if task.id not in self._tasks:
            self._tasks[task.id] = {**self._shared, **self._task(task)}
        return {
            **self._tasks[task.id],
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
        }

    def labels(self, task: Task) -> Trace:
        if task.id not in self._labels:
            self._labels[task.id] = _attempt(lambda: _labels_from(task))
        return self._labels[task.id]

    def embeddings(self, method: Method, dataset_id: str) -> Trace:
        place = method.id, dataset_id
        if place not in self._embeddings:
            self._embeddings[place] = _attempt(lambda: self._embeddings_from(method, dataset_id))
        return self._embeddings[place]

    def _embeddings_from(self, method: Method, dataset_id: str) -> str:
        if method.files:
            from neuco_core.fetch.pins import require_pin

            return hashed({"file": require_pin(method.files[dataset_id]).sha256})
        part = method_part(method)
        if not all(part["packages"].values()):
            # Without the package nobody can say whether it changed: the cell fails if it is run, and is not stale.
            raise DependencyError(f"method {method.id!r} needs a package that is not installed")
        return embeddings_key(part, self.dataset(dataset_id))

    def dataset(self, dataset_id: str) -> str:
        """What is known of a dataset's cubes; opening them reads no sample."""
        if dataset_id not in self._cubes:
            try:
                self._cubes[dataset_id] = _cubes(load_dataset(dataset_id))
            except NeucoError as error:
                self._cubes[dataset_id] = error
        found = self._cubes[dataset_id]
        if isinstance(found, NeucoError):
            raise found
        return found


def _attempt(make: Callable[[], str]) -> Trace:
    try:
        return Trace(make())
    except (UnpinnedError, OfflineError, _NotHereError) as error:
        return Trace(None, str(error))
    except NeucoError:
        # Whatever else is wrong will be met again, and reported with its type, when the cell is run.
        return Trace(None)
    except Exception:
        return Trace(UNKNOWN_CODE)  # the plugin's own code failed: nobody can say that nothing changed


class _NotHereError(NeucoError):
    """Data that is not on this machine."""


def method_part(method: Method) -> dict[str, Any]:
    """What a method itself contributes to its embeddings: parameters, code, packages."""
    own = [method.id, method.version, dict(method.params), list(method.bands), _code(method.encoder, method)]
    return {
        "method": own,
        "packages": _packages(method),
        "encode": version_of("neuco_core.encode.run", "encode_dataset"),
    }


def embeddings_key(part: Mapping[str, Any], dataset: str) -> str:
    """The key of a method's embeddings of a dataset."""
    return hashed({**part, "dataset": dataset})


def _labels_from(task: Task) -> str:
    from neuco_core.fetch.links import linked_file
    from neuco_core.fetch.pins import require_pin

    path = linked_file(task.dataset, task.source)
    content = _file_hash(path) if path else require_pin(task.source).sha256
    return labels_key(content, task.kind, task.columns, task.group_column, task_code(task))


def task_code(task: Task) -> str:
    """The hash of the code that reads a task's labels, if it has its own."""
    return _code(task.loader, task) if task.loader else ""


def labels_key(content: str | None, kind: str, columns: Sequence[str], group: str | None, code: str) -> str:
    """The key of a task's labels: the file, and how it is read."""
    return hashed([content, kind, list(columns), group, code])


def _cubes(dataset: Dataset) -> str:
    from neuco_core.fetch.links import dataset_root

    if dataset.cubes is None:
        return hashed([dataset.id, dataset.version])
    try:
        source = dataset.cubes()
    except NeucoError as error:
        if dataset_root(dataset.id) is None:
            raise _NotHereError(str(error)) from error
        raise
    return hashed([dataset.id, dataset.version, source.version, list(source.bands), list(source.seasons)])


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


def _components(protocol: Protocol) -> dict[str, Scalar]:
    return {
        "probe_code": component(load_probe, protocol.probe, "factory"),
        "splitter_code": component(load_splitter, protocol.splitter, "function"),
        "scorer": version_of("neuco_core.scoring.scorer", "score"),
    }


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
    function = getattr(spec, attribute)
    if spec.origin is not None and spec.origin.plugin in BUILTIN:
        return version_of(*function.args)
    return _code(function, spec)


def _code(function: Callable[..., Any] | None, spec: Spec) -> str:
    """The key of a function's code; of code that cannot be found nobody knows whether it changed, so: it did."""
    return code_key(function, home_of(spec), files=True) or UNKNOWN_CODE


def _packages(method: Method) -> dict[str, str]:
    """Versions of what a method requires; a package may hold the very weights."""
    names = {re.split(r"[\s<>=!~;\[]", item, maxsplit=1)[0] for item in method.requires}
    return {name: installed_version(name) for name in sorted(names) if name.lower().replace("_", "-") not in NUMERICAL}


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
}


def differences(recorded: Mapping[str, Scalar], now: Mapping[str, Scalar]) -> list[str]:
    """What is not as it was when the record was made, in words. What cannot be known here is not compared."""
    found = []
    for name in sorted(recorded.keys() | now.keys()):
        if name in ("labels", "embeddings") or (name.endswith("_from") and now.get(name) is None):
            continue
        before, after = recorded.get(name), now.get(name)
        if before != after or (name in recorded) != (name in now):
            found.append(CHANGES.get(name) or f"{name} changed from {before!r} to {after!r}")
    return found


def contradictions(claimed: Mapping[str, Scalar], registered: Mapping[str, Scalar]) -> list[str]:
    """What a record says of its method and its metric and they do not say themselves, in words."""
    return [
        f"{name} is {claimed[name]!r}, but {value!r} by the {'method' if name == 'baseline' else 'metric'}"
        for name, value in registered.items()
        if claimed[name] != value
    ]
