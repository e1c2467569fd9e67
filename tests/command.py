"""The one way in which tests run ``neuco``: as a process of its own, or in this process where that is enough."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err

    @property
    def json(self) -> Any:
        """What was printed, which must be JSON without NaN."""
        return json.loads(self.out, parse_constant=_refuse)


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def neuco(
    *args: object,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    path: Path | None = None,
    timeout: float = 600,
) -> Said:
    """Run ``neuco`` as a user would. ``env`` is added to the environment, ``path`` put in front of the Python path."""
    settings = {**os.environ, **(env or {})}
    if path is not None:
        settings["PYTHONPATH"] = os.pathsep.join(filter(None, (str(path), settings.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "neuco_core.cli", *map(str, args)]
    done = subprocess.run(command, cwd=cwd, env=settings, capture_output=True, text=True, timeout=timeout, check=False)
    return Said(done.returncode, done.stdout, done.stderr)


def neuco_here(*args: object, env: Mapping[str, str] | None = None) -> Said:
    """The same in this process, which costs no start: the catalog and what a test has patched are shared with it."""
    from neuco_core.cli import main

    result = CliRunner().invoke(_command(main), list(map(str, args)), env=dict(env or {}))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Said(result.exit_code, result.stdout, result.stderr)


def _command(main):  # type: ignore[no-untyped-def]
    """``main`` as click's test runner wants it, so that errors become lines and exit codes as they do for users."""
    import click

    @click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []})
    @click.pass_context
    def command(ctx: click.Context) -> None:
        main(ctx.args)

    return command
