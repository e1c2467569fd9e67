"""Predictions in the empty cells of a board's table: there for who asks for them, and never taken for scores."""

from __future__ import annotations

from neuco_core.boards.model import BoardRow
from neuco_core.boards.values import MARK
from neuco_core.boards.views.site.html import Safe, tag
from neuco_core.boards.views.site.pieces import shown
from neuco_core.boards.views.site.source import BoardSource

SWITCH = "predicted"


def predicted_switch() -> Safe:
    """Off at first."""
    return tag("label", tag("input", id=SWITCH, type="checkbox"), " Predictions in empty cells")


def predicted_said(source: BoardSource) -> Safe:
    """How many there are, and how well known scores were predicted; scripts show it with the predictions."""
    if not source.predicted:
        return Safe("")
    words = tag("b", f"{MARK} Predicted, with a 95 % interval.")
    return tag("p", words, f" {source.predicted_said}", id=f"{SWITCH}-said", class_="note", hidden=True)


def predicted_cell(source: BoardSource, row: BoardRow, task: str) -> Safe:
    cell, column = source.predicted.get((row.method, task)), source.board.cell_columns[0]
    if cell is None:
        return Safe("")
    value, interval = shown(column, cell.values[column.key]), shown(column, cell.intervals[column.key])
    words = f"predicted {value}, 95 % interval {interval}; no score, and not ranked"
    return tag("span", f"{MARK}{value}", tag("small", interval), class_=SWITCH, title=words)
