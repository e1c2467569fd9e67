"""What publishing may change: no id vanishes from a suite unseen, and no board loses a method."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ci.stub import DESCRIPTION, NOUNS, read_json
from neuco_core.boards.model import plain
from neuco_core.boards.store import board_path, read_board
from neuco_core.errors import DataError
from neuco_core.jsonio import dump
from neuco_core.plugins.catalog import read_suite
from neuco_core.plugins.discovery import alike, inside
from neuco_core.records.model import Key
from neuco_core.specs import Suite
from neuco_core.text import join_names

Ids = Mapping[str, Mapping[str, str]]


class Lost(NamedTuple):
    """A cell whose method or task (``noun``, ``name``) is not registered, and why not; ``is_gone``: its plugin is."""

    key: Key
    noun: str
    name: str
    why: str
    is_gone: bool


def registered(data: Path) -> Ids:
    """By noun and id, the plugin that registers it, from what plugins declared. Two plugins with one id are refused.

    Ids are spelled as ``alike`` has them: the catalogue takes ``a-b`` and ``a_b`` for one id, and then has neither.
    """
    ids: dict[str, dict[str, str]] = {noun: {} for noun in NOUNS}
    for path in sorted(data.glob(f"neuco_*/*/{DESCRIPTION}")):
        folder = str(path.parent.relative_to(data))
        for row in read_json(path):
            first = ids[row["noun"]].setdefault(alike(row["spec"]["id"]), folder)
            if first != folder:
                what = f"two plugins register the {row['noun']} {row['spec']['id']!r}: {first} and {folder}"
                raise DataError(what, hint="Remove one of them; until then nothing is published")
    return ids


def lost_cells(keys: Iterable[Key], ids: Ids, silent: Mapping[str, str]) -> Iterator[Lost]:
    """Cells whose ids nobody registers; ``silent`` are plugins that could not say what they register, and why."""
    for key in keys:
        for noun, ref in (("method", key[0]), ("task", key[1])):
            name = ref.partition("@")[0]
            if alike(name) in ids[noun]:
                continue
            tree = f"neuco_{noun}s"
            reasons = [f"{folder}: {why}" for folder, why in silent.items() if _may_be_of(name, tree, folder)]
            yield Lost(key, noun, name, *((reasons[0], False) if reasons else ("no plugin registers it", True)))


def _may_be_of(name: str, tree: str, folder: str) -> bool:
    return folder.startswith(f"{tree}/") and inside(name, folder.removeprefix(f"{tree}/"))


def to_withdraw(lost: Sequence[Lost]) -> list[Key]:
    """The cells whose records go: each has an id that is gone, and none that a broken plugin may still register."""
    kept = {item.key for item in lost if not item.is_gone}
    return list(dict.fromkeys(item.key for item in lost if item.key not in kept))


def refuse_losses(lost: Iterable[Lost], suites: Iterable[Suite], allowed: Collection[str]) -> None:
    """A suite's board must not lose a method or a task by accident, nor by a rival's doing.

    A plugin that could not be asked loses nothing: its records stay, and a board that needs them stays too.
    """
    chosen = [suite for suite in suites if not suite.living]
    for item in (item for item in lost if item.is_gone):
        _, task, protocol = item.key
        for suite in chosen:
            compared = task.partition("@")[0] in suite.tasks and protocol == suite.protocol
            if compared and item.name not in allowed:
                what = f"suite {suite.id!r} compares records of {item.noun} {item.name!r}, which is lost: {item.why}"
                hint = f"Bring it back; or, if it is to go, run `python -m ci publish --push --withdraw {item.name}`"
                raise DataError(what, hint=hint)


def suites_of(registry: Path) -> list[Suite]:
    return [read_suite(path) for path in sorted((registry / "suites").glob("*.toml"))]


def next_boards(made: Path, registry: Path, allowed: Collection[str] = ()) -> tuple[dict[Path, bytes], list[str]]:
    """The boards of the registry's suites that came out of a sandbox, by the place where they go; and those that stay.

    A board that would lose a method stays as it is, unless the method is ``allowed`` to go: when a new version of the
    scorer makes every record outdated, the old board is true of what it names, and an empty one says nothing.
    """
    content: dict[Path, bytes] = {}
    lines = []
    for suite in suites_of(registry):
        there = board_path(registry, suite.id)
        if not there.exists() and not board_path(made, suite.id).exists():
            continue  # it has too many cells, which has been said
        board = read_board(board_path(made, suite.id))
        if board.about.id != suite.id:
            raise DataError(f"what was made is the board of {board.about.id!r}, not of suite {suite.id!r}")
        kept = {row.method for row in board.rows if row.rank or row.same_as}  # a copy is shown with its method
        lost = sorted(set(read_board(there).ranks) - kept - set(allowed)) if there.is_file() else []
        if lost:
            lines.append(f"board {suite.id} stays as it was: it would lose {join_names(lost)}; score them again first")
            continue
        content[there] = dump(plain(board))
    return content, lines
