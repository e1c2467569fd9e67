"""A worker process as its owner sees it: give it a step, look after it, and end it if it breaks its limits."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from multiprocessing.connection import wait
from pathlib import Path
from typing import TypeAlias

import msgspec
import psutil

from neuco_core.env import switched_on
from neuco_core.plugins.running import new_scratch
from neuco_core.runs.messages import (
    GIGABYTE,
    EmbeddingKey,
    Failed,
    Ready,
    Result,
    Step,
    StepLimits,
    StepShare,
    Warned,
    decode_report,
    embed_of,
    encode,
)

START_SECONDS = 300.0  # a cold start compiles; a slow disk needs its time to import
LOOK_SECONDS = 0.05
# One thread of numerical libraries per worker: more would only stand in each other's way.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
log = logging.getLogger(__name__)
StepProgress: TypeAlias = Callable[[Step, float], None]  # called with the share of a step that is done


class WorkerProcess:
    """One worker at a time; a new one is started when the last one died."""

    def __init__(self, limits: StepLimits, progress: StepProgress | None = None) -> None:
        self.limits, self.progress = limits, progress
        self.step: Step | None = None
        self.holds: EmbeddingKey | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._commands = self._reports = -1
        self._buffer = b""
        self._scratch = ""
        self._ready = False
        self._deadline = 0.0
        self._stopped = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def fileno(self) -> int:
        return self._reports

    def give(self, step: Step) -> None:
        """Begin a step; ``poll`` tells when it ended."""
        if self._process is not None and self._process.poll() is not None:
            self.kill()  # it died between two steps, which must not be blamed on the next
        if self._process is None:
            self._start()
        embed = embed_of(step)
        self.step, self.holds = step, embed.key if embed else None
        self._deadline = time.monotonic() + (self.limits.seconds_of(step) if self._ready else START_SECONDS)
        with contextlib.suppress(BrokenPipeError):  # it died while idle; poll will notice
            os.write(self._commands, encode(step) + b"\n")

    def poll(self) -> Result | None:
        """The result of the step, if it ended; a worker that died or broke a limit is put away."""
        result: Result | None = None
        ended = False
        try:
            result, ended = self._receive()
        except msgspec.MsgspecError as error:
            result = Failed("crash", f"its process sent what cannot be read: {error}")
            self.kill()
        if result is None and ended:
            result = self._post_mortem()
        elif result is None:
            result = Failed("crash", "it was stopped with its run") if self._stopped else self._over_limit()
            if result is not None:
                self.kill()
        if result is not None:
            self.step = None
        return result

    def run(self, step: Step) -> Result:
        """A step from its beginning to its end."""
        self.give(step)
        while True:
            wait([self.fileno()], LOOK_SECONDS)
            result = self.poll()
            if result is not None:
                return result

    def _start(self) -> None:
        self._scratch = new_scratch()
        child_reads, self._commands = os.pipe()
        self._reports, child_writes = os.pipe()
        os.set_blocking(self._reports, False)
        # What this process can import, the worker can.
        path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path if not entry.endswith(".zip"))
        words = ["-P", "-m", "neuco_core.runs.worker", str(child_reads), str(child_writes), self._scratch]
        try:
            self._process = subprocess.Popen(
                [sys.executable, *words],
                pass_fds=(child_reads, child_writes),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=None if switched_on("NEUCO_DEBUG") else subprocess.DEVNULL,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": path},
                start_new_session=True,  # an interrupt from the keyboard goes to the owner alone
            )
        finally:
            os.close(child_reads)
            os.close(child_writes)
        self._buffer, self._ready = b"", False

    def _receive(self) -> tuple[Result | None, bool]:
        """A whole result, if there is one, and whether the worker's end of the pipe is closed."""
        ended = False
        while not ended:
            try:
                data = os.read(self._reports, 1 << 16)
            except BlockingIOError:
                break
            ended = not data
            self._buffer += data
        while b"\n" in self._buffer:
            line, _, self._buffer = self._buffer.partition(b"\n")
            report = decode_report(line)
            if isinstance(report, Ready):
                self._ready = True
                if self.step:
                    self._deadline = time.monotonic() + self.limits.seconds_of(self.step)
            elif isinstance(report, StepShare):
                if self.progress and self.step:
                    self.progress(self.step, report.share)
            elif isinstance(report, Warned):
                log.warning("%s", report.text)
            else:
                return report, ended
        return None, ended

    def _post_mortem(self) -> Result:
        process = self._process
        with contextlib.suppress(subprocess.TimeoutExpired):  # it closed its pipe and lives on: no use either
            if process:
                process.wait(5)
        code = process.returncode if process else None
        self.kill()
        if code is not None and code < 0:
            return Failed("crash", f"its process was ended by {signal.Signals(-code).name}")
        return Failed("crash", f"its process ended with exit code {code}")

    def _over_limit(self) -> Result | None:
        if self.step is None:
            return None
        limit = self.limits.memory
        if limit is not None and self.pid is not None and holds_more(self.pid, limit):
            return Failed("memory", f"more than {limit / GIGABYTE:g} GB of memory")
        if time.monotonic() > self._deadline:
            if not self._ready:
                return Failed("timeout", "its process did not start in time")
            return Failed("timeout", f"not done after {self.limits.seconds_of(self.step):g} seconds")
        return None

    def stop(self) -> None:
        """End the step from another thread; the one that polls puts the worker away, for its pipes may be in use."""
        self._stopped = True
        process = self._process
        if process is not None and process.returncode is None:
            _kill_group(process.pid)

    def kill(self) -> None:
        """End the worker and whatever it started, now."""
        if self._process is None:
            return
        pid = self._process.pid
        members = family(pid)
        # The number of a worker that was waited for is given anew only when nobody of its group or session is left.
        reused = self._process.returncode is not None and any(process.pid == pid for process in members)
        if not reused:
            _kill_group(pid)
            for process in members:  # some may have left the group
                with contextlib.suppress(psutil.Error):
                    process.kill()
        self._process.wait()
        shutil.rmtree(self._scratch, ignore_errors=True)
        os.close(self._commands)
        os.close(self._reports)
        self._process, self._commands, self._reports = None, -1, -1


