"""``neuco challenge``: a challenge with hidden tasks, from an empty folder to the audit."""

from __future__ import annotations

import click

from neuco_core.cli import CommandTable
from neuco_core.errors import EXIT_CODES

COMMANDS = {
    "audit": "neuco_extensions.challenge.command_host:audit",
    "board": "neuco_extensions.challenge.command_run:board",
    "check": "neuco_extensions.challenge.command_run:check",
    "close": "neuco_extensions.challenge.command_host:close",
    "evaluate": "neuco_extensions.challenge.command_run:evaluate",
    "export": "neuco_extensions.challenge.command_platforms:export",
    "init": "neuco_extensions.challenge.command_host:init",
    "seal": "neuco_extensions.challenge.command_host:seal",
    "serve": "neuco_extensions.challenge.command_serve:serve",
    "status": "neuco_extensions.challenge.command_run:status",
    "submit": "neuco_extensions.challenge.command_run:submit",
    "team": "neuco_extensions.challenge.command_host:team",
    "worker": "neuco_extensions.challenge.command_platforms:worker",
}
CODES = ", ".join(f"{code} {EXIT_CODES[code]}" for code in (0, 2, 3, 4, 5))


class Commands(CommandTable):
    table = COMMANDS


@click.group(cls=Commands, epilog=f"Exit codes: {CODES}.")
def challenge() -> None:
    """Run a challenge with hidden tasks: rules, submissions, boards, and proof that nothing was moved."""
