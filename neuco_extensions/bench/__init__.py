"""The drop-in for NeuCo-Bench's own command: its options, its config file, its folders and files."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Command


@hookimpl
def neuco_commands() -> Iterator[Command]:
    title = "Run NeuCo-Bench's own command, faster"
    yield Command(id="bench", title=title, command="neuco_extensions.bench.command:bench")
