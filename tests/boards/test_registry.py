"""The registry that ships with the project: its boards are what its records give."""

from __future__ import annotations

import json
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from neuco_core.boards.build import build_board
from neuco_core.boards.current import Current, current
from neuco_core.boards.model import plain
from neuco_core.boards.published import list_published
from neuco_core.boards.store import board_path, check_board, history_path, read_board, read_history, write_board
from neuco_core.errors import DataError
from neuco_core.jsonio import digest
from tests.boards.helpers import make_records
from tests.boards.test_build import SCORES, SUITE


@pytest.fixture(scope="module")
def now(root: Path) -> Current:
    return current(root / "registry")


def test_every_board_is_what_the_records_give(now: Current, root: Path) -> None:
    """A suite with records has a board; a board without records would be invented."""
    for suite in now.choose():
        own = [record for record in now.records if record.task in suite.tasks and record.protocol == suite.protocol]
        if own or board_path(root / "registry", suite.id).exists():
            check_board(root / "registry", now.board(suite))


def test_intervals_groups_and_chances_agree_on_every_board(root: Path) -> None:
    """No two methods of a group with disjoint intervals; the first is the likeliest, or the board says why not."""
    stored = [path for path in (root / "registry/leaderboards").glob("*.json") if not path.stem.endswith(".history")]
    boards = [*map(read_board, stored), *(own.board() for own in list_published(root / "registry"))]
    assert sum(bool(board.groups) for board in boards) >= 4
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


def test_a_board_of_an_older_schema_is_replaced_and_its_history_goes_on(tmp_path: Path) -> None:
    """The first boards of the registry were of schema 1; what their history says stays as it was written."""
    write_board(tmp_path, build_board(make_records(SCORES), SUITE))
    path, history = board_path(tmp_path, "made"), history_path(tmp_path, "made")
    old = history.read_bytes()
    path.write_text('{"schema": 1, "rows": [], "suite": {"id": "made"}}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"not a board of schema 2; expected 2, got 1\. Run `neuco leaderboard"):
        check_board(tmp_path, build_board(make_records(SCORES), SUITE))
    fewer = build_board(make_records({name: SCORES[name] for name in ("alpha", "gamma")}), SUITE)
    assert write_board(tmp_path, fewer) == ["the old file was not a board of schema 2"]
    assert history.read_bytes().startswith(old.removesuffix(b"\n]\n"))
    _, second = read_history(history)
    assert [change.kind for change in second.changes] == ["format", "gone-method", "moved", "moved"]
    assert str(second.changes[2]).startswith("alpha moves from rank 2 to 1: the format of the board's file changed")
    check_board(tmp_path, fewer)


def test_the_histories_that_ship_are_unbroken(root: Path) -> None:
    """Entries are digested as they were written, whatever schema the board beside them has."""
    for path in sorted((root / "registry/leaderboards").glob("*.history.json")):
        versions = read_history(path)
        assert json.loads(path.read_bytes()) == plain(versions)
        for before, after in pairwise(versions):
            assert after.previous == digest(plain(before))


def test_no_board_is_left_over_from_a_suite_that_is_gone(now: Current, root: Path) -> None:
    names = {path.name.partition(".")[0] for path in (root / "registry/leaderboards").glob("*.json")}
    assert names <= set(now.suites)
