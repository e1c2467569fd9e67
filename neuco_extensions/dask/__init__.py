"""Scoring on several machines with dask.distributed: ``neuco score --engine dask://host:port``."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Engine


@hookimpl
def neuco_engines() -> Iterator[Engine]:
    title = "dask.distributed: a cluster on this machine, or dask://host:port"
    yield Engine(id="dask", title=title, factory="neuco_extensions.dask.engine:open_dask")
