"""Values for the empty cells of a board, from whoever registers them: marked, shown on request, and never ranked."""

from __future__ import annotations

import logging

from msgspec.structs import replace

from neuco_core.boards.model import Board, Column, ExtraCells, Section
from neuco_core.errors import DataError
from neuco_core.plugins.catalog import catalog
from neuco_core.specs import CellSource, resolve

log = logging.getLogger(__name__)


def extra_cells(board: Board) -> ExtraCells | None:
    """Of the first source that has any. One that fails harms neither the board nor the other sources."""
    for source in catalog().all(CellSource).values():
        try:
            extra: ExtraCells | None = resolve(source.fill)(board)
        except DataError as error:
            log.warning("%s: no extra cells from %s: %s", board.about.id, source.id, error)
            continue
        if extra is not None and extra.cells:
            return extra
    return None


def filled(board: Board, extra: ExtraCells) -> Board:
    """The board with these in its empty cells; its ranks and all its other values are as they were."""
    rows = []
    for row in board.rows:
        own = {task: cell for (method, task), cell in extra.cells.items() if method == row.method}
        rows.append(replace(row, cells={**row.cells, **own}))
    return replace(board, rows=tuple(rows))


def as_section(board: Board, extra: ExtraCells) -> Section:
    """The extra cells as a list, for a terminal: the cells of its table have no room for intervals."""
    score = board.cell_columns[0]
    columns = (
        Column("method", "Method", format="method"),
        Column("task", "Task", format="task"),
        Column("estimate", "Estimate", digits=score.digits, format=score.format),
        Column("interval", "95 % interval", digits=score.digits, format=score.format),
    )
    rows = tuple(
        (method, task, cell.values[score.key], cell.intervals.get(score.key))
        for (method, task), cell in extra.cells.items()
    )
    return Section("Estimated", columns, rows, lead=extra.about)
