"""``neuco data``: fetch, verify and pin the files behind tasks and methods, and look after the cache."""

from __future__ import annotations

import importlib

import click

from neuco_core.errors import EXIT_CODES

COMMANDS = {
    "fetch": "neuco_core.cli.data_fetch:fetch",
    "link": "neuco_core.cli.data_link:link",
    "ls": "neuco_core.cli.data_cache:ls",
    "package": "neuco_core.cli.data_package:package",
    "pin": "neuco_core.cli.data_pin:pin",
    "prune": "neuco_core.cli.data_cache:prune",
    "upload": "neuco_core.cli.data_upload:upload",
    "verify": "neuco_core.cli.data_cache:verify",
}
CODES = ", ".join(f"{code} {EXIT_CODES[code]}" for code in (0, 2, 3, 4, 7))


class DataGroup(click.Group):
    """Each command is imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command


@click.group(cls=DataGroup, epilog=f"Exit codes: {CODES}.")
def data() -> None:
    """Fetch, verify, pin, package and upload data, and look after the cache."""
