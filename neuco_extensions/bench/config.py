"""NeuCo-Bench's YAML config, old and new, read into a protocol and a few switches.

Old configs have ``batch_size``, ``epochs`` and ``learning_rate`` at the top; newer ones have ``probe_type``
and ``probe_params``. Both are read, neither is changed, and unknown keys are reported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from neuco_core.errors import DataError, NeucoError
from neuco_core.protocol import Protocol, load_protocol
from neuco_extensions.bench.svm import KEYS, Search, read_search

# NeuCo-Bench's own defaults for what a config leaves out.
SWITCHES = {
    "standardize_embeddings": True,
    "normalize_labels": True,
    "enable_plots": True,
    "update_leaderboard": False,
    "output_fold_results": False,
    "store_probes": False,
    "store_models": False,
}
TRAINING = {"batch_size": 64, "epochs": 10, "learning_rate": 0.001}
TOP = (*SWITCHES, *TRAINING, "device", "k_folds", "embedding_dim", "task_filter", "probe_type", "probe_params")
PROBES = {"linear": (*TRAINING, "device"), "svm": KEYS}
OPTIMISTIC = "each split's score is the best of all settings on its own test part: too kind"


@dataclass(frozen=True)
class BenchConfig:
    """A config as it will be used; ``source`` is what the file says, ``notes`` is what the user should know.

    ``search`` is NeuCo-Bench's own search for an svm; without it, an svm is searched inside each training part.
    """

    protocol: Protocol
    task_filter: tuple[str, ...] | None = None
    enable_plots: bool = True
    update_leaderboard: bool = False
    output_fold_results: bool = False
    store_probes: bool = False
    search: Search | None = None
    source: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """What NeuCo-Bench writes into each result as the settings of the probe."""
        if self.protocol.probe != "linear":
            return {"probe": self.protocol.probe, **self.protocol.params}  # and what a search has found, by task
        p = self.protocol
        return {"epochs": p.epochs, "learning_rate": p.lr, "batch_size": p.batch_size}


def read_config(path: Path, *, svm_search: str = "own") -> BenchConfig:
    """Read a YAML config file; ``svm_search`` is ``own`` or ``upstream``, NeuCo-Bench's."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(
            "cannot read the config", where=path, got=error.strerror, hint="Give one with --config FILE"
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(f"not a YAML file: {error}", where=path) from error
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise DataError("bad config", where=path, expected="keys with values", got=type(data).__name__)
    return parse_config(data, path, svm_search=svm_search)


def parse_config(data: Mapping[str, Any], where: object = "config", *, svm_search: str = "own") -> BenchConfig:
    """Check the values of a config and turn them into a protocol and switches."""
    notes = [_unknown(key, TOP) for key in data if key not in TOP]
    switches = {key: _typed(data, key, default, bool, where) for key, default in SWITCHES.items()}
    probe = _typed(data, "probe_type", "linear", str, where)
    if probe not in PROBES:
        raise DataError("bad probe_type", where=where, expected="linear or svm", got=repr(probe))
    params = _typed(data, "probe_params", {}, dict, where)
    notes += [_unknown(f"probe_params.{key}", PROBES[probe]) for key in params if key not in PROBES[probe]]
    search = read_search(params, where) if probe == "svm" and svm_search == "upstream" else None
    if probe == "svm":
        notes += _svm_notes(data, params, search, switches["standardize_embeddings"])
        if switches["store_probes"] or switches["store_models"]:
            hint = "Set `store_probes: false`: only a linear probe can be stored as plain numbers"
            raise DataError("store_probes needs the linear probe", where=where, hint=hint)
    device = params.get("device", data.get("device", "auto"))
    if device not in ("auto", "cpu"):
        notes.append(f"device: {device!r} is ignored, the probe runs on the processor")
    changes = {
        "k": _count(data, "k_folds", None, where),
        "embedding_dim": None if data.get("embedding_dim") is None else _count(data, "embedding_dim", None, where),
        "normalize_labels": switches["normalize_labels"],
    }
    if probe == "linear":
        changes |= {"standardize": switches["standardize_embeddings"], **_training(data, params, where)}
    if search:  # a probe by a name of its own: nothing that `neuco score` could take for one of its protocols
        changes |= {"standardize": switches["standardize_embeddings"], "probe": "svm-neuco-bench"}
    return BenchConfig(
        protocol=_variant("neuco-2025" if probe == "linear" or search else "svm", changes, where),
        task_filter=_task_filter(data, where),
        enable_plots=switches["enable_plots"],
        update_leaderboard=switches["update_leaderboard"],
        output_fold_results=switches["output_fold_results"],
        store_probes=switches["store_probes"] or switches["store_models"],
        search=search,
        source=dict(data),
        notes=tuple(notes),
    )


