"""The registry that ships with the project: its boards are what its records give."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuco_core.boards.current import Current, current
from neuco_core.boards.store import board_path, check_board


@pytest.fixture(scope="module")
def now(root: Path) -> Current:
    return current(root / "registry")


def test_every_board_is_what_the_records_give(now: Current, root: Path) -> None:
    """A suite with records has a board; a board without records would be invented."""
    for suite in now.choose():
        own = [record for record in now.records if record.task in suite.tasks and record.protocol == suite.protocol]
        if own or board_path(root / "registry", suite.id).exists():
            check_board(root / "registry", now.board(suite))


def test_no_board_is_left_over_from_a_suite_that_is_gone(now: Current, root: Path) -> None:
    names = {path.name.partition(".")[0] for path in (root / "registry/leaderboards").glob("*.json")}
    assert names <= set(now.suites)
