"""Run untrusted code with nothing in reach: no network, no secrets, a read-only tree, limits on everything.

With bubblewrap (``bwrap``) the process sees only what is named here. Where that is missing, the fallback still
clears the environment, limits time, memory, processes and files, and cuts the network with ``unshare`` if the
kernel lets it; but it hides no files: it is for code that you trust. ``Ran.engine`` says which of them was used,
and so does every report.
"""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
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

from ci.collect import size_of, take

TREE, OUT = "/tree", "/out"
KEPT = 20_000  # characters of output that are kept, from the end
MARK = "NEUCO_CI_RUN"  # in the environment of all that the fallback starts, so that it is found again
# In installed packages: labels of tasks, and scikit-learn's copy of the digits.
LABELS = ("neuco_tasks", "neuco_core/_registry", "sklearn/datasets/data")


@dataclass(frozen=True)
class Limits:
    """What the code may use, all its processes together."""

    seconds: float = 600
    memory: int = 6 << 30
    processes: int = 64
    file_size: int = 1 << 30
    written: int = 4 << 30
    files: int = 20_000


@dataclass(frozen=True)
class Ran:
    """How it ended: ``ok``, ``failed`` or the limit that was exceeded (see ``Limits``), and in which sandbox."""

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
        return forced  # not tried out: if it is required and does not work, every run fails and says so
    if shutil.which("bwrap") is None:
        return "fallback"
    trial = subprocess.run([*_bwrap({}, None), "/bin/true"], capture_output=True)
    return "bubblewrap" if trial.returncode == 0 else "fallback"


def run(
    arguments: Sequence[str],
    *,
    read: Mapping[str, Path],
    out: Path,
    limits: Limits | None = None,
    kind: str = "",
    hide_labels: bool = False,
) -> Ran:
    """Run Python with ``arguments``. ``read`` maps places inside the sandbox to folders; ``out`` becomes ``/out``."""
    limits = limits or Limits()
    kind = kind or engine()
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, ignore_cleanup_errors=True) as private:
        raw = Path(private) / "out"
        raw.mkdir()
        if kind == "bubblewrap":
            hidden = label_folders() if hide_labels else []
            command, folder = [*_bwrap(read, raw, hidden), sys.executable, *arguments], None
        else:
            command, folder = _fallback(arguments, read, raw, Path(private))
        start = time.monotonic()
        environment = _environment(kind, Path(private))
        status, code, output = _watch(command, environment, folder, limits, raw)
        seconds = round(time.monotonic() - start, 3)
        wrong = take(raw, out)
    if wrong and status in ("ok", "failed"):
        status, output = "failed", f"{output}\n{wrong}"
    return Ran(status, code, output[-KEPT:], kind, seconds)


def label_folders() -> list[str]:
    """Where installed packages keep labels, which a method must not see."""
    places = [Path(entry) / name for entry in sys.path for name in LABELS]
    seen = {str(place) for place in places if place.is_dir() and not place.is_symlink()}
    return sorted(place for place in seen if place.startswith(("/usr/", f"{sys.prefix}/", f"{sys.base_prefix}/")))


def _environment(kind: str, private: Path) -> dict[str, str]:
    """Nothing from us: no tokens, no home, no proxies."""
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
        MARK: secrets.token_hex(16),
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    }


def _bwrap(read: Mapping[str, Path], out: Path | None, hidden: Sequence[str] = ()) -> list[str]:
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    # As root, /proc would be a way to the settings of the kernel.
    command += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--size", str(1 << 30), "--tmpfs", "/tmp"]  # noqa: S108
    command += ["--size", str(1 << 26), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
    for path in ("/usr", "/bin", "/lib", "/lib64", "/sbin", "/etc/ld.so.cache", "/etc/ssl"):
        if Path(path).is_symlink():
            command += ["--symlink", str(Path(path).readlink()), path]
        elif Path(path).exists():
            command += ["--ro-bind", path, path]
    # The interpreter with its packages; an editable install inside points at a folder that is not there.
    for prefix in dict.fromkeys((sys.base_prefix, sys.prefix)):
        if not prefix.startswith("/usr"):
            command += ["--ro-bind", prefix, prefix]
    for place in hidden:
        command += ["--size", "4096", "--tmpfs", place, "--remount-ro", place]
    for place, folder in read.items():
        command += ["--ro-bind", str(folder), place]
    if out is not None:
        command += ["--bind", str(out), OUT]
    # The root itself is a file system in memory: without this it could be filled.
    return [*command, "--remount-ro", "/", "--chdir", TREE if TREE in read else "/"]


def _fallback(
    arguments: Sequence[str], read: Mapping[str, Path], out: Path, private: Path
) -> tuple[list[str], Path | None]:
    """The same places by their true names, since nothing can be moved; the tree is copied, so that it stays clean."""
    places = {OUT: str(out), **{place: str(path) for place, path in read.items()}}
    if TREE in read:
        places[TREE] = str(shutil.copytree(read[TREE], private / "tree", symlinks=True))
    for place, path in places.items():
        if place.startswith("/tmp/"):  # noqa: S108 - files fetched beforehand, for the private folder
            shutil.copytree(path, private / place.removeprefix("/tmp/"))  # noqa: S108
    translated = [_translate(argument, places) for argument in arguments]
    cut = ["unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child"]
    works = shutil.which("unshare") and subprocess.run([*cut, "true"], capture_output=True).returncode == 0
    return [*(cut if works else ()), sys.executable, *translated], Path(places[TREE]) if TREE in places else None


def _translate(argument: str, places: Mapping[str, str]) -> str:
    for place, path in places.items():
        if argument == place or argument.startswith(place + "/"):
            return path + argument[len(place) :]
    return argument


def _watch(
    command: Sequence[str], environment: Mapping[str, str], folder: Path | None, limits: Limits, out: Path
) -> tuple[str, int, str]:
    """Wait for the end, and force it when a limit is exceeded."""

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
        status = _wait(process, limits, out)
        _end_group(process)
        _end_orphans(environment[MARK])
        log.seek(0, os.SEEK_END)
        log.seek(max(0, log.tell() - 4 * KEPT))
        output = log.read().decode("utf-8", "replace")
    code = process.returncode
    return status or ("ok" if code == 0 else "failed"), code, output


def _wait(process: subprocess.Popen[bytes], limits: Limits, out: Path) -> str:
    deadline = time.monotonic() + limits.seconds
    watched = psutil.Process(process.pid)
    rounds = 0
    while process.poll() is None:
        over = "timeout" if time.monotonic() > deadline else _over(watched, limits)
        over = over or (_too_much(out, limits) if rounds % 20 == 0 else "")
        if over:
            _end(process, watched)
            return over
        rounds += 1
        time.sleep(0.05)
    return _too_much(out, limits)


def _too_much(out: Path, limits: Limits) -> str:
    files, written = size_of(out, limits.files)
    return "files" if files >= limits.files or written > limits.written else ""


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


def _end_orphans(mark: str) -> None:
    """Children that outlived their parent and left its group: those whose environment has our mark."""
    for member in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if member.environ().get(MARK) == mark:
                member.kill()
