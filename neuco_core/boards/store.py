"""The boards of a registry: what its records give at this moment, and ``leaderboards/<suite>.json``.

The edge between files and the pure functions. What boards were before is git's to tell.
"""

from __future__ import annotations

import logging
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from neuco_core.boards.build import build_board
from neuco_core.boards.cells import by_protocol
from neuco_core.boards.diff import changes
from neuco_core.boards.facts import read_confirmed, with_columns, with_facts
from neuco_core.boards.model import Board, plain, read_part
from neuco_core.env import layers
from neuco_core.errors import DataError, NeucoError, UnknownIdError
from neuco_core.files import dump, write_atomic
from neuco_core.plugins.catalog import Catalog
from neuco_core.records.fingerprint import Present, stale_records
from neuco_core.records.model import Key, Record
from neuco_core.records.store import read_all, unwritable
from neuco_core.specs import Method, Suite, Task
from neuco_core.text import counted, join_names

log = logging.getLogger(__name__)


def board_path(registry: Path, suite: str) -> Path:
    return registry / "leaderboards" / f"{suite}.json"


def read_board(path: Path) -> Board:
    hint = f"Run `neuco leaderboard build {path.stem}`"
    if not path.exists():
        raise DataError("there is no board yet", where=path, hint=hint)
    return read_part(path, Board, "a board", hint)


def board_layer(registry: Path, suite: str) -> Path:
    """The registry that has the board: this one's first layer, or the next below that; the first if none has it."""
    registries = layers(registry)
    return next((layer for layer in registries if board_path(layer, suite).exists()), registries[0])


def stored_board(registry: Path, suite: str) -> Board:
    """The board as it was built last, here or in a registry that lies below."""
    return read_board(board_path(board_layer(registry, suite), suite))


def write_board(registry: Path, board: Board) -> list[str]:
    """Write a board where scores are written; returns what changed, in words. The same board again writes nothing."""
    old, content = board_path(board_layer(registry, board.about.id), board.about.id), dump(plain(board))
    path = board_path(layers(registry)[0], board.about.id)
    if not old.exists():
        messages = [f"first version, {counted(len(board.ranked), 'method')} ranked"]
    elif old.read_bytes() == content:
        return []
    else:
        try:
            messages = [str(change) for change in changes(read_board(old), board)]
        except DataError as error:  # an old format, or a damaged file: it does not stand in the way of a new one
            messages = [f"the old file was {error.what}"]
    try:
        write_atomic(path, content)
    except OSError as error:
        raise unwritable(path, error) from error
    return messages or ["reformatted; no values changed"]


def lost_methods(registry: Path, board: Board, drop: Collection[str] = ()) -> dict[str, str]:
    """The methods with a rank on the stored board that this one would not rank, with the reason; but for those to drop.

    A copy stays: it is shown with its method. A damaged board names nobody, and may be replaced.
    """
    stays = {row.method for row in board.rows if row.same_as} | set(drop)
    with suppress(DataError):
        listed = changes(stored_board(registry, board.about.id), board)
        return {item.subject: item.why for item in listed if item.kind == "gone-method" and item.subject not in stays}
    return {}


def would_lose(lost: Mapping[str, str]) -> str:
    """The methods that a board would lose, and each reason once."""
    reasons = join_names(list(dict.fromkeys(lost.values())), 2)
    return f"it would lose {counted(len(lost), 'method')} ({join_names(list(lost))}): {reasons}"


def keep_hint(suite: str, variables: str = "") -> str:
    return (
        f"Score again with `neuco score --all --suite {suite}`, or name the methods that may go: "
        f"`{variables}neuco leaderboard build {suite} --drop METHOD,…`"
    )


def check_board(registry: Path, board: Board) -> None:
    """Refuse a stored board that is not, byte for byte, what the records give, those above it left out."""
    suite = board.about.id
    layer = board_layer(registry, suite)
    path = board_path(layer, suite)
    committed = read_board(path)
    if path.read_bytes() != dump(plain(board)):
        messages = [str(change) for change in changes(committed, board)] or ["its formatting differs"]
        what = "; ".join([*messages[:5], "…"] if len(messages) > 5 else messages)
        lost = lost_methods(registry, board)
        variables = "" if layer == layers(registry)[0] else f"NEUCO_REGISTRY={shlex.quote(str(layer))} "
        hint = keep_hint(suite, variables) if lost else f"Run `{variables}neuco leaderboard build {suite}`"
        raise DataError(f"the board is not what the records give: {what}", where=path, hint=hint)


