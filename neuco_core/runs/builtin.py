"""The engine that comes with neuco, registered like anybody's. Light, because it is imported to list engines."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Engine


@hookimpl
def neuco_engines() -> Iterator[Engine]:
    yield Engine(id="local", title="worker processes on this machine", factory="neuco_core.runs.engine:open_local")
