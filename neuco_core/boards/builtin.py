"""The kinds of boards that come with neuco, registered like anybody's; their code is named, not imported."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import BoardKind


@hookimpl
def neuco_boards() -> Iterator[BoardKind]:
    options = {"weights": "all", "spread": "std", "ghost": 0.0, "coverage": "complete", "replicates": 1000}
    title = "NeuCo-Bench: ranks weighted by the spread of Q"
    yield BoardKind(id="neuco", title=title, rank="neuco_core.boards.kinds.neuco:rank_cells", options=options)
    title = "Places as others published them"
    yield BoardKind(id="standings", title=title, rank="neuco_core.boards.published:rank_as_printed")