def orphans(registry: Path, suites: Collection[str]) -> list[Path]:
    """Files among the boards that belong to no suite."""
    return [
        path
        for layer in layers(registry)
        for path in sorted((layer / "leaderboards").glob("*"))
        if path not in {board_path(layer, suite) for suite in suites}
    ]


@dataclass(frozen=True)
class Current:
    """All records of a registry, each read strictly, and why some of them no longer count."""

    suites: Mapping[str, Suite]
    records: Sequence[Record]
    stale: Mapping[Key, str]
    bad: Mapping[str, NeucoError] = field(default_factory=dict)  # files that are no suites, by the id they would have
    confirmed: Collection[str] = ()
    reasons_not_compared: Sequence[str] = ()  # of records that rank as they are recorded
    unregistered: Mapping[str, int] = field(default_factory=dict)  # how many others are of a task or method elsewhere

    @property
    def not_compared(self) -> str:
        """How many records could not be compared with what is here, why, and what follows; "" if none."""
        if not self.reasons_not_compared:
            return ""
        first, *others = sorted(set(self.reasons_not_compared))
        more = f" ({counted(len(others), 'other reason')} beside it)" if others else ""
        count = counted(len(self.reasons_not_compared), "record")
        return f"{count} could not be compared here, their scores count as they are: {first}{more}"

    def why_stale(self, record: Record) -> str | None:
        return self.stale.get(record.key)

    def choose(self, names: Sequence[str] = ()) -> list[Suite]:
        for name in names:
            if name in self.bad:
                raise self.bad[name]
            if name not in self.suites:
                raise UnknownIdError("suite", name, self.suites)
        return [self.suites[name] for name in names] if names else list(self.suites.values())

    def choose_records(self, only: Sequence[str] = ()) -> list[Record]:
        """All records, or those of the methods that match one of the patterns."""
        methods = sorted({record.method for record in self.records})
        for pattern in only:
            if not any(fnmatchcase(method, pattern) for method in methods):
                raise UnknownIdError("method", pattern, methods)
        return [r for r in self.records if not only or any(fnmatchcase(r.method, pattern) for pattern in only)]

    def board(self, suite: Suite, options: Mapping[str, Any] | None = None, only: Sequence[str] = ()) -> Board:
        """The board of a suite; with ``only``, the pool is the methods that match one of the patterns."""
        chosen = self.choose_records(only)
        of_suite = [r for r in chosen if r.task in suite.tasks and r.protocol == suite.protocol]
        board = build_board(chosen, suite, options, stale=self.why_stale)
        board = with_columns(board, by_protocol(chosen, suite, self.why_stale))
        board = with_facts(board, of_suite, self.confirmed)
        return replace(board, rule=f"{board.rule}; only the methods {', '.join(only)}") if only else board


def current(registry: Path, top: Path | None = None) -> Current:
    """Read a registry. A bad record is refused; one of a task or method that is not registered here does not count.

    ``top`` leaves out the records of the registries above that one.
    """
    catalog = Catalog(registry=registry)
    suites, bad = catalog.survey_suites()
    for sentence in catalog.suite_warnings():  # its board shows old scores or none: say why
        log.warning("%s", sentence)
    records, unregistered = _split_registered(read_all(registry, top), catalog)
    if unregistered:
        left, names = sum(unregistered.values()), join_names([*unregistered], 3)
        log.warning("%s left out, not registered here: %s. `neuco doctor` lists all", counted(left, "record"), names)
    present = Present()
    stale = stale_records(records, present)
    reasons = [present.why_not_compared(record) for record in records if record.ok and record.key not in stale]
    confirmed, not_compared = read_confirmed(registry), [reason for reason in reasons if reason]
    return Current(suites, records, stale, bad, confirmed, not_compared, unregistered)


def _split_registered(records: Iterable[Record], catalog: Catalog) -> tuple[list[Record], Counter[str]]:
    """The records whose task and method are registered here; and how many are of another one, by its name and home."""
    tasks, methods = catalog.all(Task), catalog.all(Method)
    here, unregistered = [], Counter[str]()
    for record in records:
        if record.task not in tasks:
            unregistered[_with_home(record, "task", record.task)] += 1
        elif record.registered and record.method not in methods:
            unregistered[_with_home(record, "method", record.method)] += 1
        else:
            here.append(record)
    return here, unregistered


def _with_home(record: Record, noun: str, name: str) -> str:
    """The name with the package or plugin that it came from, which would bring it back."""
    origin = record.provenance.get("origin")
    home = str(origin.get(noun) or "") if isinstance(origin, dict) else ""  # free text, and anybody's
    kind = "package" if " " in home else "plugin"  # a package is named with its version
    return f"{noun} {name!r}" + (f" (of {kind} {home})" if home else "")
