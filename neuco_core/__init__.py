"""neuco: a registry of tasks and methods for comparing small fixed-size embeddings."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # typing takes longer to import than all the rest here; checkers know this name
if TYPE_CHECKING:
    from typing import Any

    from neuco_core.errors import NeucoError
    from neuco_core.hookspecs import hookimpl
    from neuco_core.plugins.catalog import (
        list_datasets,
        list_methods,
        list_protocols,
        list_suites,
        list_tasks,
        load_dataset,
        load_method,
        load_protocol,
        load_suite,
        load_task,
    )
    from neuco_core.protocol import Protocol
    from neuco_core.scoring.scorer import Score, score
    from neuco_core.specs import (
        Baseline,
        BoardKind,
        Dataset,
        Engine,
        Method,
        Metric,
        Probe,
        Remote,
        Splitter,
        Suite,
        Task,
    )
    from neuco_core.tables.embeddings import read_embeddings

__version__ = "0.1.0"

# Name → module. Everything is imported when it is first used, so that listing plugins stays quick.
_HOME = {
    **dict.fromkeys(
        [
            "Baseline",
            "BoardKind",
            "Dataset",
            "Engine",
            "Method",
            "Metric",
            "Probe",
            "Remote",
            "Splitter",
            "Suite",
            "Task",
        ],
        "neuco_core.specs",
    ),
    **dict.fromkeys(
        (
            "list_datasets",
            "list_methods",
            "list_protocols",
            "list_suites",
            "list_tasks",
            "load_dataset",
            "load_method",
            "load_protocol",
            "load_suite",
            "load_task",
        ),
        "neuco_core.plugins.catalog",
    ),
    "NeucoError": "neuco_core.errors",
    "Protocol": "neuco_core.protocol",
    "Score": "neuco_core.scoring.scorer",
    "hookimpl": "neuco_core.hookspecs",
    "read_embeddings": "neuco_core.tables.embeddings",
    "score": "neuco_core.scoring.scorer",
}

__all__ = [
    "Baseline",
    "BoardKind",
    "Dataset",
    "Engine",
    "Method",
    "Metric",
    "NeucoError",
    "Probe",
    "Protocol",
    "Remote",
    "Score",
    "Splitter",
    "Suite",
    "Task",
    "hookimpl",
    "list_datasets",
    "list_methods",
    "list_protocols",
    "list_suites",
    "list_tasks",
    "load_dataset",
    "load_method",
    "load_protocol",
    "load_suite",
    "load_task",
    "read_embeddings",
    "score",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'neuco_core' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
