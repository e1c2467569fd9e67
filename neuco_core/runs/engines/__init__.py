"""Engines by name: ``local``, or a plugin's, which may have an address: ``name://address``."""

from __future__ import annotations

from neuco_core.plugins.catalog import catalog
from neuco_core.runs.steps import EngineLike
from neuco_core.specs import Engine, resolve


def open_engine(name: str, jobs: int) -> EngineLike:
    """The engine with ``jobs`` workers; one that is elsewhere, as ``name://address``, has as many as it has."""
    engine_id, _, address = name.partition("://")
    factory = resolve(catalog().load(Engine, engine_id).factory)
    engine: EngineLike = factory(address if "://" in name else None, jobs)
    return engine
