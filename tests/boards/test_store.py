"""Files of boards: the same bytes for the same records, what changed, damaged ones; and those of the registry."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from neuco_core.boards.build import build_board
from neuco_core.boards.diff import Change, changes
from neuco_core.boards.model import Board, plain
from neuco_core.boards.published import list_published, read_published
from neuco_core.boards.store import Current, board_path, check_board, current, orphans, read_board, write_board
from neuco_core.errors import DataError, UsageError
from neuco_core.files import dump
from neuco_core.records.model import Record
from neuco_core.records.store import read_all, write_records
from tests.boards.helpers import SCORES, SUITE, make_records, make_suite

PAPER, CHALLENGE = "neuco-paper-table-4", "earthvision-2025-challenge"


@pytest.fixture(scope="module")
def board() -> Board:
    return build_board(make_records(SCORES), SUITE)


@pytest.fixture(scope="module")
def smaller() -> Board:
    return build_board(make_records({name: SCORES[name] for name in ("alpha", "beta")}), SUITE)


def test_writing_a_board_says_what_changed(tmp_path: Path, board: Board, smaller: Board) -> None:
    write_records(tmp_path, make_records(SCORES))
    assert write_board(tmp_path, board) == ["first version, 3 methods ranked"]
    before = board_path(tmp_path, "made").stat().st_mtime_ns
    assert write_board(tmp_path, build_board(read_all(tmp_path), SUITE)) == []
    assert board_path(tmp_path, "made").stat().st_mtime_ns == before
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


INSIDE = r"not a board: .*(at `|'unheard_of'|twice|unknown column or method|method)"


@pytest.mark.parametrize(
    "damage",
    [
        *("", "{", "[]", "{}", "nonsense", "[" * 100_000, '{"schema": 2}', '{"schema": 1, "rows": [{}]}'),
        {"rule": {"weights": "all"}},
        {"suite": {}},
        {"rows": [{}]},
        {"rows": [{"method": [], "rank": 1}]},
        {"rows": [{"method": "alpha", "rank": 0}]},
        {"rows": [{"method": "alpha", "rank": 1, "cells": 5}]},
        {"rows": [{"method": "alpha", "rank": 1, "values": {"unheard_of": 1}}]},
        {"rows": [{"method": "alpha", "rank": 1}, {"method": "alpha", "rank": 2}]},
        {"tasks": [{"id": [], "version": 1}]},
    ],
)
def test_a_file_that_is_no_board_is_made_anew_and_said_to_be(
    tmp_path: Path, board: Board, smaller: Board, damage: str | dict[str, Any]
) -> None:
    """The whole file is nonsense, or a field of a board is another."""
    path = board_path(tmp_path, "made")
    path.parent.mkdir()
    path.write_bytes(damage.encode() if isinstance(damage, str) else dump({**plain(board), **damage}))
    with pytest.raises(DataError, match="neuco leaderboard build made" if isinstance(damage, str) else INSIDE):
        check_board(tmp_path, smaller)
    (message,) = write_board(tmp_path, smaller)
    assert message.startswith("the old file was not a board")
    check_board(tmp_path, smaller)


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
    assert orphans(committed_registry, now.suites) == []  # of suites that are gone


@pytest.mark.extensions
def test_a_record_of_a_method_that_has_nothing_for_a_dataset_stays_true(now: Current) -> None:
    """It is of no embeddings, so none have changed."""
    records = [record for record in now.records if record.method.startswith("challenge_")]
    assert {record.status for record in records} == {"not-applicable"}
    assert not [record.key for record in records if record.key in now.stale]


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


def lines_after(edit: Callable[[list[Record]], list[Record]]) -> list[str]:
    old, new = build_board(make_records(SCORES), SUITE), build_board(edit(make_records(SCORES)), SUITE)
    return [str(change) for change in changes(old, new)]


def test_changes_have_causes() -> None:
    new = make_records({"delta": {"first": 0.99, "second": 0.99}})
    lines = lines_after(lambda records: [*records, *new])
    assert any(line.startswith("delta is new, at rank 1: P(first)") for line in lines)
    assert any(line.startswith("gamma moves from rank 3 to 4: caused by others: delta is new") for line in lines)
    lines = lines_after(lambda records: [r for r in records if r.method != "alpha"])
    assert any("alpha" in line and "no longer ranked" in line for line in lines)
    better = make_records({"gamma": {"first": 0.99, "second": 0.99}})
    lines = lines_after(lambda records: [*(r for r in records if r.method != "gamma"), *better])
    assert any(line.startswith("gamma has new scores: first Mean score 0.199 → 0.989") for line in lines)
    assert any(line.startswith("gamma moves from rank 3 to 1: its own scores changed") for line in lines)
    assert lines_after(lambda records: records) == []


def test_tasks_and_rules_change() -> None:
    records = make_records(SCORES)
    old = build_board(records, SUITE)
    fewer = build_board(records, make_suite("first"))
    assert "task second is no longer used" in map(str, changes(old, fewer))
    assert "task second is new" in map(str, changes(fewer, old))
    other = build_board(records, SUITE, {"weights": "equal"})
    assert changes(old, other)[0].kind == "rule"


def test_other_tasks_are_the_cause_of_what_moves() -> None:
    records = make_records({"alpha": {"first": 0.9, "second": 0.1}, "beta": {"first": 0.5, "second": 0.8}})
    old, new = (build_board(records, make_suite(*tasks)) for tasks in (("first",), ("second",)))
    moved = [str(change) for change in changes(old, new) if change.kind == "moved"]
    assert moved[0] == "beta moves from rank 2 to 1: task second is new; task first is no longer used"


def test_weights_that_reorder_strangers_are_named_as_the_cause() -> None:
    """A newcomer that is bad on one task gives that task weight, and two others swap."""
    scores = {"alpha": {"first": 0.9, "second": 0.5}, "beta": {"first": 0.3, "second": 0.6}}
    old = build_board(make_records(scores), SUITE)
    bad = make_records({"zeta": {"first": 0.2, "second": -60.0}})
    new = build_board([*make_records(scores), *bad], SUITE)
    assert old.ranks == {"alpha": 1, "beta": 2}
    assert new.ranks == {"alpha": 2, "beta": 1, "zeta": 3}
    (line,) = [str(change) for change in changes(old, new) if (change.kind, change.subject) == ("moved", "alpha")]
    assert "caused by others: the weights changed with the pool, and it swapped with beta" in line


def test_a_published_board_is_marked_and_has_its_source(committed_registry: Path) -> None:
    for path in sorted((committed_registry / "published").glob("*.json")):
        board = read_published(path).board()
        assert board.published is not None
        assert board.published.source
        assert "2510.17914" in board.published.citation
        assert board.suite is None
        assert board.uncertainty is None


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        (PAPER, '"kind": "neuco"', '"kind": "No Id"', "kind"),
        (PAPER, '"schema": 2', '"schema": 1', "schema"),
        (PAPER, "-2.293", "1e999", "malformed|range"),
        (PAPER, "-2.293, ", "", "7 scores for 8 tasks"),
        (PAPER, '"method": "averaging"', '"method": "../averaging"', "method"),
        (PAPER, '"method": "dofa-pre"', '"method": "dofa-post"', "there twice"),
        (PAPER, "{", "", "Expected `object`"),
        (CHALLENGE, '"rank": 4', '"rank": "4<b>"', r"got `str`, at `\.rows\[3\]\.values"),
        (CHALLENGE, '"weighted_rank": 2.31', '"weighted_rank": NaN', "JSON is malformed"),
        (CHALLENGE, '"title": "KTH and Friends"', '"title": "\\ud800"', "surrogate|malformed"),
        (CHALLENGE, '"baseline": false', '"baseline": 0', r"Expected `bool`, got `int`, at `\.rows\[0\]\.baseline"),
        (CHALLENGE, '"rows": [', '"rows": 5, "other": [', "at `.rows|unknown field"),
        (CHALLENGE, '"id": "earth', '"id": "mars', "bad id; expected the name of the file"),
    ],
)
def test_a_published_board_that_is_not_right_is_refused(
    tmp_path: Path, committed_registry: Path, name: str, old: str, new: str, words: str
) -> None:
    text = (committed_registry / f"published/{name}.json").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / f"{name}.json"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataError, match=words):
        read_published(path)


def test_a_change_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="no kind of change"):
        Change("zap", "x")
