"""The sandbox: bubblewrap with new namespaces, a seccomp filter, a keyring of its own and folders in memory."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import platform
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import psutil

from ci.sandbox import enter, seccomp
from ci.sandbox.limits import OUT, TREE, Limits, SandboxError, Started, cgroup_parent, end, opened_cgroup

SMALL, TMP = 1 << 26, 1 << 30  # bytes of /dev/shm and of /tmp
SLACK = 1 << 20  # so that a run that is over its limit of bytes can be told from one that is just within
SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/sbin", "/etc/ld.so.cache", "/etc/ssl")
# Shared memory made from /dev/zero belongs to no process; the names of our keys are nobody's business.
CLOSED = ("/dev/zero", "/proc/keys", "/proc/key-users")
# In installed packages: labels of tasks, and scikit-learn's copy of the digits.
LABELS = ("neuco_tasks", "neuco_core/_registry", "sklearn/datasets/data")
# From 0.8 on; the filter forbids the same, so an older bubblewrap will do.
NO_NESTING = ("--unshare-user", "--disable-userns")
# Nothing from us, no tokens, no proxies; and nothing that is set only here and would tell that this is CI.
ENVIRONMENT = {
    "HOME": "/tmp",  # noqa: S108 - the sandbox's own
    "LANG": "C.UTF-8",
    "NEUCO_CACHE": "/tmp/cache",  # noqa: S108
    "NUMBA_CACHE_DIR": "/tmp/numba",  # noqa: S108
    "PATH": "/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "TMPDIR": "/tmp",  # noqa: S108
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}
NEXT = "Install it (`sudo sh ci/parts.sh sandbox` on Debian or Ubuntu); `neuco check` needs none"


def command() -> tuple[str, ...]:
    """Bubblewrap with the strongest options that work here; an error in its own words if it does not work at all."""
    path = shutil.which("bwrap")
    if path is None:
        raise SandboxError("no sandbox: bubblewrap (bwrap) is not on the PATH", hint=NEXT)
    return _tried(path)


@functools.cache
def _tried(path: str) -> tuple[str, ...]:
    for options in (NO_NESTING, ()):
        with _filter() as (extra, descriptors):
            trial = subprocess.run(
                [path, *options, *extra, *_view({}, []), sys.executable, "-I", "-S", "-c", ""],
                capture_output=True,
                text=True,
                errors="replace",
                pass_fds=descriptors,
            )
        if trial.returncode == 0:
            return path, *options
    reason = " ".join(trial.stderr.split())[-300:] or f"it ended with {trial.returncode}"
    raise SandboxError(f"no sandbox: bubblewrap does not work here: {reason}", where=path, hint=NEXT)


def protections() -> dict[str, bool]:
    """What bubblewrap does here beyond its namespaces, and whether it does."""
    return {
        "seccomp filter": bool(seccomp.program()),
        "no nested user namespaces": set(NO_NESTING) <= set(command()),
        "limits by cgroup": cgroup_parent() is not None,
    }


@contextlib.contextmanager
def start(
    arguments: Sequence[str], read: Mapping[str, Path], limits: Limits, log: IO[bytes], *, hide_labels: bool = False
) -> Iterator[Started]:
    """Run Python with ``arguments`` in the sandbox, as long as the context lasts."""
    hidden = label_folders() if hide_labels else []
    mounts = [*_view(read, hidden), "--size", str(limits.written + SLACK), "--tmpfs", OUT]
    # The root itself is a file system in memory: without this it could be filled.
    has_tree = any(target.startswith(TREE) for target in read)
    mounts += ["--remount-ro", "/", "--chdir", TREE if has_tree else "/"]
    python = [sys.executable, "-I", "-S", "-c", Path(enter.__file__).read_text(encoding="utf-8")]
    ours, theirs = socket.socketpair()
    with ours, theirs, _filter() as (extra, descriptors), opened_cgroup(limits) as group:
        whole = [*command(), *extra, *mounts, *python, str(theirs.fileno()), json.dumps(limits.inner_walls())]

        def prepare() -> None:
            for name, most in limits.walls().items():
                resource.setrlimit(getattr(resource, name), (most, most))
            _leave_the_keyring()
            if group is not None:
                (group / "cgroup.procs").write_text("0", encoding="ascii")  # and all that it starts

        process = psutil.Popen(
            [*whole, sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=ENVIRONMENT,
            pass_fds=(*descriptors, theirs.fileno()),
            preexec_fn=prepare,
            start_new_session=True,
        )
        started = Started(process, group=group)
        theirs.close()
        try:
            ours.settimeout(limits.seconds)
            with contextlib.suppress(TimeoutError):  # nothing comes if the sandbox could not be set up
                _, started.folders, _, _ = socket.recv_fds(ours, 1, len(enter.FOLDERS))
            with contextlib.suppress(psutil.Error):
                started.first = started.process.children()
            yield started
        finally:
            end(started)
            for folder in started.folders:
                os.close(folder)


def label_folders() -> list[str]:
    """Where installed packages keep labels, and environments inside of others: a method must not see them."""
    prefixes = ("/usr", sys.prefix, sys.base_prefix)
    roots = {*map(Path, prefixes), Path("/usr/local")}
    for prefix in prefixes:
        roots |= {path.parent for depth in ("*", "*/*") for path in Path(prefix).glob(f"{depth}/conda-meta")}
    # Not only our own Python's: the sandbox sees the packages of every Python there, and could put them on its path.
    packages = [path for root in roots for path in root.glob("[lL]ib*/python3*/*-packages")]
    candidates = [folder / name for folder in {*map(Path, sys.path), *packages} for name in LABELS]
    # As a whole: environments hold environments, and caches hold packages that are still packed.
    candidates += [root / name for root in roots for name in ("envs", "pkgs")]
    folders = {str(path) for path in candidates if path.is_dir() and not path.is_symlink()}
    return sorted(path for path in folders if path.startswith(tuple(f"{prefix}/" for prefix in prefixes)))


def _view(read: Mapping[str, Path], hidden: Sequence[str]) -> list[str]:
    """Namespaces, and the files that can be seen. The root stays open for more; whoever adds more closes it."""
    options = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    options += ["--proc", "/proc", "--dev", "/dev"]
    for path in CLOSED:  # a device that is bound like this cannot be opened
        options += ["--ro-bind", "/dev/null", path] if Path(path).exists() else []
    # As root, /proc would be a way to the settings of the kernel.
    options += ["--remount-ro", "/proc"]
    options += ["--size", str(TMP), "--tmpfs", "/tmp", "--size", str(SMALL), "--tmpfs", "/dev/shm"]  # noqa: S108
    options += ["--remount-ro", "/dev"]
    for path in SYSTEM:
        if Path(path).is_symlink():
            options += ["--symlink", str(Path(path).readlink()), path]
        elif Path(path).exists():
            options += ["--ro-bind", path, path]
    # The interpreter with its packages; an editable install inside points at a folder that is not there.
    own = tuple(dict.fromkeys((sys.base_prefix, sys.prefix)))
    for prefix in own:
        if not prefix.startswith("/usr"):
            options += ["--ro-bind", prefix, prefix]
    for path in hidden:
        options += ["--size", "4096", "--tmpfs", path]
        for prefix in own:
            if prefix.startswith(f"{path}/"):
                options += ["--ro-bind", prefix, prefix]
        options += ["--remount-ro", path]
    for target, folder in read.items():
        options += ["--ro-bind", str(folder), target]
    return options


@contextlib.contextmanager
def _filter() -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """Options and open files for the seccomp filter."""
    with tempfile.TemporaryFile() as file:
        file.write(seccomp.program())
        file.seek(0)
        descriptors = (file.fileno(),) if seccomp.program() else ()
        yield [option for fd in descriptors for option in ("--seccomp", str(fd))], descriptors


_SYSCALL = ctypes.CDLL(None).syscall
_JOIN_SESSION = 1


def _leave_the_keyring() -> None:
    """A new session keyring, as a second line: the filter forbids keyrings anyway. Some containers forbid this, too."""
    column = seccomp.MACHINES.get(platform.machine())
    if column:
        _SYSCALL(ctypes.c_long(seccomp.DENIED["keyctl"][column[0]]), ctypes.c_long(_JOIN_SESSION), None)
