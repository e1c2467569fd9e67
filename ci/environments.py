"""Environments of plugins: what ``requirements.txt`` in a plugin's folder locks, installed outside the sandbox.

Only wheels whose sha256 the plugin names are unpacked, and unpacking runs no code of theirs. The folder is seen in the
sandbox of that plugin alone, read-only, behind neuco's own packages.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from ci.sandbox import Limits
from neuco_core.encode.requirements import Locked, public, read_lock
from neuco_core.errors import DataError
from neuco_core.fetch.cache import cache_dir, writing
from neuco_core.text import one_line

PACKAGES = "/packages"
# Behind all others, so that none of neuco's own packages is replaced.
BEHIND = """
import runpy, sys
sys.path.append(sys.argv[1])
sys.argv = sys.argv[2:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
INSTALLING = Limits(seconds=900, written=3 << 30)  # time, and bytes of downloads and unpacked files together
LOOK = 0.2  # seconds between two looks at the size
AS_FILE = "A method that needs more than this comes as a file of embeddings: `neuco new method --embeddings URL`"
OPTIONS = ("--require-hashes", "--only-binary", ":all:", "--no-deps", "--no-compile", "--no-cache-dir", "--no-input")
HIDDEN = ("PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_NO_BINARY", "PIP_REQUIREMENT")
QUIET = ("--quiet", "--disable-pip-version-check", "--progress-bar", "off")


def with_packages(arguments: Sequence[str]) -> tuple[str, ...]:
    """Arguments for Python, ``-m MODULE …``, so that the module finds the packages."""
    return ("-c", BEHIND, PACKAGES, *arguments[1:])


def install(lock: Path, seconds: float = INSTALLING.seconds, written: int = INSTALLING.written) -> Path:
    """The folder with what a lock names, made if it is not there yet; it goes by the content of the lock."""
    wanted = additions(read_lock(lock))
    key = hashlib.sha256("\n".join([sys.version, sys.platform, os.uname().machine, *map(str, wanted)]).encode())
    folder = cache_dir() / "environments" / key.hexdigest()[:32]
    if folder.is_dir():
        return folder
    with writing(folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(dir=folder.parent, prefix="installing-", ignore_cleanup_errors=True)
    with scratch as name:
        made = Path(name) / "packages"
        made.mkdir()
        if wanted:
            _pip(Path(name), made, wanted, seconds, written)
        try:
            made.rename(folder)
        except OSError:  # somebody else was faster
            if not folder.is_dir():
                raise
    return folder


def additions(packages: Sequence[Locked]) -> list[Locked]:
    """What there is to install: a package that is here already must be locked in its very version."""
    wanted = []
    for item in packages:
        here = next((d.version for d in metadata.distributions(name=item.name)), "")
        if not here:
            wanted.append(item)
        elif public(here) != public(item.version):
            what = f"the lock has {item.name} {item.version}, and every method runs with {item.name} {here}"
            hint = f"Lock what works with {item.name} {here}, or ask for a newer one in constraints.txt. {AS_FILE}"
            raise DataError(what, where="requirements.txt", hint=hint)
    return wanted


def _pip(scratch: Path, made: Path, wanted: Sequence[Locked], seconds: float, written: int) -> None:
    # Our own lines and not the plugin's: pip would take more from a file than the parser allows.
    (scratch / "lock.txt").write_text("".join(f"{item}\n" for item in wanted), encoding="utf-8")
    log = scratch / "log.txt"
    environment = {name: value for name, value in os.environ.items() if name not in HIDDEN} | {"TMPDIR": str(scratch)}
    command = [sys.executable, "-m", "pip", "install", *OPTIONS, *QUIET, "--target", str(made), "-r", "lock.txt"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=scratch,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        end = time.monotonic() + seconds
        over = ""
        while process.poll() is None and not over:
            time.sleep(LOOK)
            over = f"it took longer than {seconds:.0f} s" if time.monotonic() > end else _too_large(scratch, written)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    over = over or _too_large(scratch, written)
    if over:
        raise DataError(f"the environment was not installed: {over}", where="requirements.txt", hint=AS_FILE)
    if process.returncode:
        lines = [line for line in log.read_text("utf-8", "replace").splitlines() if not line.startswith("WARNING")]
        what = f"the environment cannot be installed: pip: {one_line(' '.join(lines), 600)}"
        hint = f"Every package needs a wheel for Python {sys.version_info[0]}.{sys.version_info[1]}. {AS_FILE}"
        raise DataError(what, where="requirements.txt", hint=hint)
    shutil.rmtree(made / "bin", ignore_errors=True)


def _too_large(folder: Path, most: int) -> str:
    """Whether the files below a folder are more than so many bytes; what vanishes meanwhile does not count."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118 - thousands, five times a second
    return f"more than {most >> 20} MB" if total > most else ""
