"""Run untrusted code with nothing in reach: no network, no secrets, a read-only tree, limits on everything.

``bubblewrap`` is the sandbox. ``trust`` is none: the code has all your rights, within limits of time, memory,
processes and files; it is for your own code on a machine without bubblewrap, and only when it is asked for by name.
``Ran.engine`` says which of the two was used, and so does every report.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from ci.read_outputs import take
from ci.sandbox import bubblewrap, trust
from ci.sandbox.bubblewrap import protections
from ci.sandbox.limits import OUT, TREE, WARM, Limits, SandboxError, watch
from neuco_core.errors import UsageError

__all__ = ["KEPT", "OUT", "TREE", "WARM", "Limits", "Ran", "SandboxError", "engine", "protections", "run"]

ENGINES = ("bubblewrap", "trust")
VARIABLE = "NEUCO_CI_SANDBOX"
KEPT = 20_000  # characters of output that are kept, from the end


@dataclass(frozen=True)
class Ran:
    """How it ended: ``ok``, ``failed`` or the limit that was exceeded (see ``Limits``), and in which engine."""

    status: str
    code: int
    output: str
    engine: str
    seconds: float

    @property
    def ok(self) -> bool:
        return self.status == "ok"


def engine(*, trusted: bool = False) -> Literal["bubblewrap", "trust"]:
    """``bubblewrap``, or an error if it does not work here; ``trust`` only if somebody says so."""
    demanded = os.environ.get(VARIABLE, "")
    if demanded not in ("", *ENGINES):
        expected, hint = " or ".join(ENGINES), f"Correct or unset {VARIABLE}"
        raise UsageError("no such sandbox", where=VARIABLE, expected=expected, got=repr(demanded), hint=hint)
    if trusted and demanded == "bubblewrap":
        raise UsageError(f"--trust contradicts {VARIABLE}={demanded}", hint="Leave out one of them")
    if trusted or demanded == "trust":
        return "trust"
    bubblewrap.command()
    return "bubblewrap"


def run(
    arguments: Sequence[str],
    *,
    read: Mapping[str, Path],
    out: Path,
    limits: Limits | None = None,
    kind: str = "",
    hide_labels: bool = False,
) -> Ran:
    """Run Python with ``arguments``. ``read`` maps places inside to what is there; ``/out`` becomes ``out``."""
    limits, kind = limits or Limits(), kind or engine()
    began = time.monotonic()
    with tempfile.TemporaryFile() as log, contextlib.ExitStack() as stack:
        if kind == "bubblewrap":
            started = stack.enter_context(bubblewrap.start(arguments, read, limits, log, hide_labels=hide_labels))
        else:
            started = stack.enter_context(trust.start(arguments, read, limits, log))
        stack.callback(started.close)
        over = watch(started, limits)
        output, code = _end_of(log), started.process.returncode
        seconds = round(time.monotonic() - began, 3)
        too_much, wrong = take(started.folders[:1], out, limits.files, limits.written)
    status = over or ("files" if too_much else "failed" if wrong or code else "ok")
    return Ran(status, code, f"{output}\n{wrong}"[-KEPT:] if wrong else output[-KEPT:], kind, seconds)


def _end_of(log: IO[bytes]) -> str:
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - 4 * KEPT))
    return log.read(4 * KEPT).decode("utf-8", "replace")
