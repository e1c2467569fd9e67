"""The boards that the registry's records give at this moment: the edge between files and the pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from neuco_core.boards.build import build_board
from neuco_core.boards.model import Board
from neuco_core.errors import UnknownIdError
from neuco_core.plugins.catalog import Catalog
from neuco_core.records.model import Key, Record
from neuco_core.records.store import read_all
from neuco_core.runs.plan import stale_records
from neuco_core.specs import Suite, Task

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Current:
    """All records of a registry, each read strictly, and why some of them no longer count."""

    suites: Mapping[str, Suite]
    records: Sequence[Record]
    stale: Mapping[Key, str]

    def why_stale(self, record: Record) -> str | None:
        return self.stale.get(record.key)

    def choose(self, names: Sequence[str] = ()) -> list[Suite]:
        """These suites, or all."""
        for name in names:
            if name not in self.suites:
                raise UnknownIdError("suite", name, self.suites)
        return [self.suites[name] for name in names] if names else list(self.suites.values())

    def board(self, suite: Suite, options: Mapping[str, Any] | None = None, only: Sequence[str] = ()) -> Board:
        """The board of a suite; with ``only``, the pool is the methods that match one of the patterns."""
        methods = sorted({record.method for record in self.records})
        for pattern in only:
            if not any(fnmatchcase(method, pattern) for method in methods):
                raise UnknownIdError("method", pattern, methods)
        chosen = [r for r in self.records if not only or any(fnmatchcase(r.method, pattern) for pattern in only)]
        board = build_board(chosen, suite, options, stale=self.why_stale)
        return replace(board, rule=f"{board.rule}; only the methods {', '.join(only)}") if only else board


def current(registry: Path) -> Current:
    """Read a registry. A record of a task that is not registered is refused, as is any other bad record."""
    known = Catalog(registry=registry)
    suites = known.suites()
    tasks = {*known.all(Task), *(task for suite in suites.values() for task in suite.tasks)}
    records = read_all(registry, tasks=tasks)
    return Current(suites, records, stale_records(records))
