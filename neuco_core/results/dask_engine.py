"""The engine beyond one machine: dask.distributed.

A dask worker does not run cells itself. It keeps a worker process like those of the local engine and hands it the
steps, so that limits hold, a crash costs one cell, and the numbers are the same to the last bit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from neuco_core.errors import DependencyError, NeucoError
from neuco_core.results.process import WorkerProcess
from neuco_core.results.schedule import Schedule
from neuco_core.results.steps import Group, Limits, Result, Step, failure

TRIES = 3  # of a step whose dask worker dies
CONNECT_SECONDS = 30.0
LOOK_SECONDS = 1.0
GRACE_SECONDS = 120.0  # for everything but the step itself: start of a process, transport, scheduling
PLUGIN = "neuco"
GO_ON = "Run the same command again to go on"


class EngineError(NeucoError):
    """The cluster cannot be reached, or no longer does anything. What was saved stays."""


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        hint = "Install it with: pip install 'neuco[dask]'"
        raise DependencyError("the dask engine needs the package distributed", hint=hint) from None
    return distributed


class ProcessPool:
    """The worker processes of one dask worker: one for each step that it runs at the same time."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._idle: list[WorkerProcess] = []
        self._all: list[WorkerProcess] = []
        self._lock = threading.Lock()

    def run(self, step: Step) -> Result:
        with self._lock:
            # The one used last, or one that holds the method's embeddings already.
            fits = [item for item in self._idle if item.last == (step.method, step.dataset)]
            worker = (fits or self._idle or [WorkerProcess(self.limits)])[-1]
            if worker in self._idle:
                self._idle.remove(worker)
            else:
                self._all.append(worker)
        try:
            return worker.run(step)
        finally:
            with self._lock:
                self._idle.append(worker)

    def close(self) -> None:
        for worker in self._all:
            worker.kill()


def _plugin(limits: Limits) -> Any:
    """The pool as a plugin of dask's workers, made when distributed is known to be there."""
    from neuco_core.results.dask_plugin import PoolPlugin

    return PoolPlugin(limits)


def _run_on_worker(step: dict[str, str]) -> Result:
    """Called by dask on its worker."""
    pool: ProcessPool = _distributed().get_worker().plugins[PLUGIN].pool
    return pool.run(Step(**step))


@dataclass(frozen=True)
class _Sent:
    """A step that is under way on a dask worker; ``deaths`` counts the workers that died of it, or beside it."""

    step: Step
    address: str
    deaths: int = 0


class DaskEngine:
    """``address`` of a scheduler, or "" for a cluster of ``jobs`` processes on this machine."""

    name = "dask"

    def __init__(self, address: str = "", jobs: int = 1) -> None:
        _distributed()
        self.address, self.jobs = address, jobs

    def run(self, groups: Sequence[Group], limits: Limits) -> Iterator[tuple[Step, Result]]:
        if groups:
            with self._client() as client:
                client.register_plugin(_plugin(limits), name=PLUGIN)
                yield from _Run(client, limits).results(Schedule(groups))

    @contextmanager
    def _client(self) -> Iterator[Any]:
        distributed = _distributed()
        if self.address:
            try:
                client = distributed.Client(f"tcp://{self.address}", timeout=CONNECT_SECONDS)
            except OSError as error:
                raise EngineError(f"no dask scheduler: {error}", where=f"dask://{self.address}") from error
            with client:
                yield client
            return
        options = {"n_workers": self.jobs, "threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            yield client


class _Run:
    """The steps that are under way on a cluster, never more than it has threads.

    Each is bound to one dask worker, the one that has the embeddings. When that one dies the step is given to
    another; the second time, one whose worker does nothing else, so that no step is blamed for its neighbour.
    """

    def __init__(self, client: Any, limits: Limits) -> None:
        self.client, self.limits = client, limits
        self.sent: dict[Any, _Sent] = {}
        self.again: list[_Sent] = []
        self.last_sign = time.monotonic()

    def results(self, schedule: Schedule) -> Iterator[tuple[Step, Result]]:
        while True:
            workers = self._workers()
            self._fill(schedule, workers)
            if not self.sent and not self.again and not schedule.left:
                return
            for future, sent in self._ended(workers):
                result = self._result(future, sent)
                if result is not None:
                    yield from schedule.ended(sent.step, result)

    def _fill(self, schedule: Schedule, workers: Mapping[str, int]) -> None:
        """Give every idle thread of every dask worker a step."""
        for address, threads in workers.items():
            busy = sum(sent.address == address for sent in self.sent.values())
            for _ in range(threads - busy):
                sent = self._next(schedule, address)
                if sent is None:
                    break
                self.sent[self._submit(sent)] = sent

    def _next(self, schedule: Schedule, address: str) -> _Sent | None:
        for sent in self.again:
            if sent.deaths == 1 or not self.sent:
                self.again.remove(sent)
                return replace(sent, address=address)
        if any(sent.deaths > 1 for sent in self.sent.values()):
            return None
        step = schedule.next(address)
        return _Sent(step, address) if step else None

    def _submit(self, sent: _Sent) -> Any:
        return self.client.submit(_run_on_worker, sent.step.to_json(), pure=False, workers=[sent.address])

    def _ended(self, workers: Mapping[str, int]) -> list[tuple[Any, _Sent]]:
        """What ended, or lost its worker; an error if nothing has happened for longer than any step may take."""
        done: set[Any] = set()
        if self.sent:
            with suppress(TimeoutError):
                done = _distributed().wait(list(self.sent), LOOK_SECONDS, return_when="FIRST_COMPLETED").done
        else:
            time.sleep(LOOK_SECONDS)  # there are no workers at the moment
        found = [f for f, sent in self.sent.items() if f in done or sent.address not in workers]
        if found:
            self.last_sign = time.monotonic()
        else:
            self._check_life(workers)
        return [(future, self.sent.pop(future)) for future in found]

    def _check_life(self, workers: Mapping[str, int]) -> None:
        silent = time.monotonic() - self.last_sign
        longest = max([self.limits.seconds_of(sent.step) for sent in self.sent.values()], default=0.0)
        if silent > (longest + GRACE_SECONDS if workers else GRACE_SECONDS):
            what = f"nothing was heard for {silent:.0f} seconds" if workers else "no worker is left"
            raise EngineError(f"dask: {what}", hint=GO_ON)

    def _workers(self) -> dict[str, int]:
        """The addresses of the dask workers, and how many threads each has."""
        if self.client.status != "running":
            raise EngineError("dask: the scheduler is gone", hint=GO_ON)
        found = self.client.scheduler_info(n_workers=-1)["workers"]
        return {address: int(item["nthreads"]) for address, item in found.items()}

    def _result(self, future: Any, sent: _Sent) -> Result | None:
        """A result; or None if the step is to be run once more because its worker died."""
        distributed = _distributed()
        try:
            if future.status in ("finished", "error"):
                found: Result = future.result(timeout=CONNECT_SECONDS)
                return found
        except (distributed.KilledWorker, TimeoutError, CancelledError):
            pass  # the worker died with the result
        except Exception as error:
            return failure("crash", f"dask could not run it: {type(error).__name__}: {error}")
        finally:
            future.cancel()
        if sent.deaths + 1 >= TRIES:
            return failure("crash", f"given up: {TRIES} dask workers that ran it died")
        self.again.append(replace(sent, deaths=sent.deaths + 1))
        return None
