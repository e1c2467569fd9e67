"""Records made by hand, as neuco would write them."""

from __future__ import annotations

import random
from typing import Any

from neuco_core.files import hashed
from neuco_core.plugins.catalog import load_protocol
from neuco_core.records.fingerprint import CellInputs
from neuco_core.records.model import Record, Scalar
from neuco_core.scoring.quality import summarize


def inputs(method: str = "random", task: str = "digits_class", k: int = 40) -> dict[str, Scalar]:
    return {
        **CellInputs(load_protocol("neuco-2025")).shared,
        "protocol.k": k,
        **dict.fromkeys(("labels", "labels_from", "embeddings", "embeddings_from"), "0a" * 32),
        **dict.fromkeys(("metric_code", "probe_code", "splitter_code", "scorer", "strict_code"), "v1"),
        "splitter": "shuffle",
        "method": method,
        "method_version": 1,
        "task": task,
        "task_version": 1,
        "dataset": "digits",
        "kind": "classification",
        "metric": "f1",
    }


def scored(method: str = "random", task: str = "digits_class", seed: int = 1, k: int = 5, **changes: Any) -> Record:
    chance = random.Random(seed)
    splits = tuple(chance.random() for _ in range(k))
    mean, std, q = summarize(splits, True) or (None, None, None)
    values: dict[str, Any] = {
        "per_split": splits,
        "mean": mean,
        "std": std,
        "q": q,
        "metrics": {"accuracy": splits},
        "samples": {"used": 40, "labels": 41},
        "splits": {"undefined": 0},
        "status": "ok",
    }
    return _record(method, task, {**values, **changes}, k)


def unscored(status: str = "failed", failure: str | None = "timeout", **changes: Any) -> Record:
    return _record(
        "random", "digits_class", {"status": status, "failure": failure, "reason": "it was too slow", **changes}
    )


NAMES = ("method", "method_version", "task", "task_version", "dataset", "kind")


def _record(method: str, task: str, changes: dict[str, Any], k: int = 40) -> Record:
    record_inputs = inputs(method, task, k)
    values: dict[str, Any] = {
        **{name: record_inputs[name] for name in NAMES},
        "metric": "f1",
        "protocol": "neuco-2025",
        "inputs": record_inputs,
        "fingerprint": hashed(record_inputs),
        "greater_is_better": True,
        "lower": 0.0,
        "upper": 1.0,
        "dim": 64,
        "provenance": {"neuco": "0.1.0", "seconds": 1.5},
    }
    return Record(**{**values, **changes})
