"""Engines run steps on workers: ``local`` in processes of this machine, or a plugin's, such as ``name://address``.

A ``WorkerProcess`` is a worker as its owner sees it: given a step, looked after, and ended if it breaks its limits.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import msgspec
import psutil
from msgspec.structs import replace

from neuco_core.env import switched_on
from neuco_core.errors import NeucoError, UsageError
from neuco_core.plugins.catalog import catalog
from neuco_core.plugins.running import new_scratch
from neuco_core.runs.messages import (
    Embed,
    Embedded,
    EncodeShard,
    Failed,
    Group,
    Ready,
    Result,
    Step,
    StepShare,
    Warned,
    decode_report,
    encode,
)
from neuco_core.specs import Engine, resolve

START_SECONDS = 300.0  # a cold start compiles; a slow disk needs its time to import
LOOK_SECONDS = 0.05
MEMORY_SHARE = 0.8  # of the machine, for all workers together, unless a limit is given
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
# One thread of numerical libraries per worker: more would only stand in each other's way.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
log = logging.getLogger(__name__)
StepProgress: TypeAlias = Callable[[Step, float], None]  # called with the share of a step that is done


class EngineError(NeucoError):
    """The engine cannot be reached, or no longer does anything. What was saved stays."""


@dataclass(frozen=True)
class StepLimits:
    """What a step may use: seconds of a score, seconds of making embeddings, bytes of memory (None: no limit)."""

    seconds: float = 3600.0
    embed_seconds: float = 24 * 3600.0
    memory: int | None = None

    def seconds_of(self, step: Step) -> float:
        return self.embed_seconds if isinstance(step, Embed | EncodeShard) else self.seconds


def default_limits(
    jobs: int, seconds: float | None = None, memory: int | None = None, embed_seconds: float | None = None
) -> StepLimits:
    """The limits that were given; ``seconds`` holds for every step, unless embeddings have a limit of their own.

    Where no memory is given, each worker has its share of the machine, or of its control group if that has less.
    """
    if memory is None:
        whole = psutil.virtual_memory().total
        with contextlib.suppress(OSError, ValueError):  # no such group, or "max"
            whole = min(whole, int(CGROUP_LIMIT.read_text(encoding="ascii")))
        memory = int(whole * MEMORY_SHARE / max(jobs, 1))
    return StepLimits(seconds or StepLimits.seconds, embed_seconds or seconds or StepLimits.embed_seconds, memory)


class EngineLike(Protocol):
    """Runs steps and yields each with its result when it ends, in any order.

    ``progress`` may be set before a run; an engine that knows nothing of the steps under way never calls it.
    """

    name: str
    progress: StepProgress | None

    def run(self, groups: Iterable[Group | None], limits: StepLimits) -> Iterator[tuple[Step, Result]]: ...


def open_engine(name: str, jobs: int) -> EngineLike:
    """The engine with ``jobs`` workers; one that is elsewhere, as ``name://address``, has as many as it has."""
    engine_id, _, address = name.partition("://")
    factory = resolve(catalog().load(Engine, engine_id).factory)
    engine: EngineLike = factory(address if "://" in name else None, jobs)
    return engine


@dataclass(eq=False)
class _OpenGroup:
    """A group with what is left of it. ``ready``: it needs no embeddings, or they were made, so others may load them.

    ``encoding`` is what making them took; every score of theirs tells it, whichever worker computed it.
    """

    left: deque[Step]
    ready: bool
    encoding: Mapping[str, Any] | None = None


_END = object()


