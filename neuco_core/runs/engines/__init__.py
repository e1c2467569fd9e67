"""Engines by name: ``local``, ``dask`` (a cluster on this machine) or ``dask://host:port``."""

from __future__ import annotations

from urllib.parse import urlsplit

from neuco_core.errors import UsageError
from neuco_core.runs.steps import Engine


def open_engine(name: str, jobs: int) -> Engine:
    """The engine with ``jobs`` workers; a scheduler that is elsewhere has as many as it has."""
    if name == "local":
        from neuco_core.runs.engines.local import LocalEngine

        return LocalEngine(jobs)
    if name == "dask" or name.startswith("dask://"):
        address = "" if name == "dask" else _address(name)
        from neuco_core.runs.engines.dask import DaskEngine

        return DaskEngine(address, jobs)
    raise UsageError("no such engine", expected="local, dask or dask://host:port", got=repr(name))


def _address(name: str) -> str:
    """host:port of a scheduler."""
    try:
        parts = urlsplit(name)
        complete = bool(parts.hostname and parts.port) and name == f"dask://{parts.netloc}" and "@" not in name
    except ValueError:  # a port that is no number, or too large
        complete = False
    if not complete:
        hint = "Without :// it is a cluster on this machine: --engine dask"
        raise UsageError("no address of a dask scheduler", expected="e.g. dask://127.0.0.1:8786", got=name, hint=hint)
    return name.removeprefix("dask://")
