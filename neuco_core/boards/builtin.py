"""The kinds of boards that come with neuco, registered like anybody's. Light: ranking is imported when it is called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import BoardKind

if TYPE_CHECKING:
    from neuco_core.boards.cells import Cells
    from neuco_core.boards.model import Ranked


def _standings(cells: Cells) -> Ranked:
    """As published: the printed column ``rank`` is the ranking; methods without a place come last."""
    from neuco_core.boards.model import Ranked

    places = {m.id: int(place) if (place := m.values.get("rank")) else None for m in cells.methods}
    ordered = sorted(cells.methods, key=lambda m: places[m.id] or len(places) + 1)
    values = {m.id: {key: value for key, value in m.values.items() if key != "rank"} for m in ordered}
    rows = tuple(m.row(places[m.id], cells.shown(m), values=values[m.id]) for m in ordered)
    return Ranked(columns=cells.columns, rows=rows, rule="ranks as published")


@hookimpl
def neuco_boards() -> Iterator[BoardKind]:
    options = {"weights": "all", "spread": "std", "ghost": 0.0, "coverage": "complete", "replicates": 1000}
    title = "NeuCo-Bench: ranks weighted by the spread of Q"
    yield BoardKind(id="neuco", title=title, rank="neuco_core.boards.kinds.neuco:rank_cells", options=options)
    yield BoardKind(id="standings", title="Places as others published them", rank=_standings)
