"""The one way in which tests run ``neuco`` and Python: as a process, or in this process where that is enough."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
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
    return python("-m", "neuco_core.cli", *args, cwd=cwd, env=env, path=path, timeout=timeout)


def python(
    *args: object,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    path: Path | None = None,
    timeout: float = 600,
) -> Said:
    """The same for any Python: ``python("-c", CODE)``."""
    settings = {**os.environ, **(env or {})}
    if path is not None:
        settings["PYTHONPATH"] = os.pathsep.join(filter(None, (str(path), settings.get("PYTHONPATH"))))
    command = [sys.executable, *map(str, args)]
    done = subprocess.run(command, cwd=cwd, env=settings, capture_output=True, text=True, timeout=timeout, check=False)
    return Said(done.returncode, done.stdout, done.stderr)


def neuco_here(*args: object, env: Mapping[str, str] | None = None) -> Said:
    """``neuco`` in this process, which costs no start: the catalog and what a test has patched are shared with it."""
    result = CliRunner().invoke(_Main(), list(map(str, args)), env=dict(env or {}))  # type: ignore[arg-type]
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Said(result.exit_code, result.stdout, result.stderr)


class _Main:
    """``main`` as click's test runner calls it, so that errors become lines and exit codes as they do for users."""

    name = "neuco"

    def main(self, args: Sequence[str], **_: object) -> None:
        from neuco_core.cli import main

        main(list(args))
