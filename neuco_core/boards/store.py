"""Boards in the registry: ``leaderboards/<suite>.json``. What they were before is git's to tell."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from neuco_core.boards.diff import changes
from neuco_core.boards.model import SCHEMA, Board, plain, read_part
from neuco_core.env import layers
from neuco_core.errors import DataError
from neuco_core.files import dump, write_atomic
from neuco_core.records.store import unwritable
from neuco_core.text import counted


def board_path(registry: Path, suite: str) -> Path:
    return registry / "leaderboards" / f"{suite}.json"


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
    paths = [board_path(layer, suite) for layer in layers(registry)]
    return read_board(next((path for path in paths if path.exists()), paths[0]))


def write_board(registry: Path, board: Board) -> list[str]:
    """Write a board; returns what changed, in words. The same board again writes nothing."""
    path, content = board_path(registry, board.about.id), dump(plain(board))
    if not path.exists():
        messages = [f"first version, {counted(len(board.ranked), 'method')} ranked"]
    elif path.read_bytes() == content:
        return []
    else:
        try:
            messages = [str(change) for change in changes(read_board(path), board)]
        except DataError as error:  # an old format, or a damaged file: it does not stand in the way of a new one
            messages = [f"the old file was {error.what}"]
    try:
        write_atomic(path, content)
    except OSError as error:
        raise unwritable(path, error) from error
    return messages or ["reformatted; no values changed"]


def check_board(registry: Path, board: Board) -> None:
    """Refuse a committed board that is not, byte for byte, what the records give."""
    suite = board.about.id
    path = board_path(registry, suite)
    committed = read_board(path)
    if path.read_bytes() != dump(plain(board)):
        messages = [str(change) for change in changes(committed, board)] or ["its formatting differs"]
        what = "; ".join([*messages[:5], "…"] if len(messages) > 5 else messages)
        hint = f"Run `neuco leaderboard build {suite}` and commit the result"
        raise DataError(f"the board is not what the records give: {what}", where=path, hint=hint)


def orphans(registry: Path, suites: Collection[str]) -> list[Path]:
    """Files among the boards that belong to no suite."""
    expected = {board_path(registry, suite) for suite in suites}
    return sorted(path for path in (registry / "leaderboards").glob("*") if path not in expected)
