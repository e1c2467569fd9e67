"""What of a score is the place: the gap from random splits to others, protocols side by side, and a map."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import ColumnSource, Panel

HERE = "neuco_extensions.geo"


@hookimpl
def neuco_columns() -> Iterator[ColumnSource]:
    yield ColumnSource(id="geo-gap", columns=f"{HERE}.gap:gap_columns")


@hookimpl
def neuco_panels() -> Iterator[Panel]:
    data, template = f"{HERE}.protocols:protocols", f"{HERE}:protocols.html"
    yield Panel(id="geo-protocols", title="Protocols", data=data, template=template)
    data, template = f"{HERE}.place:scores_by_place", f"{HERE}:place.html"
    yield Panel(id="geo-place", title="Scores by place", about="task", data=data, template=template)
