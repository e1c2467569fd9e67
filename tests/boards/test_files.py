"""Files of boards: damaged ones are made anew, histories cannot be edited, what belongs to nobody is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from neuco_core.boards.build import build_board
from neuco_core.boards.history import changes
from neuco_core.boards.model import Board, plain
from neuco_core.boards.published import list_published
from neuco_core.boards.store import (
    board_path,
    check_board,
    history_path,
    orphans,
    read_board,
    read_history,
    write_board,
)
from neuco_core.boards.views.plots import draw
from neuco_core.errors import DataError, UsageError
from neuco_core.jsonio import dump
from tests.boards.helpers import make_records, make_suite
from tests.boards.test_build import SCORES, SUITE
from tests.boards.test_cli import TASKS, registry, run

__all__ = ["registry"]  # the fixture


def boards() -> tuple[Board, Board]:
    """Two boards of one suite: of all three methods, and of two."""
    two = {name: SCORES[name] for name in ("alpha", "beta")}
    return build_board(make_records(SCORES), SUITE), build_board(make_records(two), SUITE)


@pytest.mark.parametrize("text", ["{", '{"schema": 2}', "[]", '{"schema": 1, "rows": [{}]}', '{"schema": 3}'])
def test_a_damaged_board_is_made_anew_and_said_to_be(tmp_path: Path, text: str) -> None:
    board, _ = boards()
    write_board(tmp_path, board)
    path = board_path(tmp_path, "made")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="neuco leaderboard build made"):
        read_board(path)
    (said,) = write_board(tmp_path, board)
    assert said.startswith("the old file was not a board")
    check_board(tmp_path, board)


def test_rows_without_their_fields_are_no_board(tmp_path: Path) -> None:
    board, _ = boards()
    path = tmp_path / "x.json"
    path.write_bytes(dump({**plain(board), "rows": [{}]}))
    with pytest.raises(DataError, match="not a board"):
        read_board(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rule", {"weights": "all"}),
        ("suite", {}),
        ("rows", [{"method": [], "rank": 1}]),
        ("rows", [{"method": "alpha", "rank": 0}]),
        ("rows", [{"method": "alpha", "rank": 1, "cells": 5}]),
        ("rows", [{"method": "alpha", "rank": 1, "values": {"unheard_of": 1}}]),
        ("rows", [{"method": "alpha", "rank": 1}, {"method": "alpha", "rank": 2}]),
        ("tasks", [{"id": [], "version": 1}]),
    ],
)
def test_a_board_that_is_damaged_inside_is_made_anew(tmp_path: Path, field: str, value: Any) -> None:
    board, other = boards()
    write_board(tmp_path, board)
    path = board_path(tmp_path, "made")
    path.write_bytes(dump({**plain(board), field: value}))
    with pytest.raises(DataError, match=r"not a board: .*(at `|'unheard_of'|twice|unknown column or method)"):
        check_board(tmp_path, other)
    assert write_board(tmp_path, other)[0].startswith("the old file was not a board")
    check_board(tmp_path, other)


CHANGES = ['["x"]', '[{"kind": "zap", "subject": "x"}]', '[{"kind": "moved", "subject": 5}]', '[{"kind": "moved"}]']


@pytest.mark.parametrize("said", CHANGES)
def test_a_change_that_is_none(tmp_path: Path, said: str) -> None:
    path = tmp_path / "x.history.json"
    path.write_text(f'[{{"version": 1, "board": "", "ranks": {{}}, "previous": "", "changes": {said}}}]')
    with pytest.raises(DataError, match="not a history"):
        read_history(path)


@pytest.mark.parametrize("text", ["{", "{}", '[{"evil": 1}]', '[{"version": 1, "board": "", "ranks": {}}]'])
def test_a_damaged_history_is_not_written_over(tmp_path: Path, text: str) -> None:
    board, _ = boards()
    write_board(tmp_path, board)
    path = history_path(tmp_path, "made")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="Restore it from version control"):
        write_board(tmp_path, board)
    assert path.read_text(encoding="utf-8") == text


def test_an_edit_of_the_past_is_seen(tmp_path: Path) -> None:
    first, second = boards()
    write_board(tmp_path, first)
    write_board(tmp_path, second)
    check_board(tmp_path, second)
    path = history_path(tmp_path, "made")
    true: list[dict[str, Any]] = plain(read_history(path))

    def refused(edit: list[dict[str, Any]], words: str) -> None:
        path.write_bytes(dump(edit))
        with pytest.raises(DataError, match=words):
            check_board(tmp_path, second)

    refused([{**true[0], "ranks": {"gamma": 1}}, true[1]], "before version 2")
    refused([true[0], {**true[1], "ranks": {"gamma": 1}}], "ranks of its last version")
    refused([true[1]], "version 1 is called 2")
    refused([true[0]], "does not end with this board")
    path.write_bytes(dump(true))
    check_board(tmp_path, second)


def test_what_is_missing_is_not_called_the_first_version(tmp_path: Path) -> None:
    board, _ = boards()
    assert write_board(tmp_path, board) == ["first version, 3 methods ranked"]
    board_path(tmp_path, "made").unlink()
    assert write_board(tmp_path, board) == ["the file was missing, 3 methods ranked"]
    history_path(tmp_path, "made").unlink()
    assert write_board(tmp_path, board) == ["its history was missing and begins anew"]
    check_board(tmp_path, board)


def test_a_change_of_details_is_named(tmp_path: Path) -> None:
    board, _ = boards()
    write_board(tmp_path, board)
    assert board.suite is not None
    other = replace(board, suite=replace(board.suite, title="Another"))
    assert write_board(tmp_path, other) == ["no rank changed, only other parts of the file (the first: suite.title)"]
    (change,) = plain(read_history(history_path(tmp_path, "made"))[1].changes)
    assert change == {"kind": "details", "subject": "suite.title"}


def test_other_tasks_are_the_cause_of_what_moves() -> None:
    scores = {"alpha": {"first": 0.9, "second": 0.1}, "beta": {"first": 0.5, "second": 0.8}}
    records = make_records(scores)
    old, new = (build_board(records, make_suite(*tasks)) for tasks in (("first",), ("second",)))
    moved = [str(change) for change in changes(old, new) if change.kind == "moved"]
    assert moved[0] == "beta moves from rank 2 to 1: task second is new; task first is no longer used"


def test_a_registry_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "leaderboards").write_text("in the way", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be written"):
        write_board(tmp_path, boards()[0])


def test_boards_of_no_suite_are_found(registry: Path) -> None:
    run("build")
    assert orphans(registry, ["trial"]) == []
    (registry / "leaderboards/evil.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="1 board is out of date"):
        run("check")
    run("check", "trial")


def test_no_suites_is_not_all_is_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path / "typo"))
    for command in ("check", "build"):
        with pytest.raises(DataError, match="no suite here"):
            run(command)


def test_a_damaged_board_does_not_hide_the_others(registry: Path) -> None:
    run("build")
    board_path(registry, "trial").write_text("{", encoding="utf-8")
    assert "unreadable" in run("list").output


def test_the_history_is_told(registry: Path) -> None:
    with pytest.raises(DataError, match="neuco leaderboard build trial"):
        run("history", "trial")
    run("build")
    suite = registry / "suites/trial.toml"
    text = suite.read_text(encoding="utf-8").replace(f"{TASKS[1]} = 1\n", "")
    suite.write_text(text, encoding="utf-8")
    run("build")
    lines = run("history", "trial").output.splitlines()
    assert lines[0] == "version 1, 3 methods ranked"
    assert f"  task {TASKS[1]} is no longer used" in lines
    assert len(json.loads(run("history", "trial", "--json").output)) == 2


def test_rules_that_do_nothing_are_refused(registry: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no spread to measure"):
        run("show", "trial", "--weights", "equal", "--spread", "robust")
    assert "ghost task of spread 5" in run("show", "trial", "--weights", "equal", "--ghost", "5").output
    monkeypatch.setenv("NEUCO_REGISTRY", str(root / "registry"))
    with pytest.raises(UsageError, match="board kind 'standings' has no option 'ghost'"):
        run("show", "earthvision-2025-challenge", "--ghost", "3")


def test_figures_of_standings(root: Path, tmp_path: Path) -> None:
    (board,) = (item.board() for item in list_published(root / "registry") if item.kind == "standings")
    draw(tmp_path / "x.svg", board, (), "differences")
    assert (tmp_path / "x.svg").stat().st_size > 1000
    for kind in ("heat", "bump"):
        with pytest.raises(UsageError, match="nothing to draw"):
            draw(tmp_path / "y.svg", board, (), kind)
    assert not (tmp_path / "y.svg").exists()


def test_a_figure_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be written"):
        draw(tmp_path / "file/x.svg", boards()[0], (), "heat")
