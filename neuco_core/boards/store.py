"""Boards in the registry: ``leaderboards/<suite>.json`` and, beside it, ``leaderboards/<suite>.history.json``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuco_core.boards.history import Version, broken, changes, extend, format_changes
from neuco_core.boards.model import SCHEMA, Board, plain, read_part
from neuco_core.errors import DataError
from neuco_core.jsonio import digest, dump
from neuco_core.paths import layers
from neuco_core.records.store import unwritable
from neuco_core.text import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

HISTORY = ".history.json"
LOST_HISTORY = "Restore it from version control, or remove it to begin a new history"


def board_path(registry: Path, suite: str) -> Path:
    return registry / "leaderboards" / f"{suite}.json"


def history_path(registry: Path, suite: str) -> Path:
    return registry / "leaderboards" / f"{suite}{HISTORY}"


def read_board(path: Path) -> Board:
    """A board from its file."""
    hint = f"Run `neuco leaderboard build {path.stem}`"
    if not path.exists():
        raise DataError("there is no board yet", where=path, hint=hint)
    schema = read_part(path, dict[str, Any], "a board", hint).get("schema")
    if schema != SCHEMA:
        raise DataError(f"not a board of schema {SCHEMA}", where=path, expected=SCHEMA, got=schema, hint=hint)
    return read_part(path, Board, "a board", hint)


def stored_board(registry: Path, suite: str) -> Board:
    """The board as it was built last, here or in a registry that lies below."""
    places = [board_path(layer, suite) for layer in layers(registry)]
    return read_board(next((path for path in places if path.exists()), places[0]))


def read_history(path: Path) -> tuple[Version, ...]:
    return read_part(path, tuple[Version, ...], "a history of a board", LOST_HISTORY) if path.exists() else ()


def write_board(registry: Path, board: Board) -> Sequence[str]:
    """Write a board and extend its history; returns what changed, in words. The same board again writes nothing."""
    from neuco_core.files import write_atomic

    path, history_file = (place(registry, board.about.id) for place in (board_path, history_path))
    history = read_history(history_file)
    old, trouble = _old_board(path)
    said = changes(old, board) if old is not None else []
    if trouble and history:  # an old format, or a damaged file: what was ranked is still known from the history
        said = format_changes(history[-1].ranks, board, trouble)
    longer = extend(history, said, board)
    if old is not None and path.read_bytes() == dump(plain(board)) and longer == history:
        return []
    try:
        # The history first: if we are killed in between, the next build sees the old board and writes the same again.
        write_atomic(history_file, dump(plain(longer)))
        write_atomic(path, dump(plain(board)))
    except OSError as error:
        raise unwritable(path, error) from error
    words = [f"the old file was {trouble}"] * bool(trouble) + [str(change) for change in said if old]
    if old is not None and not history:
        words.append("its history was missing and begins anew")
    elif old is None and not trouble:
        begun = f"{counted(len(board.ranked), 'method')} ranked"
        words.append(f"the file was missing, {begun}" if history else f"first version, {begun}")
    return words or ["reformatted; no values changed"]


def _old_board(path: Path) -> tuple[Board | None, str]:
    """The board that is there; or why the file that is there is none. It does not stand in the way of a new one."""
    if not path.exists():
        return None, ""
    try:
        return read_board(path), ""
    except DataError as error:
        return None, error.what


def check_board(registry: Path, board: Board) -> None:
    """Refuse a committed board that is not, byte for byte, what the records give, or lacks its place in the history."""
    suite = board.about.id
    path, history_file = board_path(registry, suite), history_path(registry, suite)
    again = f"Run `neuco leaderboard build {suite}` and commit the result"
    old = read_board(path)
    if path.read_bytes() != dump(plain(board)):
        said = [str(change) for change in changes(old, board)] or ["its formatting differs"]
        what = "; ".join(said[:5]) + "; …" * (len(said) > 5)
        raise DataError(f"the board is not what the records give: {what}", where=path, hint=again)
    history = read_history(history_file)
    if wrong := broken(history, board):
        hint = again if not history or history[-1].board != digest(plain(board)) else LOST_HISTORY
        raise DataError(f"the history of the board is not in order: {wrong}", where=history_file, hint=hint)


def orphans(registry: Path, suites: Collection[str]) -> list[Path]:
    """Files among the boards that belong to no suite."""
    folder = registry / "leaderboards"
    expected = {path for suite in suites for path in (board_path(registry, suite), history_path(registry, suite))}
    return sorted(path for path in folder.iterdir() if path not in expected) if folder.is_dir() else []