class Schedule:
    """Which worker does what next; the same for all engines. A worker stays with one group, whose embeddings it has."""

    def __init__(self, groups: Iterable[Group | None]) -> None:
        self._groups = iter(groups)
        self._open: list[_OpenGroup] = []
        self._at: dict[Hashable, _OpenGroup] = {}
        # By the step's identity: arguments of a call may be a dict, which cannot be a key.
        self._group_of: dict[int, tuple[Step, _OpenGroup]] = {}
        self.exhausted = False  # whether all groups were begun; then nothing new comes but of those that are open

    def next(self, worker: Hashable) -> Step | None:
        """A worker's next step: of its own group, else of a new one, else of the one with the most left to do."""
        group = self._at.get(worker)
        if group is None or not (group.ready and group.left):
            new = next(self._groups, _END)
            self.exhausted = new is _END
            if isinstance(new, Group):
                group = _OpenGroup(deque(new.steps), ready=new.embed is None)
                self._open.append(group)
                if new.embed is not None:
                    self._at[worker] = group
                    self._group_of[id(new.embed)] = new.embed, group
                    return new.embed
            else:
                group = max((item for item in self._open if item.ready), key=lambda item: len(item.left), default=None)
        if group is None or not group.left:
            return None
        self._at[worker] = group
        step = group.left.popleft()
        self._group_of[id(step)] = step, group
        return step

    @property
    def left(self) -> bool:
        """Whether there is, or may be, a step to hand out without waiting for one to end."""
        return not self.exhausted or any(group.ready and group.left for group in self._open)

    def ended(self, step: Step, result: Result) -> Iterator[tuple[Step, Result]]:
        """The steps that are done because this one is."""
        _, group = self._group_of.pop(id(step))
        if group.ready:
            if group.encoding:
                result = replace(result, provenance={**result.provenance, "encoding": group.encoding})
            yield step, result
        elif isinstance(result, Embedded):
            group.ready, group.encoding = True, result.encoding
        else:  # without embeddings there is nothing to score
            while group.left:
                yield group.left.popleft(), result
        if not group.left and group in self._open:
            self._open.remove(group)


class WorkerProcess:
    """One worker at a time; a new one is started when the last one died."""

    def __init__(self, limits: StepLimits, progress: StepProgress | None = None) -> None:
        self.limits, self.progress = limits, progress
        self.step: Step | None = None
        self.last: Step | None = None  # the step that it does, or did: its embeddings are there for the next one
        self._process: subprocess.Popen[bytes] | None = None
        self._commands = self.reports = -1
        self._buffer, self._scratch = b"", ""
        self._ready = self._stopped = False
        self._deadline = 0.0

    def give(self, step: Step) -> None:
        """Begin a step; ``poll`` tells when it ended."""
        if self._process is not None and self._process.poll() is not None:
            self.kill()  # it died between two steps, which must not be blamed on the next
        if self._process is None:
            self._scratch = new_scratch()
            child_reads, self._commands = os.pipe()
            self.reports, child_writes = os.pipe()
            os.set_blocking(self.reports, False)
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
        self.step = self.last = step
        self._deadline = time.monotonic() + (self.limits.seconds_of(step) if self._ready else START_SECONDS)
        with contextlib.suppress(BrokenPipeError):  # it died while idle; poll will notice
            os.write(self._commands, encode(step) + b"\n")

    def poll(self) -> Result | None:
        """The result of the step, if it ended; a worker that died or broke a limit is put away."""
        result, ended = self._receive()
        process, step, memory = self._process, self.step, self.limits.memory
        if result is None and process is not None and step is not None:
            if ended:
                with contextlib.suppress(subprocess.TimeoutExpired):  # it closed its pipe and lives on: no use either
                    process.wait(5)
                code = process.returncode
                how = f"ended with exit code {code}"
                if code is not None and code < 0:
                    how = f"was ended by {signal.Signals(-code).name}"
                result = Failed("crash", f"its process {how}")
            elif self._stopped:
                result = Failed("crash", "it was stopped with its run")
            elif memory is not None and holds_more(process.pid, memory):
                result = Failed("memory", f"more than {memory / 10**9:g} GB of memory")
            elif time.monotonic() > self._deadline:
                late = f"not done after {self.limits.seconds_of(step):g} seconds"
                result = Failed("timeout", late if self._ready else "its process did not start in time")
            if result is not None:
                self.kill()
        if result is not None:
            self.step = None
        return result

    def run(self, step: Step) -> Result:
        """A step from its beginning to its end."""
        self.give(step)
        result = None
        while result is None:
            wait([self.reports], LOOK_SECONDS)
            result = self.poll()
        return result

    def _receive(self) -> tuple[Result | None, bool]:
        """A whole result, if there is one, and whether the worker's end of the pipe is closed."""
        ended = False
        while not ended:
            try:
                data = os.read(self.reports, 1 << 16)
            except BlockingIOError:
                break
            ended = not data
            self._buffer += data
        while b"\n" in self._buffer:
            line, _, self._buffer = self._buffer.partition(b"\n")
            try:
                report = decode_report(line)
            except msgspec.MsgspecError as error:
                self.kill()
                return Failed("crash", f"its process sent what cannot be read: {error}"), ended
            if isinstance(report, Ready):
                self._ready = True
                if self.step:
                    self._deadline = time.monotonic() + self.limits.seconds_of(self.step)
            elif isinstance(report, Warned):
                log.warning("%s", report.text)
            elif not isinstance(report, StepShare):
                return report, ended
            elif self.progress and self.step:
                self.progress(self.step, report.share)
        return None, ended

    def stop(self) -> None:
        """End the step from another thread; the one that polls puts the worker away, for its pipes may be in use."""
        self._stopped = True
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """End the worker and whatever it started, now."""
        if self._process is None:
            return
        pid = self._process.pid
        members = family(pid)
        # The number of a worker that was waited for is given anew only when nobody of its group or session is left.
        reused = self._process.returncode is not None and any(process.pid == pid for process in members)
        if not reused:
            # Some systems refuse to signal a group of which only a process is left that nobody has waited for.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            for process in members:  # some may have left the group
                with contextlib.suppress(psutil.Error):
                    process.kill()
        self._process.wait()
        shutil.rmtree(self._scratch, ignore_errors=True)
        os.close(self._commands)
        os.close(self.reports)
        self._process, self._commands, self.reports = None, -1, -1


