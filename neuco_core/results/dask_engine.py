"""The engine beyond one machine: dask.distributed.

A dask worker does not run cells itself. It keeps a worker process like those of the local engine and hands it the
steps, so that limits hold, a crash costs one cell, and the numbers are the same to the last bit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from neuco_core.errors import DependencyError, NeucoError
from neuco_core.results.process import WorkerProcess
from neuco_core.results.steps import Group, Limits, Result, Step, failure

TRIES = 3  # of a step whose dask worker dies
CONNECT_SECONDS = 30.0
LOOK_SECONDS = 1.0
GRACE_SECONDS = 120.0  # for everything but the step itself: start of a process, transport, scheduling
PLUGIN = "neuco"


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


def _run_on_worker(step: dict[str, str]) -> tuple[Result, str]:
    """Called by dask on its worker: the result, and which worker it was."""
    worker = _distributed().get_worker()
    return worker.plugins[PLUGIN].pool.run(Step(**step)), worker.address


@dataclass
class _Sent:
    step: Step
    group: Group
    tries: int = 1


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
                yield from _Run(client, limits).results(groups)

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
    """The steps that are under way on a cluster."""

    def __init__(self, client: Any, limits: Limits) -> None:
        self.client, self.limits = client, limits
        self.sent: dict[Any, _Sent] = {}
        self.last_sign = time.monotonic()

    def results(self, groups: Sequence[Group]) -> Iterator[tuple[Step, Result]]:
        for group in groups:
            self._send(_Sent(Step(group.method, group.dataset), group))
        while self.sent:
            for future in self._done():
                sent = self.sent.pop(future)
                result, address = self._result(future, sent)
                if result is not None:
                    yield from self._take(sent, result, address)

    def _send(self, sent: _Sent, address: str = "") -> None:
        # Cells go to the worker that has made the embeddings, and to another if that one is gone.
        place = {"workers": [address], "allow_other_workers": True} if address else {}
        step = sent.step.to_json()
        self.sent[self.client.submit(_run_on_worker, step, pure=False, retries=0, **place)] = sent

    def _done(self) -> list[Any]:
        """The futures that ended; an error if nothing has happened for longer than any step may take."""
        distributed = _distributed()
        try:
            done = distributed.wait(list(self.sent), timeout=LOOK_SECONDS, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            done = set()
        if done:
            self.last_sign = time.monotonic()
            return list(done)
        silent = time.monotonic() - self.last_sign
        workers = self._workers()
        longest = max(self.limits.seconds_of(sent.step) for sent in self.sent.values())
        if silent > (longest + GRACE_SECONDS if workers else GRACE_SECONDS):
            what = f"nothing was heard for {silent:.0f} seconds" if workers else "no worker is left"
            raise EngineError(
                f"dask: {what}; {len(self.sent)} steps are open", hint="Run the same command again to go on"
            )
        return []

    def _workers(self) -> int:
        if self.client.status != "running":
            raise EngineError("dask: the scheduler is gone", hint="Run the same command again to go on")
        return len(self.client.scheduler_info(n_workers=-1)["workers"])

    def _result(self, future: Any, sent: _Sent) -> tuple[Result | None, str]:
        """A result; or None if the step was sent once more because its worker died."""
        if future.status == "finished":
            result: tuple[Result, str] = future.result(timeout=CONNECT_SECONDS)
            return result
        if future.status == "error":
            error = future.exception(timeout=CONNECT_SECONDS)
            if not isinstance(error, _distributed().KilledWorker):
                return failure("crash", f"dask could not run it: {type(error).__name__}: {error}"), ""
        if sent.tries < TRIES and future.status != "error":  # lost or cancelled: dask has forgotten it
            self._send(_Sent(sent.step, sent.group, sent.tries + 1))
            return None, ""
        return failure("crash", "given up: the dask workers that ran it died, one after the other"), ""

    def _take(self, sent: _Sent, result: Result, address: str) -> Iterator[tuple[Step, Result]]:
        if sent.step.task:
            yield sent.step, result
            return
        for step in sent.group.steps:
            if result["status"] == "ok":
                self._send(_Sent(step, sent.group), address)
            else:  # without embeddings there is nothing to score
                yield step, result
