"""The part of the dask engine that lives on dask's workers. Imported only where distributed is installed."""

from __future__ import annotations

from typing import Any

from distributed import WorkerPlugin

from neuco_core.results.steps import Limits


class PoolPlugin(WorkerPlugin):
    """Gives a dask worker its pool of processes, and ends them with it."""

    idempotent = False

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    def setup(self, worker: Any) -> None:
        from neuco_core.results.dask_engine import ProcessPool

        self.pool = ProcessPool(self.limits)

    def teardown(self, worker: Any) -> None:
        self.pool.close()
