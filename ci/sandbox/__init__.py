"""Run untrusted code with nothing in reach: no network, no secrets, a read-only tree, limits on everything.

Bubblewrap is the sandbox; where it does not work, nothing runs.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ci.sandbox import bubblewrap
from ci.sandbox.bubblewrap import protections
from ci.sandbox.limits import OUT, TREE, WARM, Limits, SandboxError, watch
from ci.sandbox.results import take

__all__ = ["KEPT", "OUT", "TREE", "WARM", "Limits", "Ran", "SandboxError", "protections", "run"]

KEPT = 20_000  # characters of output that are kept, from the end


@dataclass(frozen=True)
class Ran:
    """How it ended: ``ok``, ``failed`` or the limit that was exceeded (see ``Limits``)."""

    status: str
    code: int
    output: str

    @property
    def ok(self) -> bool:
        return self.status == "ok"


def run(
    arguments: Sequence[str],
    *,
    read: Mapping[str, Path],
    out: Path,
    limits: Limits | None = None,
    hide_labels: bool = False,
) -> Ran:
    """Run Python with ``arguments``. ``read`` maps places inside to what is there; ``/out`` becomes ``out``."""
    limits = limits or Limits()
    with (
        tempfile.TemporaryFile() as log,
        bubblewrap.start(arguments, read, limits, log, hide_labels=hide_labels) as started,
        contextlib.closing(started),
    ):
        over = watch(started, limits)
        output, code = _end_of(log), started.process.returncode
        too_much, wrong = take(started.folders[:1], out, limits.files, limits.written)
    status = over or ("files" if too_much else "failed" if wrong or code else "ok")
    return Ran(status, code, f"{output}\n{wrong}"[-KEPT:] if wrong else output[-KEPT:])


def _end_of(log: IO[bytes]) -> str:
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - 4 * KEPT))
    return log.read(4 * KEPT).decode("utf-8", "replace")
