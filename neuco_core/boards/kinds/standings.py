"""Places as others published them: the printed column ``rank`` is the ranking."""

from __future__ import annotations

from neuco_core.boards.cells import Cells
from neuco_core.boards.model import Ranked


def rank_cells(cells: Cells) -> Ranked:
    """Methods without a place come last."""
    places: dict[str, int | None] = {}
    for method in cells.methods:
        printed = method.values.get("rank")
        places[method.id] = int(printed) if printed else None
    ordered = sorted(cells.methods, key=lambda m: places[m.id] or len(places) + 1)
    values = {m.id: {key: value for key, value in m.values.items() if key != "rank"} for m in ordered}
    rows = tuple(m.row(places[m.id], cells.shown(m), values=values[m.id]) for m in ordered)
    return Ranked(columns=cells.columns, rows=rows, rule="ranks as published")
