"""No sandbox: code that is trusted like one's own runs with all our rights, but in a copy and within limits.

Places keep their names, so that nothing else needs to know: each argument that is one is translated.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO

import psutil

from ci.sandbox.bubblewrap import environment
from ci.sandbox.limits import OUT, TREE, Limits, Started, end, launch


@contextlib.contextmanager
def start(arguments: Sequence[str], read: Mapping[str, Path], limits: Limits, log: IO[bytes]) -> Iterator[Started]:
    """Run Python with ``arguments`` as long as the context lasts."""
    private = tempfile.mkdtemp(prefix="neuco-trust-")
    try:
        places = _places(read, Path(private))
        command = [sys.executable, *(translate(argument, places) for argument in arguments)]
        started = launch(command, limits, log, environment(private), folder=places.get(TREE))
        started.folders = [os.open(places[OUT], os.O_RDONLY | os.O_DIRECTORY)]
        try:
            yield started
        finally:
            end(started)
            _end_orphans(private)
    finally:
        # Not shutil's: it is recursive, and fails on folders that are nested a thousand deep.
        subprocess.run(["rm", "-rf", "--", private], capture_output=True)


def _places(read: Mapping[str, Path], private: Path) -> dict[str, Path]:
    """The true names. The tree is copied, so that it stays clean; /tmp, with files fetched beforehand, is private."""
    places = {**read, OUT: private / "out"}
    places[OUT].mkdir()
    for place, path in read.items():
        if place.startswith((TREE, "/tmp/")):  # noqa: S108 - the sandbox's own
            target = private / place.removeprefix("/tmp").lstrip("/")  # noqa: S108
            target.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copyfile if path.is_file() else partial(shutil.copytree, symlinks=True, dirs_exist_ok=True)
            copy(path, target)
            places[place] = target
    if (private / "tree").is_dir():
        places[TREE] = private / "tree"
    return places


def translate(argument: str, places: Mapping[str, Path]) -> str:
    """An argument, or the value of an ``--option=``, that is a place or inside one."""
    option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    for place, path in places.items():
        if value == place or value.startswith(f"{place}/"):
            return f"{option}{equals}{path}{value[len(place) :]}"
    return argument


def _end_orphans(home: str) -> None:
    """Children that outlived their parent and left its group: those with the home of this run."""
    for member in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if member.environ().get("HOME") == home:
                member.kill()
