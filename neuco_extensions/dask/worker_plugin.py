"""The part of the dask engine that lives on dask's workers. Imported only where distributed is installed."""

from __future__ import annotations

import threading
from typing import Any

from distributed import WorkerPlugin, get_worker

from neuco_core.runs.engine import StepLimits, WorkerProcess
from neuco_core.runs.messages import Embed, EncodeShard, Step, decode_step, encode

# A run that was killed cannot say that its processes are no longer wanted. One that lives starts new ones if need be.
IDLE_SECONDS = 300.0


def run_step(plugin: str, step: bytes) -> bytes:
    """Called by dask on its worker. Runs that share a scheduler have a plugin each, and so processes of their own."""
    return get_worker().plugins[plugin].run(decode_step(step))  # type: ignore[attr-defined, no-any-return]


def embed_of(step: Step | None) -> Embed | None:
    """The embeddings that a step needs, and that its worker keeps for the next one."""
    if isinstance(step, Embed):
        return step
    return None if step is None or isinstance(step, EncodeShard) else step.embed


class PoolPlugin(WorkerPlugin):
    """The worker processes of one run on a dask worker: one for each step that it runs at the same time."""

    idempotent = False

    def __init__(self, limits: StepLimits) -> None:
        self.limits = limits

    def setup(self, worker: Any) -> None:
        self._idle: list[WorkerProcess] = []
        self._busy: list[WorkerProcess] = []
        self._closed = False
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def run(self, step: Step) -> bytes:
        with self._lock:
            # The one used last, or one that holds the method's embeddings already.
            embed = embed_of(step)
            fits = [item for item in self._idle if embed and embed_of(item.last) == embed]
            worker = (fits or self._idle or [WorkerProcess(self.limits)])[-1]
            if worker in self._idle:
                self._idle.remove(worker)
            if self._closed:
                worker.stop()
            self._busy.append(worker)
        try:
            return encode(worker.run(step))
        finally:
            with self._lock:
                self._busy.remove(worker)
                if self._closed:
                    worker.kill()
                else:
                    self._idle.append(worker)
                    if self._timer:
                        self._timer.cancel()
                    self._timer = threading.Timer(IDLE_SECONDS, self._end_idle)
                    self._timer.daemon = True
                    self._timer.start()

    def _end_idle(self) -> None:
        with self._lock:
            for worker in self._idle:
                worker.kill()

    def teardown(self, worker: Any) -> None:
        """End all processes. Those at work are stopped only: the threads that wait for them put them away."""
        with self._lock:
            self._closed = True
            for busy in self._busy:
                busy.stop()
        self._end_idle()
