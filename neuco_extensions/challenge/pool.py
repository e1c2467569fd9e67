"""Evaluation by several processes, here or on a dask cluster. One process, the hosts', keeps the journal to itself.

SQLite's WAL mode is for one machine. Workers elsewhere only read rules, labels and files, in a folder that they share,
and send back what they found.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from multiprocessing import get_context
from typing import Any

from neuco_core.env import how_to_install
from neuco_core.errors import DependencyError, NeucoError
from neuco_extensions.challenge.evaluate import Evaluation, PhaseError
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import Submission


@lru_cache(maxsize=1)
def _host(folder: str) -> Host:
    """The challenge as a worker sees it; labels are read once. It never opens the journal."""
    return Host(folder)


def evaluate_there(folder: str, own: Submission) -> Evaluation:
    """What a worker does."""
    try:
        host = _host(folder)
    except NeucoError as error:
        raise PhaseError(str(error)) from error  # the hosts' fault, whatever it is
    return host.evaluate_submission(own)


@contextmanager
def workers(engine: str, jobs: int) -> Iterator[Executor]:
    """Processes of this machine (``local``), or dask's: ``dask`` starts some here, ``dask://host:port`` has its own."""
    if engine == "local":
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            yield pool
        return
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        hint = f"Install it with: {how_to_install('dask')}"
        raise DependencyError("the dask engine needs the package distributed", hint=hint) from None
    address = engine.partition("://")[2]
    options: dict[str, Any] = {"n_workers": jobs, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.Client(address) if address else distributed.LocalCluster(**options).get_client() as client:
        yield client.get_executor(pure=False, retries=0)
        if not address:
            client.cluster.close()


def work_on(host: Host, pool: Executor, jobs: int) -> Iterator[Submission]:
    """Evaluate all that waits, ``jobs`` at a time, and yield each submission with its outcome."""
    under_way: dict[Future[Evaluation], Submission] = {}
    most = host.challenge.limits.attempts
    try:
        while True:
            while len(under_way) < jobs and (leased := host.journal.lease(most)):
                under_way[pool.submit(evaluate_there, host.challenge.folder, leased)] = leased
            if not under_way:
                return
            # Not without end: what came meanwhile may have a place.
            for future in wait(under_way, 1.0, return_when=FIRST_COMPLETED).done:
                leased = under_way.pop(future)
                yield host.settle(leased, _found(host, future, leased))
    finally:
        for leased in under_way.values():
            host.journal.release(leased)


def _found(host: Host, future: Future[Evaluation], leased: Submission) -> Evaluation:
    try:
        return future.result()
    except (PhaseError, OSError):
        host.journal.release(leased)
        raise
    except Exception:
        # Whether the file killed the worker or something else did, nobody knows.
        host.journal.abandon(leased)
        raise
