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


def _standings(cells: Cells) -> Ranked:
    from neuco_core.boards.kinds.standings import as_printed

    return as_printed(cells)


@hookimpl
def neuco_boards() -> Iterator[BoardKind]:
    options = {"weights": "all", "spread": "std", "ghost": 0.0, "coverage": "complete", "replicates": 1000}
    title = "NeuCo-Bench: ranks weighted by the spread of Q"
    yield BoardKind(id="neuco", title=title, rank=_neuco, options=options)
    yield BoardKind(id="standings", title="Places as others published them", rank=_standings)
