"""The engines that come with neuco, registered like anybody's. Light, because it is imported to list them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from neuco_core.errors import UsageError
from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Engine


@hookimpl
def neuco_engines() -> Iterator[Engine]:
    yield Engine(id="local", title="worker processes on this machine", factory=_local)
    yield Engine(id="dask", title="dask.distributed", factory=_dask)


def _local(address: str | None, jobs: int) -> Any:
    from neuco_core.runs.engines.local import LocalEngine

    if address is not None:
        raise UsageError("the local engine has no address", expected="--engine local", got=f"local://{address}")
    return LocalEngine(jobs)


def _dask(address: str | None, jobs: int) -> Any:
    from neuco_core.runs.engines.dask import DaskEngine

    if address is not None and not _is_host_and_port(address):
        hint = "Without :// it is a cluster on this machine: --engine dask"
        expected = "e.g. dask://127.0.0.1:8786"
        raise UsageError("not the address of a dask scheduler", expected=expected, got=f"dask://{address}", hint=hint)
    return DaskEngine(address or "", jobs)


def _is_host_and_port(address: str) -> bool:
    try:
        parts = urlsplit(f"dask://{address}")
        return bool(parts.hostname and parts.port) and address == parts.netloc and "@" not in address
    except ValueError:  # a port that is not a number, or too large
        return False
