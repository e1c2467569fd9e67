"""How tasks are scored: as somebody says, or as the suite, or as their dataset says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuco_core.errors import SpecError, UsageError
from neuco_core.plugins.catalog import load_protocol, load_suite, task_protocol
from neuco_core.protocol import Protocol
from neuco_core.specs import Task


def by_protocol(
    tasks: Sequence[Task], name: str | Protocol | None, suite: str | None, **changes: Any
) -> list[tuple[Protocol, list[Task]]]:
    """The tasks with how to score them: as named, or as the suite, or as their dataset says, changed by options."""
    groups: dict[str, tuple[Protocol, list[Task]]] = {}
    try:
        named: Protocol | None = None
        if name or suite:
            named = name if isinstance(name, Protocol) else load_protocol(name or load_suite(str(suite)).protocol)
        for task in tasks:
            protocol = named or task_protocol(task)
            given = {key: new for key, new in changes.items() if new is not None and _value(protocol, key) != new}
            protocol = protocol.with_(**given) if given else protocol
            groups.setdefault(protocol.name, (protocol, []))[1].append(task)
    except SpecError as error:  # a wrong value of a caller, not a broken plugin
        raise UsageError(str(error)) from error
    return [groups[key] for key in sorted(groups)]


def _value(protocol: Protocol, key: str) -> Any:
    return getattr(protocol, key, protocol.params.get(key))
