"""Predictions on boards: in empty cells only, marked, with intervals, and without any influence on ranks."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from neuco_core.boards.facts import filled
from neuco_core.boards.model import Board, BoardCell, ExtraCells
from neuco_extensions.predict.fill import MOST_SCORES, predicted_cells, why_not
from neuco_extensions.predict.read import from_board
from tests.command import neuco_here as neuco
from tests.site.made_pages import made_source

EMPTY = BoardCell(status="missing", reason="there is no record")


def with_holes(methods: int = 8, tasks: int = 5, turned: bool = False) -> Board:
    """A made board without the first score of each of the first two methods; on the first task less may be better."""
    board = made_source(methods, tasks, replicates=10).board
    rows = []
    for number, row in enumerate(board.rows):
        cells = {t: structs.replace(c, values={"score": -c.values["score"]}) for t, c in row.cells.items() if c.values}
        cells = {**row.cells, **({"t00": cells["t00"]} if turned and "t00" in cells else {})}
        rows.append(structs.replace(row, cells={**cells, "t00": EMPTY} if number < 2 else cells))
    turned_tasks = tuple(
        structs.replace(task, greater_is_better=task.greater_is_better != (turned and task.id == "t00"))
        for task in board.tasks
    )
    return structs.replace(board, rows=tuple(rows), tasks=turned_tasks)


def predicted(board: Board) -> ExtraCells:
    extra = predicted_cells(board)
    assert extra is not None
    return extra


def test_only_empty_cells_are_filled_nothing_else_changes_and_predictions_are_never_learnt_from() -> None:
    board = with_holes()
    extra = predicted(board)
    after = filled(board, extra)
    assert {cell.status for cell in extra.cells.values()} == {"estimated"}
    assert len(extra.cells) == sum(cell.status != "ok" for row in board.shown for cell in row.cells.values())
    assert after.ranks == board.ranks
    for row, new in zip(board.rows, after.rows, strict=True):
        same = {task: cell for task, cell in new.cells.items() if (row.method, task) not in extra.cells}
        assert same == {task: cell for task, cell in row.cells.items() if task in same}
        assert structs.replace(new, cells={}) == structs.replace(row, cells={})
    for cell in extra.cells.values():
        interval = cell.intervals["score"]
        assert (interval.low or -np.inf) < (cell.values["score"] or 0) < (interval.high or np.inf)
    assert np.array_equal(from_board(after).values, from_board(board).values, equal_nan=True)


def test_where_lower_is_better_a_prediction_is_a_score_of_that_kind() -> None:
    plain, turned = predicted(with_holes()), predicted(with_holes(turned=True))
    first = with_holes().rows[0].method, "t00"
    one, other = plain.cells[first], turned.cells[first]
    assert other.values["score"] == pytest.approx(-(one.values["score"] or 0))
    assert [other.intervals["score"].low, other.intervals["score"].high] == pytest.approx(
        [-(one.intervals["score"].high or 0), -(one.intervals["score"].low or 0)]
    )


def test_complete_small_and_huge_boards_have_none() -> None:
    board = structs.replace(with_holes(), groups=None)
    full = structs.replace(board, rows=tuple(row for row in board.rows if not row.lacks))
    assert "no cell of a method with a score is empty" in why_not(full)
    assert "5 methods with a score and 4 tasks are needed, and there are 8 and 3" in why_not(with_holes(8, 3))
    many = tuple(structs.replace(board.rows[0], method=f"n{i}", rank=None) for i in range(MOST_SCORES // 5))
    assert "would take long" in why_not(structs.replace(board, rows=(*board.rows, *many)))


def test_in_the_terminal() -> None:
    shown = neuco("leaderboard", "show", "geobench-2", "--estimated")
    assert shown.out.count("≈0.") == 16
    assert "≈ marks values that do not count: estimated." in shown.out
    assert "16 scores predicted from 383 that are known: no scores, and never ranked. Where known scores" in shown.out
    refused = neuco("leaderboard", "show", "geobench-2", "--estimated", "--format", "csv")
    assert refused.code == 2
    assert "CSV cannot mark an estimate" in refused.err
    assert "no estimates: no cell" in neuco("leaderboard", "show", "neuco-paper-table-4", "--estimated").err
