"""The boards that the registry's records give at this moment: the edge between files and the pure functions."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from neuco_core.boards.build import build_board
from neuco_core.boards.facts import with_facts
from neuco_core.boards.model import Board
from neuco_core.errors import DataError, NeucoError, UnknownIdError
from neuco_core.plugins.catalog import Catalog
from neuco_core.records.fingerprint import Present, stale_records
from neuco_core.records.model import Key, Record
from neuco_core.records.store import read_all, records_file
from neuco_core.specs import Suite, Task
from neuco_core.text import counted, join_names

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Current:
    """All records of a registry, each read strictly, and why some of them no longer count."""

    suites: Mapping[str, Suite]
    records: Sequence[Record]
    stale: Mapping[Key, str]
    bad: Mapping[str, NeucoError] = field(default_factory=dict)  # files that are no suites, by the id they would have

    def why_stale(self, record: Record) -> str | None:
        return self.stale.get(record.key)

    def choose(self, names: Sequence[str] = ()) -> list[Suite]:
        """These suites, or all."""
        for name in names:
            if name in self.bad:
                raise self.bad[name]
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
        of_suite = [r for r in chosen if r.task in suite.tasks and r.protocol == suite.protocol]
        board = with_facts(build_board(chosen, suite, options, stale=self.why_stale), of_suite)
        return replace(board, rule=f"{board.rule}; only the methods {', '.join(only)}") if only else board


def current(registry: Path) -> Current:
    """Read a registry. A record of a task that is not registered is refused, as is any other bad record."""
    catalog = Catalog(registry=registry)
    suites, bad = catalog.survey_suites()
    for problem in catalog.suite_problems().values():  # its board shows old scores or none: say why
        log.warning("%s", problem)
    tasks = {*catalog.all(Task), *(task for suite in suites.values() for task in suite.tasks)}
    records = list(read_all(registry))
    for record in records:
        if record.task not in tasks:
            where = records_file(registry, record.key[0])
            raise DataError(f"a record of the unknown task {record.task!r}", where=where, hint="See `neuco tasks`")
    present = Present()
    stale = stale_records(records, present)
    not_compared = [present.why_not_compared(record) for record in records if record.ok and record.key not in stale]
    not_compared = [reason for reason in not_compared if reason]
    if not_compared:  # they rank as they are recorded
        reasons = join_names(sorted(set(not_compared)), 1)
        log.warning("%s could not be compared here: %s", counted(len(not_compared), "record"), reasons)
    return Current(suites, records, stale, bad)
