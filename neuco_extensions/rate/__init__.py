"""Rate curves: how good embeddings are, against the bytes that they take.

Every point of a curve is a score under a protocol with a coder (``neuco_extensions.coded``), recorded like any other.
"""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import BoardKind, Command, Panel

HERE = "neuco_extensions.rate"


@hookimpl
def neuco_commands() -> Iterator[Command]:
    yield Command(id="rate", title="Score and rank embeddings by the bytes they take", command=f"{HERE}.command:rate")


@hookimpl
def neuco_boards() -> Iterator[BoardKind]:
    yield BoardKind(
        id="rate",
        title="Bytes: the best Q that fits into so many bytes per sample",
        rank=f"{HERE}.board:rank_rates",
        cells=f"{HERE}.curves:rate_cells",
        # Metres that a sample is wide, 0 for what datasets say; the method that others are compared with.
        options={"coverage": "complete", "footprint": 0.0, "against": "", "replicates": 1000},
    )


@hookimpl
def neuco_panels() -> Iterator[Panel]:
    yield Panel(id="rate", title="Bytes", data=f"{HERE}.figure:curves_of_board", template=f"{HERE}:curves.html")
