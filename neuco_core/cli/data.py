"""``neuco data``: fetch, verify and pin the files behind tasks and methods, and look after the cache."""

from __future__ import annotations

import click

from neuco_core.cli import CommandTable
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


class Data(CommandTable):
    table = COMMANDS


@click.group(cls=Data, epilog=f"Exit codes: {CODES}.")
def data() -> None:
    """Fetch, verify, pin, package and upload data, and look after the cache."""
