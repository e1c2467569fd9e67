"""Boards in the registry: ``leaderboards/<suite>.json`` and, beside it, ``leaderboards/<suite>.history.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuco_core.errors import DataError
from neuco_core.leaderboard.build import SCHEMA, Board
from neuco_core.leaderboard.canonical import digest, dump
from neuco_core.leaderboard.history import changes, extend

if TYPE_CHECKING:
    from collections.abc import Sequence

LARGEST_FILE = 64_000_000


def board_path(registry: Path, suite: str) -> Path:
    return registry / "leaderboards" / f"{suite}.json"


def history_path(registry: Path, suite: str) -> Path:
    return registry / "leaderboards" / f"{suite}.history.json"


def read_board(path: Path) -> Board:
    """A board from its file, checked so far that it can be compared and shown."""
    board = _read(path)
    needed = {"schema", "suite", "ranking", "tasks", "rows", "incomplete"}
    if not isinstance(board, dict) or board.get("schema") != SCHEMA or needed - board.keys():
        raise DataError("not a board of this schema", where=path, expected=f"schema {SCHEMA}", hint="Build it anew")
    return board


def read_history(path: Path) -> list[dict[str, Any]]:
    history = _read(path) if path.exists() else []
    if not isinstance(history, list) or not all(
        isinstance(e, dict) and {"board", "ranks"} <= e.keys() for e in history
    ):
        raise DataError("not a history of a board", where=path)
    return history


def _read(path: Path) -> Any:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise DataError("too large for a board", where=path, expected=f"at most {LARGEST_FILE} bytes")
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        hint = f"Run `neuco leaderboard build {path.stem}`"
        raise DataError("there is no board yet", where=path, hint=hint) from error
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"not a board: {error}", where=path) from error


def write_board(registry: Path, board: Board) -> Sequence[str]:
    """Write a board and extend its history; returns what changed, in words. The same board again writes nothing."""
    from neuco_core.data.cache import write_atomic

    suite = board["suite"]["id"]
    path, history_file = board_path(registry, suite), history_path(registry, suite)
    old = read_board(path) if path.exists() else None
    history = read_history(history_file)
    longer = extend(history, old, board)
    if path.exists() and path.read_bytes() == dump(board) and longer == history:
        return []
    # The history first: if we are killed in between, the next build sees the old board and writes the same again.
    write_atomic(history_file, dump(longer))
    write_atomic(path, dump(board))
    if old is None:
        return [f"first version, {len(board['rows'])} methods ranked"]
    return [str(change) for change in changes(old, board)] or ["details changed, no rank did"]


def check_board(registry: Path, board: Board) -> None:
    """Refuse a committed board that is not, byte for byte, what the records give, or lacks its place in the history."""
    suite = board["suite"]["id"]
    path = board_path(registry, suite)
    again = f"Run `neuco leaderboard build {suite}` and commit the result"
    old = read_board(path)
    if path.read_bytes() != dump(board):
        said = [str(change) for change in changes(old, board)]
        what = "; ".join(said[:5]) + ("; …" if len(said) > 5 else "") if said else _first_difference(old, board)
        raise DataError(f"the board is not what the records give: {what}", where=path, hint=again)
    history = read_history(history_path(registry, suite))
    if not history or history[-1]["board"] != digest(board):
        raise DataError("the history does not end with this board", where=history_path(registry, suite), hint=again)


def _first_difference(old: Any, new: Any, place: str = "") -> str:
    """Where two boards differ, for a message."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                return _first_difference(old.get(key), new.get(key), f"{place}.{key}" if place else str(key))
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (a, b) in enumerate(zip(old, new, strict=True)):
            if a != b:
                return _first_difference(a, b, f"{place}[{index}]")
    return f"{place} is {str(old)[:60]}, should be {str(new)[:60]}" if place else "its layout differs"
