"""What is left of a method with fewer dimensions, fewer bits or fewer labels."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Command, Panel, resolve

TYPE_CHECKING = False  # checkers read it from here; at run time it is imported when it is first used
if TYPE_CHECKING:
    from neuco_extensions.rate.variants import ablate as ablate

HERE = "neuco_extensions.rate"


def __getattr__(name: str) -> object:
    if name != "ablate":
        raise AttributeError(f"module {HERE!r} has no attribute {name!r}")
    return resolve(f"{HERE}.variants:ablate")


@hookimpl
def neuco_commands() -> Iterator[Command]:
    title = "Score with fewer dimensions, bits or labels"
    yield Command(id="rate", title=title, command=f"{HERE}.command:rate")


@hookimpl
def neuco_panels() -> Iterator[Panel]:
    yield Panel(id="rate", title="Mean Q against bits", data=f"{HERE}.curves:curves", template=f"{HERE}:curves.html")
