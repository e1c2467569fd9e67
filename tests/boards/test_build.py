"""Boards from records: who is ranked, and who is not and why."""

from __future__ import annotations

import math

import pytest

from neuco_core.boards.build import TooManyCellsError, build_board
from neuco_core.boards.model import Board, number, plain
from neuco_core.errors import UsageError
from neuco_core.files import dump
from tests.boards.helpers import SCORES, SUITE, make_record, make_records


def dumped(board: Board) -> bytes:
    return dump(plain(board))


def test_rows_are_in_order_and_hold_everything() -> None:
    board = build_board(make_records(SCORES), SUITE)
    assert [row.method for row in board.rows][-1] == "gamma"
    row = board.rows[0]
    assert set(row.values) == {"best", "weighted_rank", "mean_q", "mean_score", "borda", "dim"}
    assert set(row.cells) == {"first", "second"}
    cell = row.cells["first"]
    assert cell.intervals["score"].low < cell.values["score"]  # type: ignore[operator]
    assert sum(task.values["weight"] or 0 for task in board.tasks) == pytest.approx(1)
    assert board.kind == "neuco"
    assert board.options["coverage"] == "complete"
    assert "every task" in board.rule
    assert sum(row.values["best"] or 0 for row in board.rows) == pytest.approx(1, abs=1e-3)


def test_the_order_of_records_does_not_matter() -> None:
    records = make_records(SCORES)
    assert dumped(build_board(records, SUITE)) == dumped(build_board(records[::-1], SUITE))


def test_renaming_methods_in_the_same_order_changes_names_only() -> None:
    board = build_board(make_records(SCORES), SUITE)
    renamed = build_board(make_records({f"x-{name}": row for name, row in SCORES.items()}), SUITE)
    first, second = plain(board.rows), plain(renamed.rows)
    assert [row.pop("method") for row in second] == ["x-" + row.pop("method") for row in first]
    for row in (*first, *second):
        for cell in row["cells"].values():
            cell.pop("fingerprint")
    assert first == second


def test_a_method_that_lacks_a_task_is_shown_with_the_reason() -> None:
    failed = make_record("delta", "second", status="failed", failure="memory", reason="needed 9 GB")
    records = [*make_records(SCORES), *make_records({"delta": {"first": 0.5}}), failed]
    board = build_board(records, SUITE)
    assert "delta" not in board.ranks
    (row,) = board.unranked
    assert [(task, cell.status, cell.reason) for task, cell in row.lacks.items()] == [
        ("second", "failed", "memory: needed 9 GB")
    ]
    assert row.cells["first"].values
    assert row in board.shown


def test_the_common_subset_ranks_everybody_on_fewer_tasks() -> None:
    records = [*make_records(SCORES), *make_records({"delta": {"first": 0.95}})]
    board = build_board(records, SUITE, {"coverage": "common"})
    assert board.ranks["delta"] == 1
    assert [task.id for task in board.tasks] == ["first"]
    assert "Not counted: task second, which delta lack" in board.notes
    assert board.options["coverage"] == "common"


def stale_reasons(board: Board) -> set[str]:
    return {cell.reason for row in board.rows for cell in row.lacks.values() if cell.status == "stale"}


def test_stale_records_never_rank() -> None:
    records = make_records(SCORES)
    board = build_board(records, SUITE, stale=lambda r: "the labels changed" if r.method == "alpha" else None)
    assert "alpha" not in board.ranks
    assert stale_reasons(board) == {"the labels changed"}


@pytest.mark.parametrize(
    ("field", "words"), [("task_version", "version 2 of the task"), ("method_version", "there is")]
)
def test_another_version_is_stale(field: str, words: str) -> None:
    other = make_record("alpha", "second", (0.5, 0.6), **{field: 2})
    records = [record for record in make_records(SCORES) if (record.method, record.task) != ("alpha", "second")]
    board = build_board([*records, other], SUITE)
    assert any(words in reason for reason in stale_reasons(board))
    assert "alpha" not in board.ranks


def test_an_old_version_stays_until_its_successor_is_there() -> None:
    """A new version that has a score on one task only does not push the old one off the board."""
    records = make_records(SCORES)
    second = [make_record("alpha", task, (0.8, 0.9), method_version=2) for task in ("first", "second")]
    board = build_board([*records, second[0]], SUITE)
    assert board.ranks == build_board(records, SUITE).ranks
    assert {row.version for row in board.rows if row.method == "alpha"} == {1}
    board = build_board([*records, *second], SUITE)
    assert {row.version for row in board.rows if row.method == "alpha"} == {2}
    assert len(board.ranks) == len(SCORES)
    # As many scores, but not where the old version has them.
    partly = [r for r in records if (r.method, r.task) != ("alpha", "second")]
    board = build_board([*partly, second[1]], SUITE)
    assert {row.version for row in board.rows if row.method == "alpha"} == {1}
    outdated = build_board([*records, *second], SUITE, stale=lambda r: "x" if r.method_version == 2 else None)
    assert outdated.ranks == build_board(records, SUITE).ranks


def test_records_of_other_protocols_and_tasks_are_another_matter() -> None:
    records = make_records(SCORES)
    others = [make_record("alpha", "first", (0.1, 0.2), protocol="ridge"), make_record("omega", "third", (0.1, 0.2))]
    assert dumped(build_board([*records, *others], SUITE)) == dumped(build_board(records, SUITE))


def test_baselines_can_be_kept_out_of_the_weights() -> None:
    records = [
        *make_records(SCORES),
        *(make_record("base", t, (-9.0, -8.0), baseline=True) for t in ("first", "second")),
    ]
    board = build_board(records, SUITE, {"weights": "no-baselines"})
    assert "no baselines" in board.rule
    assert board.ranks["base"] == 4
    board = build_board(records, SUITE)
    assert "No baselines" in [column.label for column in board.sections[0].columns]


def test_an_empty_board_says_so() -> None:
    board = build_board([], SUITE)
    assert board.rows == ()
    assert [task.values for task in board.tasks] == [{}, {}]
    dumped(board)


def test_one_method_with_one_split() -> None:
    board = build_board([make_record("solo", task, (0.5,)) for task in ("first", "second")], SUITE)
    assert board.ranks == {"solo": 1}
    assert board.uncertainty is None


def test_two_records_of_one_cell_are_refused() -> None:
    with pytest.raises(UsageError, match="two records"):
        build_board([*make_records(SCORES), *make_records(SCORES)], SUITE)


def test_no_nan_and_no_minus_zero() -> None:
    assert number(math.nan) is None
    assert math.copysign(1, number(-0.0) or 0.0) == 1
    with pytest.raises(ValueError, match="JSON"):
        dump({"x": math.nan})


def test_a_board_of_too_many_cells_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuco_core.boards.build.LARGEST", 5)
    with pytest.raises(TooManyCellsError, match=r"at most 5, got 6.*fewer tasks"):
        build_board(make_records(SCORES), SUITE)