def _kill_group(pid: int) -> None:
    # Some systems refuse to signal a group of which only a process is left that nobody has waited for.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def family(pid: int) -> list[psutil.Process]:
    """A worker that leads a session, all others of that session, and what they started outside of it."""
    members: dict[int, psutil.Process] = {}
    others = list(psutil.process_iter(["ppid"]))
    for process in others:
        with contextlib.suppress(OSError):  # it ended meanwhile
            if process.pid == pid or os.getsid(process.pid) == pid:
                members[process.pid] = process
    count = 0
    while count != len(members):
        count = len(members)
        members |= {process.pid: process for process in others if process.info["ppid"] in members}
    return list(members.values())


@lru_cache(maxsize=64)
def _family_of(pid: int, second: int) -> list[psutil.Process]:
    """One look per second: on a machine with thousands of processes it takes tens of milliseconds."""
    return family(pid)


def holds_more(pid: int, limit: int) -> bool:
    """Whether a worker and all that it started hold more than so many bytes."""
    try:
        if psutil.Process(pid).memory_info().rss > limit:
            return True
    except psutil.Error:
        return False
    members = _family_of(pid, int(time.monotonic()))
    if len(members) < 2 or sum(_memory(process) for process in members) <= limit:
        return False
    # Processes that were forked share pages, which must count once: this is exact, and too slow to do every time.
    return sum(_memory(process, shared_once=True) for process in members) > limit


def _memory(process: psutil.Process, *, shared_once: bool = False) -> int:
    """Bytes of a process; with ``shared_once`` its part of what it shares, where the system tells that."""
    try:
        if shared_once and hasattr(process.memory_full_info(), "pss"):
            return int(process.memory_full_info().pss)
        return int(process.memory_info().rss)
    except psutil.AccessDenied:
        return int(process.memory_info().rss)
    except psutil.Error:  # it ended meanwhile
        return 0
