"""Engines by name: ``local``, ``dask`` (a cluster on this machine) or ``dask://host:port``."""

from __future__ import annotations

import os

from neuco_core.errors import UsageError
from neuco_core.results.steps import Engine


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def open_engine(name: str, jobs: int) -> Engine:
    """The engine with ``jobs`` workers; a scheduler that is elsewhere has as many as it has."""
    if name == "local":
        from neuco_core.results.local import LocalEngine

        return LocalEngine(jobs)
    if name == "dask" or name.startswith("dask://"):
        from neuco_core.results.dask_engine import DaskEngine

        return DaskEngine(name.removeprefix("dask").removeprefix("://"), jobs)
    raise UsageError("no such engine", expected="local, dask or dask://host:port", got=repr(name))
