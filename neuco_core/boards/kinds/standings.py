"""Places and values as they were printed; nothing is computed."""

from __future__ import annotations

from neuco_core.boards.cells import Cells
from neuco_core.boards.model import Ranked

RANK = "rank"


def as_printed(cells: Cells) -> Ranked:
    """The published column ``rank`` is the ranking; methods without a place are shown last."""
    places = {m.id: int(place) if (place := m.values.get(RANK)) else None for m in cells.methods}
    ordered = sorted(cells.methods, key=lambda m: places[m.id] or len(places) + 1)
    rows = tuple(
        m.row(places[m.id], cells.shown(m), values={k: value for k, value in m.values.items() if k != RANK})
        for m in ordered
    )
    return Ranked(columns=cells.columns, rows=rows, rule="ranks as published")
