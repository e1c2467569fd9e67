"""Predictions for the empty cells of a board. They are marked as such, never rank, and never recorded."""

from __future__ import annotations

import numpy as np

from neuco_core.boards.model import Board, BoardCell, BoardRow, BoardTask, ExtraCells, Interval, number
from neuco_core.errors import DataError
from neuco_core.text import counted
from neuco_extensions.predict.predictor import Mix, Predictor
from neuco_extensions.predict.read import from_board

LEAST_METHODS, LEAST_TASKS = 5, 4
MOST_SCORES = 1000  # a fit takes some seconds with so many, and eight times as long with twice as many
DIGITS = 6


def predicted_cells(board: Board) -> ExtraCells | None:
    """Of methods that have some score, on the tasks on which they have none; nothing where ``why_not`` has a reason."""
    if why_not(board):
        return None
    fitted = Predictor().fit(from_board(board))
    table, (low, high) = fitted.table, fitted.interval()
    if not np.isfinite([fitted.scores, low, high]).all():
        raise DataError("non-finite predictions", where="board", hint="Look for scores that cannot be right")
    key = board.cell_columns[0].key
    cells = {}
    for row, task in _empty(board):
        at = table.methods.index(row.method), table.tasks.index(task.id)
        sign = 1.0 if task.greater_is_better else -1.0  # turned back where lower is better
        ends = sorted(round(sign * float(end[at]), DIGITS) + 0.0 for end in (low, high))
        # The reason stays that for which there is no score.
        reason = row.cells[task.id].reason if task.id in row.cells else "there is no record"
        score = number(sign * float(fitted.scores[at]), DIGITS)
        cells[row.method, task.id] = BoardCell({key: score}, {key: Interval(*ends)}, "estimated", reason)
    count, known = counted(len(cells), "score"), int(table.known.sum())
    about = f"{count} predicted from {known} that are known: no scores, and never ranked. {how_well(fitted.mix)}"
    return ExtraCells(cells, about)


def how_well(mix: Mix) -> str:
    return (
        f"Where known scores were held back, half of the predictions were less than {mix.error:.2f} spreads of "
        f"their task off; the task's mean alone {mix.mean_error:.2f}."
    )


def why_not(board: Board) -> str:
    """Why nothing is predicted on a board: nothing is empty, or too little is known, or too much to be quick. Or ""."""
    rows, tasks = len(_rows(board)), len(board.tasks)
    if not _empty(board):
        return "no cell of a method with a score is empty"
    if rows < LEAST_METHODS or tasks < LEAST_TASKS:
        least = f"{LEAST_METHODS} methods with a score and {LEAST_TASKS} tasks are needed"
        return f"{least}, and there are {rows} and {tasks}"
    return f"more than {MOST_SCORES} scores would take long" if rows * tasks > MOST_SCORES else ""


def _rows(board: Board) -> list[BoardRow]:
    return [row for row in board.shown if not row.same_as and any(cell.status == "ok" for cell in row.cells.values())]


def _empty(board: Board) -> list[tuple[BoardRow, BoardTask]]:
    return [(row, task) for row in _rows(board) for task in board.tasks if board.score(row, task.id) is None]
