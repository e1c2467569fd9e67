"""A worker process as its owner sees it: give it a step, look after it, and end it if it breaks its limits."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from multiprocessing.connection import wait
from pathlib import Path

from neuco_core.env import switched_on
from neuco_core.plugins.source import new_scratch
from neuco_core.runs.memory import family, over, processes
from neuco_core.runs.steps import GIGABYTE, Result, Step, StepLimits, StepProgress, failure

START_SECONDS = 300.0  # a cold start compiles; a slow disk needs its time to import
LOOK_SECONDS = 0.05
# One thread of numerical libraries per worker: more would only stand in each other's way.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
log = logging.getLogger(__name__)
STOPPED = failure("crash", "it was stopped with its run")


class WorkerProcess:
    """One worker at a time; a new one is started when the last one died."""

    def __init__(self, limits: StepLimits, progress: StepProgress | None = None) -> None:
        self.limits, self.progress = limits, progress
        self.step: Step | None = None
        self.last: tuple[str, str] | None = None  # whose embeddings it holds
        self._process: subprocess.Popen[bytes] | None = None
        self._commands = self._results = -1
        self._buffer = b""
        self._scratch = ""
        self._ready = False
        self._deadline = 0.0
        self._stopped = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def fileno(self) -> int:
        return self._results

    def give(self, step: Step) -> None:
        """Begin a step; ``poll`` tells when it ended."""
        if self._process is not None and self._process.poll() is not None:
            self.kill()  # it died between two steps, which must not be blamed on the next
        if self._process is None:
            self._start()
        self.step, self.last = step, (step.method, step.dataset)
        self._deadline = time.monotonic() + (self.limits.seconds_of(step) if self._ready else START_SECONDS)
        with contextlib.suppress(BrokenPipeError):  # it died while idle; poll will notice
            os.write(self._commands, (json.dumps(step.to_json()) + "\n").encode())

    def poll(self) -> Result | None:
        """The result of the step, if it ended; a worker that died or broke a limit is put away."""
        result, ended = self._receive()
        if result is None and ended:
            result = self._post_mortem()
        if result is None:
            result = STOPPED if self._stopped else self._over_limit()
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
        errors = None if switched_on("NEUCO_DEBUG") else subprocess.DEVNULL
        self._scratch = new_scratch()
        child_reads, self._commands = os.pipe()
        self._results, child_writes = os.pipe()
        os.set_blocking(self._results, False)
        try:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "neuco_core.runs.worker",
                    str(child_reads),
                    str(child_writes),
                    self._scratch,
                ],
                pass_fds=(child_reads, child_writes),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": _path()},
                start_new_session=True,  # an interrupt from the keyboard goes to the owner alone
            )
        finally:
            os.close(child_reads)
            os.close(child_writes)
        self._buffer, self._ready = b"", False

    def _receive(self) -> tuple[Result | None, bool]:
        """A whole result, if there is one, and whether the worker's end of the pipe is closed."""
        ended = False
        while True:
            try:
                data = os.read(self._results, 1 << 16)
            except BlockingIOError:
                break
            if not data:
                ended = True
                break
            self._buffer += data
        while b"\n" in self._buffer:
            line, _, self._buffer = self._buffer.partition(b"\n")
            result: Result = json.loads(line)
            if result["status"] == "progress":
                if self.progress and self.step:
                    self.progress(self.step, result["share"])
            elif result["status"] == "warning":
                log.warning("%s", result["text"])
            elif result["status"] != "ready":
                return result, ended
            else:
                self._ready = True
                if self.step:
                    self._deadline = time.monotonic() + self.limits.seconds_of(self.step)
        return None, ended

    def _post_mortem(self) -> Result:
        process = self._process
        with contextlib.suppress(subprocess.TimeoutExpired):  # it closed its pipe and lives on: no use either
            if process:
                process.wait(5)
        code = process.returncode if process else None
        self.kill()
        if code is not None and code < 0:
            return failure("crash", f"its process was ended by {signal.Signals(-code).name}")
        return failure("crash", f"its process ended with exit code {code}")

    def _over_limit(self) -> Result | None:
        if self.step is None:
            return None
        limit = self.limits.memory
        if limit is not None and self.pid is not None and over(self.pid, limit):
            return failure("memory", f"more than {limit / GIGABYTE:g} GB of memory")
        if time.monotonic() > self._deadline:
            if not self._ready:
                return failure("timeout", "its process did not start in time")
            return failure("timeout", f"not done after {self.limits.seconds_of(self.step):g} seconds")
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
        started = family(pid, processes())
        # The number of a worker that was waited for is given anew only when nobody of its group or session is left.
        reused = self._process.returncode is not None and any(process.pid == pid for process in started)
        if not reused:
            _kill_group(pid)
            for process in started:  # some may have left the group
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._scratch, ignore_errors=True)
        os.close(self._commands)
        os.close(self._results)
        self._process, self._commands, self._results = None, -1, -1


def _kill_group(pid: int) -> None:
    # Some systems refuse to signal a group of which only a process is left that nobody has waited for.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _path() -> str:
    """What this process can import, the worker can."""
    return os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path if not entry.endswith(".zip"))
