"""The checks that come with neuco, registered like anybody's."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core.contract import (  # noqa: F401 - importing fills the list
    dataset_checks,
    headroom_check,
    honest_check,
    method_checks,
    task_checks,
)
from neuco_core.contract.contract import CHECKS
from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Check


@hookimpl
def neuco_checks() -> Iterator[Check]:
    yield from CHECKS.values()
