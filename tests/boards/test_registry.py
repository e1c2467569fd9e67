"""The registry that ships with the project: its boards are what its records give."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

from neuco_core.boards.from_registry import Current, current
from neuco_core.boards.model import Board
from neuco_core.boards.published import list_published
from neuco_core.boards.store import board_path, check_board, orphans, read_board


@pytest.fixture(scope="module")
def now(committed_registry: Path) -> Current:
    return current(committed_registry)


@pytest.mark.extensions
def test_every_board_is_what_the_records_give(now: Current, committed_registry: Path) -> None:
    """A suite with records has a board; a board without records would be invented."""
    for suite in now.choose():
        own = [record for record in now.records if record.task in suite.tasks and record.protocol == suite.protocol]
        if own or board_path(committed_registry, suite.id).exists():
            check_board(committed_registry, now.board(suite))


def stored_boards(registry: Path) -> list[Board]:
    return [read_board(path) for path in sorted((registry / "leaderboards").glob("*.json"))]


def published_boards(registry: Path) -> list[Board]:
    return [published.board() for published in list_published(registry)]


@pytest.mark.parametrize(
    ("read", "grouped"),
    [(stored_boards, 4), pytest.param(published_boards, 1, marks=(pytest.mark.slow, pytest.mark.extensions))],
)
def test_intervals_groups_and_chances_agree_on_every_board(
    committed_registry: Path, read: Callable[[Path], list[Board]], grouped: int
) -> None:
    """No two methods of a group with disjoint intervals; the first is the likeliest, or the board says why not."""
    boards = read(committed_registry)
    assert sum(bool(board.groups) for board in boards) >= grouped
    for board in boards:
        rows = {row.method: row for row in board.ranked}
        for group in board.groups or ():
            for a, b in combinations([rows[method].intervals["rank"] for method in group], 2):
                assert max(a.low, b.low) <= min(a.high, b.high), (board.about.id, group)  # type: ignore[type-var]
        chances = {method: row.values["best"] for method, row in rows.items() if row.values.get("best") is not None}
        if chances:
            first = max(chance for method, chance in chances.items() if rows[method].rank == 1)  # type: ignore[type-var]
            told = any("is first in more replicates" in note for note in board.notes)
            assert told == (first < max(chances.values())), board.about.id  # type: ignore[operator,type-var]


def test_no_board_is_left_over_from_a_suite_that_is_gone(now: Current, committed_registry: Path) -> None:
    assert orphans(committed_registry, now.suites) == []
