"""What the code may use, and the watch: twenty looks a second, and the end of all processes at a limit.

Where we may make a control group (version 2) for a run, the kernel itself holds the limits. It is made beside our own
group, which is allowed to root, and on a desktop to the user of the session.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from neuco_core.errors import DependencyError

# What the code sees. WARM: compiled kernels, copied to where their compiler looks.
TREE, OUT, WARM = "/tree", "/out", "/warm"
ROUND = 0.05  # seconds between two looks
ENDING = 30  # seconds that the kernel may take to end processes that were killed
CGROUPS = Path("/sys/fs/cgroup")
# What a group's kernel counts where it had to enforce a limit, and which that is.
EVENTS = (("memory.events", "oom_kill", "memory"), ("pids.events", "max", "processes"))
COUNTS = re.compile(rb"^(RssAnon|VmPTE|Threads):\s+(\d+)", re.MULTILINE)  # of /proc/PID/status, memory in kB


class SandboxError(DependencyError):
    """Bubblewrap is missing or does not work here."""


@dataclass(frozen=True)
class Limits:
    """What the code may use, all its processes together. Files in /tmp and results not yet taken are memory, too."""

    seconds: float = 600
    memory: int = 6 << 30
    processes: int = 64
    file_size: int = 1 << 30
    written: int = 4 << 30
    files: int = 20_000

    @property
    def threads(self) -> int:
        return 4 * self.processes

    def walls(self) -> dict[str, int]:
        """Limits of the kernel for each process, the double of all: they stop a burst before anybody looks."""
        return {"RLIMIT_DATA": 2 * self.memory, "RLIMIT_FSIZE": self.file_size, "RLIMIT_CORE": 0}

    def inner_walls(self) -> dict[str, int]:
        """Limits that are counted by user: they are set inside the sandbox, whose users are its own."""
        # Before Linux 5.14 the processes of a user were counted over all namespaces, those of the desktop included.
        release = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
        return {"RLIMIT_NOFILE": 1024, **({"RLIMIT_NPROC": 2 * self.threads} if release >= (5, 14) else {})}


def cgroup_parent() -> Path | None:
    """The folder in which we may make groups that have limits."""
    try:
        entries = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
        (group,) = [entry.removeprefix("0::") for entry in entries if entry.startswith("0::")]
        folder = (CGROUPS / group.lstrip("/")).parent if group != "/" else CGROUPS
        enabled = set((folder / "cgroup.subtree_control").read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return None
    # Moving a process needs this right in the group above both.
    return folder if enabled >= {"memory", "pids"} and os.access(folder / "cgroup.procs", os.W_OK) else None


@contextlib.contextmanager
def opened_cgroup(limits: Limits) -> Iterator[Path | None]:
    """The folder of a new group, or none where that is impossible; whatever is in it is killed at the end."""
    above = cgroup_parent()
    if above is None:
        yield None
        return
    folder = above / f"neuco-{secrets.token_hex(8)}"
    folder.mkdir()
    try:
        settings = {"memory.max": limits.memory, "memory.swap.max": 0, "pids.max": limits.threads}
        for name, value in settings.items():
            if (folder / name).exists():  # without swap there is no limit for it
                (folder / name).write_text(str(value), encoding="ascii")
        yield folder
    finally:
        until = time.monotonic() + ENDING
        while folder.exists() and time.monotonic() < until:  # killed processes leave a group a little later
            with contextlib.suppress(OSError):
                (folder / "cgroup.kill").write_text("1", encoding="ascii")
            try:
                folder.rmdir()
            except OSError:
                time.sleep(ROUND)


@dataclass
class Started:
    """A running process. ``folders`` are open: the results and all others that it can write, which are in memory.

    ``first`` is the first of its pid namespace: when it is gone, so are all.
    """

    process: psutil.Popen
    folders: list[int] = field(default_factory=list)
    first: list[psutil.Process] = field(default_factory=list)
    group: Path | None = None
    ended: bool = False


def watch(started: Started, limits: Limits) -> str:
    """Wait for the end. Returns the limit that was exceeded, if any; then everything has been ended."""
    deadline = time.monotonic() + limits.seconds
    while started.process.poll() is None:
        over = "timeout" if time.monotonic() > deadline else _over(started, limits)
        if over:
            end(started)
            return over
        time.sleep(ROUND)
    end(started)
    return _over_outside(started, limits)


def _over(started: Started, limits: Limits) -> str:
    """Which limit the processes are over, if any; one that ends while it is counted does not count."""
    try:
        family = [started.process, *started.process.children(recursive=True)]
    except psutil.Error:
        return ""
    threads = memory = 0
    for member in family:
        with contextlib.suppress(OSError):
            counts = dict(COUNTS.findall(Path(f"/proc/{member.pid}/status").read_bytes()))
            # Page tables, too. Pages of files are left out: those of files in memory are counted there, mapped or not.
            memory += 1024 * (int(counts.get(b"RssAnon", 0)) + int(counts.get(b"VmPTE", 0)))
            threads += int(counts[b"Threads"])
    memory += sum(_used(folder)[0] for folder in started.folders) + _in_sockets(started.first)
    if len(family) > limits.processes or threads > limits.threads:
        return "processes"
    return "memory" if memory > limits.memory else _over_outside(started, limits)


def _over_outside(started: Started, limits: Limits) -> str:
    """What the kernel had to enforce, and files in memory, also deleted ones, as their file system knows them."""
    if started.group is not None:
        for file, event, limit in EVENTS:
            lines = (started.group / file).read_text(encoding="ascii").splitlines()
            if any(line.split()[0] == event and line.split()[1] != "0" for line in lines):
                return limit
    if not started.folders:
        return ""
    written = _used(started.folders[0])[0]
    count = sum(_used(folder)[1] for folder in started.folders)
    return "files" if written > limits.written or count > limits.files else ""


def _used(folder: int) -> tuple[int, int]:
    """Bytes and files of the file system that a folder is on."""
    facts = os.statvfs(folder)
    return (facts.f_blocks - facts.f_bfree) * facts.f_frsize, facts.f_files - facts.f_ffree


def _in_sockets(members: Sequence[psutil.Process]) -> int:
    """What the sockets of a network namespace may hold at most: what they do hold cannot be seen from outside."""
    for member in members:
        with contextlib.suppress(OSError):
            used = int(Path(f"/proc/{member.pid}/net/sockstat").read_text(encoding="ascii").split()[2])
            return used * 2 * int(Path("/proc/sys/net/core/wmem_max").read_text(encoding="ascii"))
    return 0


def end(started: Started) -> None:
    """Kill the whole family: the group, and whoever left it. The first of a pid namespace takes all of it along."""
    deadline = time.monotonic() + ENDING
    while not started.ended:
        family = started.first
        with contextlib.suppress(psutil.Error):
            family = [*family, *started.process.children(recursive=True)]
        for member in family:
            with contextlib.suppress(psutil.Error):
                member.kill()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(started.process.pid, signal.SIGKILL)
        with contextlib.suppress(psutil.TimeoutExpired):
            started.process.wait(timeout=1)
            started.ended = not any(map(_alive, family))
        if time.monotonic() > deadline:
            raise SandboxError("processes of the sandbox do not end", got=f"alive after {ENDING} s")


def _alive(member: psutil.Process) -> bool:
    """A zombie is not: nobody may be there to collect it."""
    try:
        return bool(member.is_running() and member.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
