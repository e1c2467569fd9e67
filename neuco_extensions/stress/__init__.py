"""How much of its scores a method keeps when images get worse: noise, haze, lost bands, clouds, shifts, big pixels."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Command, Panel

HERE = "neuco_extensions.stress"


@hookimpl
def neuco_commands() -> Iterator[Command]:
    yield Command(id="stress", title="Score on images that are worse", command=f"{HERE}.command:stress")


@hookimpl
def neuco_panels() -> Iterator[Panel]:
    data, template = f"{HERE}.curves:panel", f"{HERE}:panel.html"
    yield Panel(id="stress", title="Stress", about="method", data=data, template=template)
