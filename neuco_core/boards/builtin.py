"""The kinds of boards that come with neuco, registered like anybody's. Light: ranking is imported when it is called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import BoardKind

if TYPE_CHECKING:
    from neuco_core.boards.cells import Cells
    from neuco_core.boards.model import Ranked


def _neuco(cells: Cells, **options: Any) -> Ranked:
    from neuco_core.boards.kinds.neuco import rank_cells

    return rank_cells(cells, **options)


def _capabilities(cells: Cells, **options: Any) -> Ranked:
    from neuco_core.boards.kinds.capabilities import rank_cells

    return rank_cells(cells, **options)


def _challenge(cells: Cells, **options: Any) -> Ranked:
    from neuco_core.boards.kinds.challenge import rank_cells

    return rank_cells(cells, **options)


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
    yield BoardKind(id="neuco", title=title, rank=_neuco, options=options)
    chosen = {"scheme": "tags", "normaliser": "none", "by": "", "aggregation": "pooled", "replicates": 2000}
    seen = {"tuning": "all", "decoder": "all", "smallest": 0, "largest": 0}  # the last two in millions of parameters
    title = "Capabilities: interquartile means over sets of tasks, as GEO-Bench has them"
    yield BoardKind(id="capabilities", title=title, rank=_capabilities, options=chosen | seen)
    title = "A challenge: teams by their submission that counts"
    yield BoardKind(id="challenge", title=title, rank=_challenge, options={"by": "weighted"})
    yield BoardKind(id="standings", title="Places as others published them", rank=_standings)
