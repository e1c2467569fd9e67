"""Start a process, look at it twenty times a second, and end it with all its children when it is over a limit."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

import psutil

from ci.sandbox.limits import Limits, SandboxError, walls

if TYPE_CHECKING:
    from ci.sandbox.cgroup import Cgroup

ROUND = 0.05  # seconds between two looks
ENDING = 30  # seconds that the kernel may take to end processes that were killed


@dataclass
class Started:
    """A running process. ``folders`` are open: the results and, in the sandbox, other folders in memory."""

    process: subprocess.Popen[bytes]
    family: psutil.Process
    folders: list[int] = field(default_factory=list)
    in_memory: bool = False
    first: list[psutil.Process] = field(default_factory=list)  # of the namespace: when it is gone, so are all
    group: Cgroup | None = None
    ended: bool = False

    def take_folders(self, channel: socket.socket, count: int, seconds: float) -> None:
        """What ``enter`` sends; nothing comes if the sandbox could not be set up."""
        channel.settimeout(seconds)
        with contextlib.suppress(TimeoutError):
            _, self.folders, _, _ = socket.recv_fds(channel, 1, count)
        self.in_memory = True
        with contextlib.suppress(psutil.Error):
            self.first = self.family.children()

    def close(self) -> None:
        for folder in self.folders:
            os.close(folder)


def launch(
    command: Sequence[str],
    limits: Limits,
    log: IO[bytes],
    environment: Mapping[str, str],
    *,
    folder: Path | None = None,
    pass_fds: tuple[int, ...] = (),
    before: Sequence[Callable[[], None]] = (),
) -> Started:
    """``before`` is done by the new process itself, before it becomes the command."""

    def prepare() -> None:
        for name, most in walls(limits).items():
            resource.setrlimit(getattr(resource, name), (most, most))
        for step in before:
            step()

    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        env=dict(environment),
        cwd=folder,
        pass_fds=pass_fds,
        preexec_fn=prepare,
        start_new_session=True,
    )
    return Started(process, psutil.Process(process.pid))


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
    return (started.group.over() if started.group else "") or _over_in_files(started, limits)


def _over(started: Started, limits: Limits) -> str:
    """Which limit the processes are over, if any; one that ends while it is counted does not count."""
    try:
        family = [started.family, *started.family.children(recursive=True)]
    except psutil.Error:
        return ""
    threads = memory = 0
    for member in family:
        with contextlib.suppress(psutil.Error), member.oneshot():
            used = member.memory_info()
            # Pages of files are left out: those of files in memory are counted there, mapped or not.
            memory += used.rss - used.shared
            threads += member.num_threads()
    if started.in_memory:
        memory += sum(_used(folder)[0] for folder in started.folders) + _in_sockets(started.first)
    if len(family) > limits.processes or threads > limits.threads:
        return "processes"
    if memory > limits.memory:
        return "memory"
    return (started.group.over() if started.group else "") or _over_in_files(started, limits)


def _over_in_files(started: Started, limits: Limits) -> str:
    """Files in memory, also deleted ones: the file system knows."""
    if not (started.in_memory and started.folders):
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
            family = [*family, *started.family.children(recursive=True)]
        for member in family:
            with contextlib.suppress(psutil.Error):
                member.kill()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(started.process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.process.wait(timeout=1)
            started.ended = not any(_alive(member) for member in family)
        if time.monotonic() > deadline:
            raise SandboxError("processes of the sandbox do not end", got=f"alive after {ENDING} s")


def _alive(member: psutil.Process) -> bool:
    """A zombie is not: nobody may be there to collect it."""
    try:
        return bool(member.is_running() and member.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
