"""NeuCo-Bench's YAML config, old and new, read into a protocol and a few switches.

Old configs have ``batch_size``, ``epochs`` and ``learning_rate`` at the top; newer ones have ``probe_type``
and ``probe_params``. Both are read, neither is changed, and unknown keys are reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml
from msgspec import Meta, Struct

from neuco_core.errors import DataError, NeucoError
from neuco_core.protocol import Protocol, load_protocol
from neuco_extensions.bench.svm import SearchSpace, read_search

Count = Annotated[int, Meta(ge=1)]
TRAINING = ("batch_size", "epochs", "learning_rate")


class ConfigFile(Struct, frozen=True, kw_only=True):
    """The keys of a config, with NeuCo-Bench's own defaults for what it leaves out."""

    k_folds: Count
    batch_size: Count = 64
    epochs: Count = 10
    learning_rate: float | str = 0.001  # YAML 1.1 reads 1e-3 (no dot) as text
    device: str = "auto"
    embedding_dim: Count | None = None
    task_filter: Annotated[tuple[str, ...], Meta(min_length=1)] | None = None
    probe_type: Literal["linear", "svm"] = "linear"
    probe_params: dict[str, Any] = {}
    standardize_embeddings: bool = True
    normalize_labels: bool = True
    enable_plots: bool = True
    update_leaderboard: bool = False
    output_fold_results: bool = False
    store_probes: bool = False
    store_models: bool = False  # the older word for store_probes


KEYS = ConfigFile.__struct_fields__
PROBES = {"linear": (*TRAINING, "device"), "svm": SearchSpace.__struct_fields__}


@dataclass(frozen=True)
class BenchConfig:
    """A config as it will be used; ``source`` is what the file says, ``notes`` is what the user should know.

    ``search`` is NeuCo-Bench's own search for an svm; without it, an svm is searched inside each training part.
    """

    file: ConfigFile
    protocol: Protocol
    search: SearchSpace | None
    source: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def store_probes(self) -> bool:
        return self.file.store_probes or self.file.store_models

    @property
    def hyperparameters(self) -> dict[str, Any]:
        if self.protocol.probe != "linear":
            return {"probe": self.protocol.probe, **self.protocol.params}  # and what a search has found, by task
        p = self.protocol
        return {"epochs": p.epochs, "learning_rate": p.lr, "batch_size": p.batch_size}


def read_config(path: Path, *, svm_search: str = "own") -> BenchConfig:
    """Read a YAML config file; ``svm_search`` is ``own`` or ``upstream``, NeuCo-Bench's."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        hint = "Give one with --config FILE"
        raise DataError("cannot read the config", where=path, got=error.strerror, hint=hint) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"not a YAML file: {error}", where=path) from error
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise DataError("bad config", where=path, expected="keys with values", got=type(data).__name__)
    return parse_config(data, path, svm_search=svm_search)


def parse_config(data: Mapping[str, Any], where: object = "config", *, svm_search: str = "own") -> BenchConfig:
    file = _checked(data, where)
    params, upstream = file.probe_params, svm_search == "upstream" and file.probe_type == "svm"
    search = read_search(params, where) if upstream else None
    notes = [*_unknown(data, KEYS), *_unknown(params, PROBES[file.probe_type], "probe_params.")]
    changes: dict[str, Any] = {"k": file.k_folds, "embedding_dim": file.embedding_dim}
    changes["normalize_labels"] = file.normalize_labels
    if file.probe_type == "svm":
        notes += _svm_notes(data, file, search)
        if file.store_probes or file.store_models:
            hint = "Set `store_probes: false`: only a linear probe can be stored as plain numbers"
            raise DataError("store_probes needs the linear probe", where=where, hint=hint)
        if search:  # a probe by a name of its own: nothing that `neuco score` could take for one of its protocols
            changes |= {"standardize": file.standardize_embeddings, "probe": "svm-neuco-bench"}
    else:
        try:
            rate = float(file.learning_rate)
        except ValueError:
            rate = math.nan
        if not (math.isfinite(rate) and rate > 0):
            got = repr(file.learning_rate)
            raise DataError("bad learning_rate", where=where, expected="a number above 0", got=got)
        changes |= {"standardize": file.standardize_embeddings, "batch_size": file.batch_size, "epochs": file.epochs}
        changes["lr"] = rate
    if file.device not in ("auto", "cpu"):
        notes.append(f"device: {file.device!r} is ignored, the probe runs on the processor")
    protocol = load_protocol("neuco-2025" if file.probe_type == "linear" or search else "svm")
    # Only what differs is changed, so that the protocol's name says exactly that.
    for key, value in changes.copy().items():
        if getattr(protocol, key, protocol.params.get(key)) == value:
            del changes[key]
    try:
        protocol = protocol.with_(**changes)
    except NeucoError as error:
        raise DataError(f"bad config: {error}", where=where) from error
    return BenchConfig(file, protocol, search, dict(data), tuple(notes))


def _checked(data: Mapping[str, Any], where: object) -> ConfigFile:
    """The keys with their values; those of a linear probe may stand at the top or in ``probe_params``."""
    values = {key: value for key, value in data.items() if value is not None}
    if values.get("task_filter") is False:  # the old config says false, the newer one null
        del values["task_filter"]
    params = values.get("probe_params")
    if isinstance(params, dict):
        for key in TRAINING:
            if key in params and key in data and params[key] != data[key]:
                got = f"{data[key]!r} and {params[key]!r}"
                raise DataError(f"{key} is given twice, with different values", where=where, got=got)
        values |= {key: params[key] for key in PROBES["linear"] if params.get(key) is not None}
    if "k_folds" not in values:
        raise DataError("k_folds is missing", where=where, expected="a whole number", hint="Add `k_folds: 40`")
    try:
        return msgspec.convert(values, ConfigFile)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$.")
        key = path.rstrip("`").partition("[")[0]
        raise DataError(f"bad {key}: {message}", where=where, got=repr(values[key])) from error


def _svm_notes(data: Mapping[str, Any], file: ConfigFile, search: SearchSpace | None) -> list[str]:
    if search:
        kind = "each split's score is the best of all settings on its own test part: too kind"
        notes = [f"probe_type svm, NeuCo-Bench's search: {kind}"]
        if not search.opt_params:
            notes.append("without opt_params NeuCo-Bench's search has no seed; 42 is taken, as it does with them")
        return notes
    ignored = [f"probe_params.{key}" for key in PROBES["svm"] if key in file.probe_params]
    text = "probe_type svm: neuco searches inside each training part, so the numbers are not NeuCo-Bench's"
    notes = [text + (f"; not used: {', '.join(ignored)}" if ignored else "") + "; --svm_search upstream gives those"]
    if data.get("standardize_embeddings") is not None:
        standardize = str(file.standardize_embeddings).lower()
        scaled = "an svm always scales each dimension by its training part"
        notes.append(f"standardize_embeddings: {standardize} is not used: {scaled}")
    return notes


def _unknown(data: Mapping[str, Any], names: Sequence[str], prefix: str = "") -> Iterator[str]:
    for key in data:
        if key not in names:
            close = get_close_matches(key, names, n=1)
            yield f"unknown key {prefix}{key} is ignored" + (f"; did you mean {close[0]}?" if close else "")
