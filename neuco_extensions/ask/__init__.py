"""``neuco ask-author``: the question to the author of a model whether its implementation here is right."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Command


@hookimpl
def neuco_commands() -> Iterator[Command]:
    title = "Write the question to a model's author"
    yield Command(id="ask-author", title=title, command="neuco_extensions.ask.command:ask_author")
