"""Boards in the registry: ``leaderboards/<suite>.json`` and, beside it, ``leaderboards/<suite>.history.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuco_core.boards.build import SCHEMA, Board
from neuco_core.boards.history import broken, changes, extend, is_change
from neuco_core.errors import DataError
from neuco_core.jsonio import digest, dump
from neuco_core.records.store import unwritable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

LARGEST_FILE = 64_000_000
HISTORY = ".history.json"
# What comparing with a board may raise whose inside is not that of a board, however right its outside.
DAMAGED = (AttributeError, KeyError, TypeError, ValueError)
LOST_HISTORY = "Restore it from version control, or remove it: a new history begins then"


def board_path(registry: Path, suite: str) -> Path:
    return registry / "leaderboards" / f"{suite}.json"


def history_path(registry: Path, suite: str) -> Path:
    return registry / "leaderboards" / f"{suite}{HISTORY}"


def read_board(path: Path) -> Board:
    """A board from its file, checked so far that it can be compared and shown."""
    board = _read(path)
    if not isinstance(board, dict) or board.get("schema") != SCHEMA or not _is_whole(board):
        hint = f"Run `neuco leaderboard build {path.stem}`"
        raise DataError("not a board of this schema", where=path, expected=f"schema {SCHEMA}", hint=hint)
    return board


def _is_whole(board: Mapping[str, Any]) -> bool:
    """Whether there is all that a comparison with another board looks at."""
    lists = {"tasks": {"id", "version"}, "rows": {"method", "rank", "scores"}, "incomplete": {"method", "lacks"}}
    known = all(isinstance(board.get(name), dict) for name in ("suite", "ranking"))
    return known and all(
        isinstance(board.get(name), list) and all(isinstance(e, dict) and needed <= e.keys() for e in board[name])
        for name, needed in lists.items()
    )


def read_history(path: Path) -> list[dict[str, Any]]:
    history = _read(path) if path.exists() else []
    needed = {"version": int, "board": str, "ranks": dict, "changes": list, "previous": str}
    if not isinstance(history, list) or not all(
        isinstance(entry, dict)
        and all(isinstance(entry.get(name), kind) for name, kind in needed.items())
        and all(map(is_change, entry["changes"]))
        for entry in history
    ):
        raise DataError("not a history of a board", where=path, hint=LOST_HISTORY)
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
        # A board can be made anew from the records, its history cannot.
        history = path.name.endswith(HISTORY)
        hint = LOST_HISTORY if history else f"Run `neuco leaderboard build {path.stem}`"
        raise DataError(f"not a {'history of a ' * history}board: {error}", where=path, hint=hint) from error


def write_board(registry: Path, board: Board) -> Sequence[str]:
    """Write a board and extend its history; returns what changed, in words. The same board again writes nothing."""
    from neuco_core.files import write_atomic

    suite = board["suite"]["id"]
    path, history_file = board_path(registry, suite), history_path(registry, suite)
    old, trouble = _old_board(path)
    history = read_history(history_file)
    try:
        said = [str(change) for change in changes(old, board)] if old else []
    except DAMAGED as error:
        old, said, trouble = None, [], f"what was there was damaged ({type(error).__name__}: {error})"
    longer = extend(history, old, board)
    if old is not None and path.read_bytes() == dump(board) and longer == history:
        return []
    try:
        # The history first: if we are killed in between, the next build sees the old board and writes the same again.
        write_atomic(history_file, dump(longer))
        write_atomic(path, dump(board))
    except OSError as error:
        raise unwritable(path, error) from error
    said = [trouble] * bool(trouble) + said
    if old is not None and not history:
        said.append("its history was missing and begins anew")
    elif old is None and not trouble:
        begun = f"{len(board['rows'])} methods ranked"
        said.append(f"the file was missing, {begun}" if history else f"first version, {begun}")
    return said or ["its layout was not ours, no number changed"]


def _old_board(path: Path) -> tuple[Board | None, str]:
    """The board that is there; or why the file that is there is none. It does not stand in the way of a new one."""
    if not path.exists():
        return None, ""
    try:
        return read_board(path), ""
    except DataError as error:
        return None, f"what was there was {error.what}"


def check_board(registry: Path, board: Board) -> None:
    """Refuse a committed board that is not, byte for byte, what the records give, or lacks its place in the history."""
    suite = board["suite"]["id"]
    path = board_path(registry, suite)
    again = f"Run `neuco leaderboard build {suite}` and commit the result"
    old = read_board(path)
    if path.read_bytes() != dump(board):
        try:
            said = [str(change) for change in changes(old, board)] or ["its layout differs"]
        except DAMAGED:
            said = ["it is damaged"]
        what = "; ".join(said[:5]) + "; …" * (len(said) > 5)
        raise DataError(f"the board is not what the records give: {what}", where=path, hint=again)
    history = read_history(history_path(registry, suite))
    if wrong := broken(history, board):
        hint = again if not history or history[-1]["board"] != digest(board) else LOST_HISTORY
        raise DataError(
            f"the history of the board is not in order: {wrong}", where=history_path(registry, suite), hint=hint
        )


def orphans(registry: Path, suites: Collection[str]) -> list[Path]:
    """What lies among the boards and belongs to no suite."""
    folder = registry / "leaderboards"
    expected = {path for suite in suites for path in (board_path(registry, suite), history_path(registry, suite))}
    return sorted(path for path in folder.iterdir() if path not in expected) if folder.is_dir() else []
