"""The engine that comes with neuco, registered like anybody's. Light, because it is imported to list engines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neuco_core.errors import UsageError
from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Engine


@hookimpl
def neuco_engines() -> Iterator[Engine]:
    yield Engine(id="local", title="worker processes on this machine", factory=_local)


def _local(address: str | None, jobs: int) -> Any:
    from neuco_core.runs.engines.local import LocalEngine

    if address is not None:
        raise UsageError("the local engine has no address", expected="--engine local", got=f"local://{address}")
    return LocalEngine(jobs)
