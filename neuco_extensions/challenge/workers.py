"""Processes that evaluate what waits, or have dask do it: started anew when they die, and gone when the server is.

The submission of a worker that was killed is taken by the next one at once (``journal``); the attempt counts, for the
file may be what killed it.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType

from neuco_core.errors import NeucoError
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.pool import work_on, workers

POLL = 0.5  # seconds between two looks for work, or for dead workers
LONGEST_PAUSE, GOOD_LIFE = 60.0, 60.0  # seconds: between two starts, and after which a worker is not said to be ill
PATIENCE = 10.0  # seconds that a worker gets to give its submission back
log = logging.getLogger("neuco.challenge")


class Worker:
    """One place for a worker, and the process that has it now. Others than ``local`` engines do ``jobs`` at a time."""

    def __init__(self, folder: Path, engine: str, jobs: int) -> None:
        self._folder, self._engine, self._jobs = folder, engine, jobs
        self._process: subprocess.Popen[bytes] | None = None
        self._begun, self._next, self._pause = 0.0, 0.0, 1.0

    def look(self, now: float) -> None:
        """Start the process if it is time."""
        if self._process is None:
            if now >= self._next:
                self._start(now)
        elif (code := self._process.poll()) is not None:
            self._process = None
            self._pause = 1.0 if now - self._begun > GOOD_LIFE else min(2 * self._pause, LONGEST_PAUSE)
            self._next = now + self._pause
            log.error("a worker ended with %d; the next one starts in %.0f s", code, self._pause)

    def _start(self, now: float) -> None:
        self._begun = now
        own = (str(self._folder), str(os.getpid()), self._engine, str(self._jobs))
        # In a group of its own: Ctrl-C is for the server, which then ends its workers.
        command = [sys.executable, "-m", __name__, *own]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def wait(self, seconds: float) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Workers:
    """Keeps a number of workers running, as a context. With dask one process of ours hands out to as many of its."""

    def __init__(self, folder: Path, count: int, engine: str = "local") -> None:
        processes = count if engine == "local" else min(count, 1)
        self._own = [Worker(folder, engine, count) for _ in range(processes)]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="workers", daemon=True)

    def _keep(self) -> None:
        while not self._stop.is_set():
            for worker in self._own:
                try:
                    worker.look(time.monotonic())
                except Exception:  # no memory for a process: it is tried again
                    log.exception("a worker could not be looked after")
            self._stop.wait(POLL)

    def __enter__(self) -> Workers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        for worker in self._own:
            worker.stop()
        end = time.monotonic() + PATIENCE
        for worker in self._own:
            worker.wait(end - time.monotonic())


def work(folder: Path, parent: int, engine: str, jobs: int) -> None:
    """Evaluate what comes until the server is gone. A fault of the hosts' ends the process: it is started anew."""
    with Host(folder) as host, ExitStack() as stack:
        pool = None if engine == "local" else stack.enter_context(workers(engine, jobs))
        while os.getppid() == parent:
            if pool is not None:
                for _ in work_on(host, pool, jobs):
                    pass
            elif host.work() is not None:
                continue
            time.sleep(POLL)


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)  # which gives the submission back


def _first_to_die() -> None:
    """Where memory is short, Linux ends a worker, which is started anew, and not the server."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def main(folder: str, parent: str, engine: str, jobs: str) -> None:
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _first_to_die()
    try:
        work(Path(folder), int(parent), engine, int(jobs))
    except (NeucoError, OSError) as error:
        sys.exit(f"neuco: a worker stopped: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
