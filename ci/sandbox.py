"""Run strangers' code with nothing in reach: no network, no secrets, a read-only tree, limits on everything.

With bubblewrap (``bwrap``) the process sees only what is named here. Where that is missing, the fallback still
clears the environment, limits time, memory, processes and files, and cuts the network with ``unshare`` if the
kernel lets it; but it hides no files. ``Ran.engine`` says which of them was used, and so does every report.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

TREE, OUT = "/tree", "/out"
KEPT = 20_000  # characters of output that are kept, from the end


@dataclass(frozen=True)
class Limits:
    """What the code may use, all its processes together."""

    seconds: float = 600
    memory: int = 6 << 30
    processes: int = 64
    file_size: int = 1 << 30


@dataclass(frozen=True)
class Ran:
    """How it ended: ``ok``, ``failed``, ``timeout``, ``memory`` or ``processes``; and in which kind of sandbox."""

    status: str
    code: int
    output: str
    engine: str
    seconds: float

    @property
    def ok(self) -> bool:
        return self.status == "ok"


def engine() -> str:
    """``bubblewrap`` if it is there and works, else ``fallback``."""
    forced = os.environ.get("NEUCO_CI_SANDBOX")
    if forced in ("bubblewrap", "fallback"):
        return forced
    if shutil.which("bwrap") is None:
        return "fallback"
    trial = subprocess.run([*_bwrap({}, None), "/bin/true"], capture_output=True)
    return "bubblewrap" if trial.returncode == 0 else "fallback"


def run(
    arguments: Sequence[str], *, read: Mapping[str, Path], out: Path, limits: Limits | None = None, kind: str = ""
) -> Ran:
    """Run Python with ``arguments``. ``read`` maps places inside the sandbox to folders; ``out`` is ``/out``."""
    limits = limits or Limits()
    kind = kind or engine()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as private:
        if kind == "bubblewrap":
            command, folder = [*_bwrap(read, out), sys.executable, *arguments], None
        else:
            command, folder = _fallback(arguments, read, out, Path(private))
        start = time.monotonic()
        status, code, output = _watch(command, _environment(kind, Path(private)), folder, limits)
    return Ran(status, code, output[-KEPT:], kind, round(time.monotonic() - start, 3))


def _environment(kind: str, private: Path) -> dict[str, str]:
    """Nothing of ours: no tokens, no home, no proxies."""
    home = "/tmp" if kind == "bubblewrap" else str(private)  # noqa: S108 - the sandbox's own /tmp
    return {
        "HOME": home,
        "LANG": "C.UTF-8",
        "NEUCO_CACHE": f"{home}/cache",
        "NEUCO_OFFLINE": "1",
        "NUMBA_CACHE_DIR": f"{home}/numba",
        "PATH": "/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": home,
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    }


def _bwrap(read: Mapping[str, Path], out: Path | None) -> list[str]:
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    command += ["--proc", "/proc", "--dev", "/dev", "--size", str(2 << 30), "--tmpfs", "/tmp"]  # noqa: S108
    for path in ("/usr", "/bin", "/lib", "/lib64", "/sbin", "/etc/ld.so.cache", "/etc/ssl"):
        if Path(path).is_symlink():
            command += ["--symlink", str(Path(path).readlink()), path]
        elif Path(path).exists():
            command += ["--ro-bind", path, path]
    # The interpreter with its packages; an editable install inside points at a folder that is not there.
    for prefix in dict.fromkeys((sys.base_prefix, sys.prefix)):
        if not prefix.startswith("/usr"):
            command += ["--ro-bind", prefix, prefix]
    for place, folder in read.items():
        command += ["--ro-bind", str(folder), place]
    if out is not None:
        command += ["--bind", str(out), OUT]
    return [*command, "--chdir", TREE if TREE in read else "/"]


def _fallback(
    arguments: Sequence[str], read: Mapping[str, Path], out: Path, private: Path
) -> tuple[list[str], Path | None]:
    """The same places by their true names, since nothing can be moved; the tree is copied, so that it stays clean."""
    places = {OUT: str(out), **{place: str(path) for place, path in read.items()}}
    if TREE in read:
        places[TREE] = str(shutil.copytree(read[TREE], private / "tree", symlinks=True))
    translated = [_translate(argument, places) for argument in arguments]
    cut = ["unshare", "--user", "--map-root-user", "--net"]
    works = shutil.which("unshare") and subprocess.run([*cut, "true"], capture_output=True).returncode == 0
    return [*(cut if works else ()), sys.executable, *translated], Path(places[TREE]) if TREE in places else None


def _translate(argument: str, places: Mapping[str, str]) -> str:
    for place, path in places.items():
        if argument == place or argument.startswith(place + "/"):
            return path + argument[len(place) :]
    return argument


def _watch(
    command: Sequence[str], environment: Mapping[str, str], folder: Path | None, limits: Limits
) -> tuple[str, int, str]:
    """Wait for the end, and bring it about when a limit is passed."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file_size, limits.file_size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=folder,
            preexec_fn=limit,
            start_new_session=True,
        )
        status = _wait(process, limits)
        _end_group(process)  # children that outlived their parent
        log.seek(0, os.SEEK_END)
        log.seek(max(0, log.tell() - 4 * KEPT))
        output = log.read().decode("utf-8", "replace")
    code = process.returncode
    return status or ("ok" if code == 0 else "failed"), code, output


def _wait(process: subprocess.Popen[bytes], limits: Limits) -> str:
    deadline = time.monotonic() + limits.seconds
    watched = psutil.Process(process.pid)
    while process.poll() is None:
        over = "timeout" if time.monotonic() > deadline else _over(watched, limits)
        if over:
            _end(process, watched)
            return over
        time.sleep(0.05)
    return ""


def _over(watched: psutil.Process, limits: Limits) -> str:
    """Which limit the processes are over, if any; one that ends while it is counted does not count."""
    try:
        family = [watched, *watched.children(recursive=True)]
    except psutil.Error:
        return ""
    if len(family) > limits.processes:
        return "processes"
    used = 0
    for member in family:
        try:
            used += member.memory_info().rss
        except psutil.Error:
            continue
    return "memory" if used > limits.memory else ""


def _end(process: subprocess.Popen[bytes], watched: psutil.Process) -> None:
    """Kill the whole family: the group, and whoever left it. The first of a pid namespace takes all of it along."""
    for _ in range(20):
        try:
            family = watched.children(recursive=True)
        except psutil.Error:
            family = []
        for member in family:
            try:
                member.kill()
            except psutil.Error:
                continue
        _end_group(process)
        process.kill()
        try:
            process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            continue
        if not family:
            return


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
