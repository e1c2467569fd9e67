"""``neuco challenge``: a challenge with hidden tasks, from an empty folder to the audit."""

from __future__ import annotations

import click

from neuco_core.cli import CommandTable
from neuco_core.errors import EXIT_CODES

COMMANDS = {
    "audit": "neuco_core.cli.challenge_host:audit",
    "board": "neuco_core.cli.challenge_run:board",
    "check": "neuco_core.cli.challenge_run:check",
    "close": "neuco_core.cli.challenge_host:close",
    "evaluate": "neuco_core.cli.challenge_run:evaluate",
    "export": "neuco_core.cli.challenge_platforms:export",
    "init": "neuco_core.cli.challenge_host:init",
    "seal": "neuco_core.cli.challenge_host:seal",
    "serve": "neuco_core.cli.challenge_serve:serve",
    "status": "neuco_core.cli.challenge_run:status",
    "submit": "neuco_core.cli.challenge_run:submit",
    "team": "neuco_core.cli.challenge_host:team",
    "worker": "neuco_core.cli.challenge_platforms:worker",
}
CODES = ", ".join(f"{code} {EXIT_CODES[code]}" for code in (0, 2, 3, 4, 5))


class Commands(CommandTable):
    table = COMMANDS


@click.group(cls=Commands, epilog=f"Exit codes: {CODES}.")
def challenge() -> None:
    """Run a challenge with hidden tasks: rules, submissions, boards, and proof that nothing was moved."""
