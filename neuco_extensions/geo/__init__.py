"""What of a score is the place: protocols side by side, the gap from random splits to others, and a map."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Panel

HERE = "neuco_extensions.geo"


@hookimpl
def neuco_panels() -> Iterator[Panel]:
    yield Panel(
        id="geo-protocols", title="Protocols", data=f"{HERE}.board:protocols", template=f"{HERE}:protocols.html"
    )
    yield Panel(
        id="geo-place",
        title="Scores by place",
        about="task",
        data=f"{HERE}.place:scores_by_place",
        template=f"{HERE}:place.html",
    )
