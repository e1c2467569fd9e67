"""neuco: a registry of tasks and methods for comparing small fixed-size embeddings."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # typing takes longer to import than all the rest here; checkers know this name
if TYPE_CHECKING:
    from typing import Any

    from neuco_core.boards.trial_rank import Standing as Standing
    from neuco_core.boards.trial_rank import rank_on as rank_on
    from neuco_core.errors import NeucoError as NeucoError
    from neuco_core.hookspecs import hookimpl as hookimpl
    from neuco_core.plugins.catalog import list_datasets as list_datasets
    from neuco_core.plugins.catalog import list_methods as list_methods
    from neuco_core.plugins.catalog import list_protocols as list_protocols
    from neuco_core.plugins.catalog import list_suites as list_suites
    from neuco_core.plugins.catalog import list_tasks as list_tasks
    from neuco_core.plugins.catalog import load_dataset as load_dataset
    from neuco_core.plugins.catalog import load_method as load_method
    from neuco_core.plugins.catalog import load_protocol as load_protocol
    from neuco_core.plugins.catalog import load_suite as load_suite
    from neuco_core.plugins.catalog import load_task as load_task
    from neuco_core.protocol import Protocol as Protocol
    from neuco_core.scoring.scorer import Score as Score
    from neuco_core.scoring.scorer import score as score
    from neuco_core.specs import Baseline as Baseline
    from neuco_core.specs import BoardKind as BoardKind
    from neuco_core.specs import CellSource as CellSource
    from neuco_core.specs import Check as Check
    from neuco_core.specs import Coder as Coder
    from neuco_core.specs import ColumnSource as ColumnSource
    from neuco_core.specs import Command as Command
    from neuco_core.specs import Dataset as Dataset
    from neuco_core.specs import Engine as Engine
    from neuco_core.specs import Method as Method
    from neuco_core.specs import Metric as Metric
    from neuco_core.specs import Panel as Panel
    from neuco_core.specs import Probe as Probe
    from neuco_core.specs import PublishedSource as PublishedSource
    from neuco_core.specs import Remote as Remote
    from neuco_core.specs import Splitter as Splitter
    from neuco_core.specs import Suite as Suite
    from neuco_core.specs import Task as Task
    from neuco_core.studies.compare import compare as compare
    from neuco_core.studies.evaluate import Results as Results
    from neuco_core.studies.evaluate import evaluate as evaluate
    from neuco_core.tables.embeddings import Embeddings as Embeddings
    from neuco_core.tables.embeddings import read_embeddings as read_embeddings
    from neuco_core.tables.pinning import pin_labels as pin_labels

__version__ = "0.1.0"

# Module → names. Everything is imported when it is first used, so that listing plugins stays quick.
_PUBLIC = {
    "boards.trial_rank": "Standing rank_on",
    "errors": "NeucoError",
    "hookspecs": "hookimpl",
    "plugins.catalog": "list_datasets list_methods list_protocols list_suites list_tasks "
    "load_dataset load_method load_protocol load_suite load_task",
    "protocol": "Protocol",
    "scoring.scorer": "Score score",
    "specs": "Baseline BoardKind CellSource Check Coder ColumnSource Command Dataset Engine Method Metric Panel Probe "
    "PublishedSource Remote Splitter Suite Task",
    "studies.compare": "compare",
    "studies.evaluate": "Results evaluate",
    "tables.embeddings": "Embeddings read_embeddings",
    "tables.pinning": "pin_labels",
}
_HOME = {name: f"neuco_core.{module}" for module, names in _PUBLIC.items() for name in names.split()}
__all__ = sorted(_HOME)  # noqa: PLE0605 - computed from the one list of public names


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'neuco_core' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