class LocalEngine:
    """``jobs`` worker processes on this machine, each replaced when it dies: a cell that crashes costs only itself."""

    name = "local"

    def __init__(self, address: str | None = None, jobs: int = 1) -> None:
        if address is not None:
            raise UsageError("the local engine has no address", expected="--engine local", got=f"local://{address}")
        self.jobs = jobs
        self.progress: StepProgress | None = None

    def run(self, groups: Iterable[Group | None], limits: StepLimits) -> Iterator[tuple[Step, Result]]:
        schedule = Schedule(groups)
        workers = [WorkerProcess(limits, self.progress) for _ in range(self.jobs)]  # each starts with its first step
        try:
            while True:
                for number, worker in enumerate(workers):
                    step = schedule.next(number) if worker.step is None else None
                    if step is not None:
                        worker.give(step)
                busy = [worker for worker in workers if worker.step is not None]
                if not busy and not schedule.left:
                    return
                wait([worker.reports for worker in busy], LOOK_SECONDS)
                for worker in busy:
                    step, result = worker.step, worker.poll()
                    if step is not None and result is not None:
                        yield from schedule.ended(step, result)
        finally:
            for worker in workers:
                worker.kill()


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


# One look per second: on a machine with thousands of processes it takes tens of milliseconds.
_family_of = lru_cache(maxsize=64)(lambda pid, second: family(pid))


def holds_more(pid: int, limit: int) -> bool:
    """Whether a worker and all that it started hold more than so many bytes."""
    try:
        if psutil.Process(pid).memory_info().rss > limit:
            return True
    except psutil.Error:
        return False
    members = _family_of(pid, int(time.monotonic()))
    if len(members) < 2 or sum(map(_memory, members)) <= limit:
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
