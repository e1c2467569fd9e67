"""Rows that are copies of others are named: with one season, variants by season are one method."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from msgspec.structs import replace

from neuco_core.boards.store import read_board
from neuco_core.boards.views.report import copies, notes


def test_the_five_copies_on_olindas_boards(root: Path) -> None:
    for suite in ("olinda", "olinda-blocks"):
        board = read_board(root / "registry" / "leaderboards" / f"{suite}.json")
        (words,) = copies(board)
        assert words.startswith(f"5 of {len(board.ranked)} rows are copies")
        assert "mosaiks = mosaiks_pre" in words
        assert "autoencoder = autoencoder_post = autoencoder_pre" in words
        assert words in notes(board)


def test_nobody_else_is_called_a_copy(root: Path) -> None:
    board = read_board(root / "registry" / "leaderboards" / "mini.json")
    assert list(copies(board)) == []
    first = board.ranked[0]
    twice = SimpleNamespace(ranked=[first, replace(first, method="other")])
    assert list(copies(twice)) == [  # type: ignore[arg-type]
        f"1 of 2 rows are copies, with the scores of another row in every task: {first.method} = other."
    ]
