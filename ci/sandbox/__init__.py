"""Run untrusted code with nothing in reach: no network, no secrets, a read-only tree, limits on everything.

Bubblewrap is the sandbox; where it does not work, nothing runs.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci.sandbox import bubblewrap
from ci.sandbox.bubblewrap import protections
from ci.sandbox.limits import OUT, TREE, WARM, Limits, SandboxError, watch
from neuco_core.errors import DataError

__all__ = ["KEPT", "OUT", "TREE", "WARM", "Limits", "Ran", "SandboxError", "protections", "run"]

KEPT = 20_000  # characters of output that are kept, from the end
DEEPEST = 32  # folders in folders
KINDS = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


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
    ):
        over = watch(started, limits)
        log.seek(max(0, log.seek(0, os.SEEK_END) - 4 * KEPT))
        output, code = log.read(4 * KEPT).decode("utf-8", "replace"), started.process.returncode
        too_much, wrong = take(started.folders[:1], out, limits)
    status = over or ("files" if too_much else "failed" if wrong or code else "ok")
    return Ran(status, code, f"{output}\n{wrong}"[-KEPT:] if wrong else output[-KEPT:])


class _TooMuch(DataError):
    """More files or bytes than are allowed."""


def take(sources: Sequence[int], out: Path, limits: Limits) -> tuple[bool, str]:
    """Copy the open folders that a run wrote to ``out``: all of it, or nothing.

    Whoever filled them is not trusted: a link could lead to our own files, and reading a pipe never ends. Returns
    whether there is too much, and what is wrong with it, if anything is.
    """
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    try:
        for source in sources:
            _copy(source, out, limits)
    except (DataError, OSError) as error:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(exist_ok=True)
        reason = f"left something that cannot be read: {error}" if isinstance(error, OSError) else str(error)
        return isinstance(error, _TooMuch), reason
    return False, ""


def _copy(source: int, out: Path, limits: Limits) -> None:
    """Every entry is looked at and opened in its folder, and no link is followed."""

    def refuse(error: OSError) -> None:
        raise error

    files, size = limits.files, limits.written
    for folder, folders, names, inside in os.fwalk(".", dir_fd=source, onerror=refuse):
        if folder.count("/") > DEEPEST:
            raise DataError(f"left folders nested more than {DEEPEST} deep among its results")
        for name in (*folders, *names):
            facts = os.stat(name, dir_fd=inside, follow_symlinks=False)
            files, size = files - 1, size - facts.st_size
            if files < 0 or size < 0:
                raise _TooMuch(f"left more than {limits.files} files or {limits.written} bytes")
            if stat.S_ISDIR(facts.st_mode):
                (out / folder / name).mkdir()
            elif stat.S_ISREG(facts.st_mode):
                # Should it have become a pipe, opening it must not wait for a writer.
                descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=inside)
                with os.fdopen(descriptor, "rb") as file, (out / folder / name).open("xb") as copy:
                    shutil.copyfileobj(file, copy, 1 << 20)
            else:
                odd = KINDS.get(stat.S_IFMT(facts.st_mode), "a device")
                raise DataError(f"left {odd} among its results: {name!r}")
