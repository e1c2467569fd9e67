"""Files of boards: the same bytes for the same records, damaged ones are made anew, strangers' are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from neuco_core.boards.build import build_board
from neuco_core.boards.model import Board, plain
from neuco_core.boards.store import board_path, check_board, orphans, read_board, write_board
from neuco_core.errors import DataError, UsageError
from neuco_core.files import dump
from neuco_core.records.store import read_all, write_records
from tests.boards.helpers import SCORES, SUITE, make_records


@pytest.fixture(scope="module")
def board() -> Board:
    return build_board(make_records(SCORES), SUITE)


@pytest.fixture(scope="module")
def smaller() -> Board:
    return build_board(make_records({name: SCORES[name] for name in ("alpha", "beta")}), SUITE)


def test_built_twice_is_byte_identical_and_written_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        for record in make_records(SCORES):
            write_records(tmp_path / name, [record])
        write_board(tmp_path / name, build_board(read_all(tmp_path / name), SUITE))
    one, two = (board_path(tmp_path / name, "made") for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert [one] == list(one.parent.iterdir())
    before = one.stat().st_mtime_ns
    assert write_board(tmp_path / "one", build_board(read_all(tmp_path / "one"), SUITE)) == []
    assert one.stat().st_mtime_ns == before


def test_writing_a_board_says_what_changed(tmp_path: Path, board: Board, smaller: Board) -> None:
    assert write_board(tmp_path, board) == ["first version, 3 methods ranked"]
    assert write_board(tmp_path, smaller)[0].startswith("gamma, at rank 3 before, is no longer ranked")
    assert smaller.suite is not None
    titled = replace(smaller, suite=replace(smaller.suite, title="Another"))
    assert write_board(tmp_path, titled) == ["no rank changed, only other parts of the file (the first: suite.title)"]
    path = board_path(tmp_path, "made")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\n\n", 1))
    assert write_board(tmp_path, titled) == ["reformatted; no values changed"]


def test_files_of_no_suite_are_orphans_and_a_registry_may_not_be_writable(tmp_path: Path, board: Board) -> None:
    assert orphans(tmp_path, ["made"]) == []
    write_board(tmp_path, board)
    assert orphans(tmp_path, ["made"]) == []
    assert orphans(tmp_path, []) == [board_path(tmp_path, "made")]
    (tmp_path / "other").mkdir()
    (tmp_path / "other/leaderboards").write_text("in the way", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be written"):
        write_board(tmp_path / "other", board)


def test_check_accepts_what_build_wrote_and_nothing_else(tmp_path: Path, board: Board) -> None:
    with pytest.raises(DataError, match="leaderboard build"):
        check_board(tmp_path, board)
    write_board(tmp_path, board)
    check_board(tmp_path, board)
    more = build_board(make_records(SCORES | {"delta": {"first": 0.99, "second": 0.99}}), SUITE)
    with pytest.raises(DataError, match="delta is new, at rank 1"):
        check_board(tmp_path, more)
    path = board_path(tmp_path, "made")
    edited = path.read_text(encoding="utf-8").replace('"rank": 3', '"rank": 2', 1)
    path.write_text(edited, encoding="utf-8")
    with pytest.raises(DataError, match="not what the records give"):
        check_board(tmp_path, board)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "nonsense", "[" * 100_000, '{"schema": 2}', '{"schema": 1, "rows": [{}]}']
)
def test_a_file_that_is_no_board_is_made_anew_and_said_to_be(tmp_path: Path, board: Board, text: str) -> None:
    path = board_path(tmp_path, "made")
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="neuco leaderboard build made"):
        read_board(path)
    (message,) = write_board(tmp_path, board)
    assert message.startswith("the old file was not a board")
    check_board(tmp_path, board)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rule", {"weights": "all"}),
        ("suite", {}),
        ("rows", [{}]),
        ("rows", [{"method": [], "rank": 1}]),
        ("rows", [{"method": "alpha", "rank": 0}]),
        ("rows", [{"method": "alpha", "rank": 1, "cells": 5}]),
        ("rows", [{"method": "alpha", "rank": 1, "values": {"unheard_of": 1}}]),
        ("rows", [{"method": "alpha", "rank": 1}, {"method": "alpha", "rank": 2}]),
        ("tasks", [{"id": [], "version": 1}]),
    ],
)
def test_a_board_that_is_damaged_inside_is_made_anew(
    tmp_path: Path, board: Board, smaller: Board, field: str, value: Any
) -> None:
    write_board(tmp_path, board)
    board_path(tmp_path, "made").write_bytes(dump({**plain(board), field: value}))
    with pytest.raises(DataError, match=r"not a board: .*(at `|'unheard_of'|twice|unknown column or method|method)"):
        check_board(tmp_path, smaller)
    assert write_board(tmp_path, smaller)[0].startswith("the old file was not a board")
    check_board(tmp_path, smaller)