def _variant(base: str, changes: Mapping[str, Any], where: object) -> Protocol:
    """The protocol with only what differs from it changed, so that its name says exactly that."""
    protocol = load_protocol(base)
    differing = {
        key: value for key, value in changes.items() if getattr(protocol, key, protocol.params.get(key)) != value
    }
    try:
        return protocol.with_(**differing) if differing else protocol
    except NeucoError as error:
        raise DataError(f"bad config: {error}", where=where) from error


def _training(data: Mapping[str, Any], params: Mapping[str, Any], where: object) -> dict[str, Any]:
    """Batch size, epochs and learning rate, from ``probe_params`` or, in old configs, from the top."""
    for key in TRAINING:
        if key in params and key in data and params[key] != data[key]:
            got = f"{data[key]!r} and {params[key]!r}"
            raise DataError(f"{key} is given twice, with different values", where=where, got=got)
    merged = {**{key: data[key] for key in TRAINING if key in data}, **params}
    rate = merged.get("learning_rate", TRAINING["learning_rate"])
    return {
        "batch_size": _count(merged, "batch_size", TRAINING["batch_size"], where),
        "epochs": _count(merged, "epochs", TRAINING["epochs"], where),
        "lr": _positive(rate, "learning_rate", where),
    }


def _positive(value: Any, key: str, where: object) -> float:
    # YAML 1.1 reads 1e-3 (no dot) as text; NeuCo-Bench would hand that text to the optimiser and stop.
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise DataError(f"bad {key}", where=where, expected="a number above 0", got=repr(value))
    return number


def _svm_notes(
    data: Mapping[str, Any], params: Mapping[str, Any], search: Search | None, standardize: bool
) -> list[str]:
    if search:
        notes = [f"probe_type svm, NeuCo-Bench's search: {OPTIMISTIC}"]
        if "random_state" not in search.options and not search.options:
            notes.append("without opt_params NeuCo-Bench's search has no seed; 42 is taken, as it does with them")
        return notes
    ignored = [f"probe_params.{key}" for key in KEYS if key in params]
    text = "probe_type svm: neuco searches inside each training part, so the numbers are not NeuCo-Bench's"
    notes = [text + (f"; not used: {', '.join(ignored)}" if ignored else "") + "; --svm_search upstream gives those"]
    if data.get("standardize_embeddings") is not None:
        scaled = "an svm scales each dimension by its training part"
        told = scaled if standardize else f"{scaled} even so"
        notes.append(f"standardize_embeddings: {str(standardize).lower()} is not used: {told}")
    return notes


def _task_filter(data: Mapping[str, Any], where: object) -> tuple[str, ...] | None:
    value = data.get("task_filter")
    if value is None or value is False:  # the old config says false, the newer one null
        return None
    if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
        raise DataError("bad task_filter", where=where, expected="a list of task names, or null", got=repr(value))
    return tuple(value)


def _typed(data: Mapping[str, Any], key: str, default: Any, kind: type, where: object) -> Any:
    value = data.get(key)
    if value is None:
        return default
    if not isinstance(value, kind):
        names = {bool: "true or false", str: "text", dict: "keys with values"}
        raise DataError(f"bad {key}", where=where, expected=names[kind], got=repr(value))
    return value


def _count(data: Mapping[str, Any], key: str, default: int | float | None, where: object) -> int:
    value = data.get(key, default)
    if value is None:
        raise DataError(f"{key} is missing", where=where, expected="a whole number", hint=f"Add `{key}: 40`")
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise DataError(f"bad {key}", where=where, expected="a whole number of at least 1", got=repr(value))
    return value


def _unknown(key: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(key.rpartition(".")[2], known, n=1)
    return f"unknown key {key} is ignored" + (f"; did you mean {close[0]}?" if close else "")
