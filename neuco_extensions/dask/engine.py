"""The engine beyond one machine: dask.distributed.

A dask worker does not run cells itself. It keeps a worker process like those of the local engine and hands it the
steps, so that limits hold, a crash costs one cell, and the numbers are the same to the last bit.
"""

from __future__ import annotations

import logging
import secrets
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import resource_tracker
from typing import Any
from urllib.parse import urlsplit

from neuco_core.env import how_to_install, switched_on
from neuco_core.errors import DependencyError, UsageError
from neuco_core.runs.engine import START_SECONDS, EngineError, Schedule, StepLimits, StepProgress
from neuco_core.runs.messages import Failed, Group, Result, Step, decode_result, encode

TRIES = 3  # of a step whose dask worker dies
CONNECT_SECONDS = 10.0
LOOK_SECONDS = 1.0
GRACE_SECONDS = 120.0  # for everything but the step itself and the start of its process: transport, scheduling
log = logging.getLogger(__name__)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        hint = f"Install it with: {how_to_install('dask')}"
        raise DependencyError("the dask engine needs the package distributed", hint=hint) from None
    return distributed


def _where(address: str) -> str:
    return f"dask://{address}" if address else "dask"


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
        self.progress: StepProgress | None = None  # steps run elsewhere; only their ends are heard of

    def run(self, groups: Iterable[Group | None], limits: StepLimits) -> Iterator[tuple[Step, Result]]:
        if isinstance(groups, Sequence) and not any(group and group.steps for group in groups):
            return  # no cluster is started for nothing
        schedule = Schedule(groups)
        with _quiet(), self._client() as client, _gone(self.address), _plugin(client, limits) as plugin:
            yield from _Run(client, limits, plugin, self.address).results(schedule)

    @contextmanager
    def _client(self) -> Iterator[Any]:
        distributed = _distributed()
        if not self.address:
            # A blocked signal stays so in the threads and processes that are started meanwhile, and in those that they
            # start: they leave it to us what an interrupt from the keyboard means.
            resource_tracker.ensure_running()  # which would lift the block where it is started
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            addresses = {"dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"}
            try:
                cluster = distributed.LocalCluster(
                    self.jobs, threads_per_worker=1, silence_logs=logging.CRITICAL, **addresses
                )
            except (RuntimeError, OSError) as error:
                hint = "See why with NEUCO_DEBUG=1, or run without dask: --engine local"
                raise EngineError(f"dask's workers do not start: {error}", where="dask", hint=hint) from error
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            with cluster, distributed.Client(cluster) as client:
                yield client
            return
        try:
            client = distributed.Client(f"tcp://{self.address}", timeout=CONNECT_SECONDS)
        except OSError as error:
            port = self.address.rpartition(":")[2]
            hint = f"Start it there with `dask scheduler --port {port}`, or stay on this machine with --engine local"
            raise EngineError(f"no dask scheduler: {error}", where=_where(self.address), hint=hint) from error
        with client:
            yield client


@contextmanager
def _plugin(client: Any, limits: StepLimits) -> Iterator[str]:
    """The name under which the dask workers have this run's processes: runs that share a scheduler must not clash."""
    from neuco_extensions.dask.worker_plugin import PoolPlugin

    name = f"neuco-{secrets.token_hex(8)}"
    try:
        try:
            client.register_plugin(PoolPlugin(limits), name=name)
        except Exception as error:  # whatever a worker raises, or dask says of one that died just now
            if client.status != "running":
                raise
            hint = "Install neuco, and the plugins that are scored, where the workers are, and see what they log"
            raise EngineError(f"the dask workers cannot run neuco: {error}", hint=hint) from error
        yield name
    finally:
        if client.status == "running":
            with suppress(Exception):  # a worker that died meanwhile has no processes either
                client.unregister_worker_plugin(name)


@contextmanager
def _gone(address: str) -> Iterator[None]:
    """Whatever dask raises when the connection breaks is one error."""
    try:
        yield
    except (OSError, CancelledError) as error:
        hint = f"Start it again with `dask scheduler --port {address.rpartition(':')[2]}`" if address else ""
        raise EngineError("the scheduler is gone", where=_where(address), hint=hint) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep dask's own words off the terminal: what they mean for the run is said in one line of ours."""
    if switched_on("NEUCO_DEBUG"):
        yield
        return
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in ("distributed", "tornado")]
    loggers = [logging.getLogger(name) for name in (*names, "asyncio")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


class _Run:
    """The steps that are under way on a cluster, never more than it has threads.

    Each is bound to one dask worker, the one that has the embeddings. When that one dies the step is given to
    another; the second time to one that does nothing else meanwhile, so that no step is blamed for its neighbour.
    """

    def __init__(self, client: Any, limits: StepLimits, plugin: str, address: str) -> None:
        self.client, self.limits, self.plugin, self.address = client, limits, plugin, address
        self.start_worker = f"`dask worker tcp://{address}`"
        self.sent: dict[Any, _Sent] = {}
        self.again: list[_Sent] = []
        self.last_sign = time.monotonic()
        self.alone = False

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
        from neuco_extensions.dask.worker_plugin import run_step

        for address, threads in workers.items():
            busy = sum(sent.address == address for sent in self.sent.values())
            for _ in range(threads - busy):
                sent = self._next(schedule, address)
                if sent is None:
                    break
                step = encode(sent.step)
                future = self.client.submit(run_step, self.plugin, step, pure=False, workers=[address])
                self.sent[future] = sent

    def _next(self, schedule: Schedule, address: str) -> _Sent | None:
        here = [sent for sent in self.sent.values() if sent.address == address]
        if any(sent.deaths > 1 for sent in here):
            return None
        for sent in self.again:
            if sent.deaths == 1 or not here:
                self.again.remove(sent)
                return replace(sent, address=address)
        step = schedule.next(address)
        return _Sent(step, address) if step else None

    def _ended(self, workers: Mapping[str, int]) -> list[tuple[Any, _Sent]]:
        """What ended, or lost its worker; an error if nothing has happened for longer than any step may take."""
        done: set[Any] = set()
        if self.sent:
            with suppress(TimeoutError):
                done = _distributed().wait(list(self.sent), LOOK_SECONDS, return_when="FIRST_COMPLETED").done
        else:
            time.sleep(LOOK_SECONDS)  # there are no workers at the moment
        ended = [f for f, sent in self.sent.items() if f in done or sent.address not in workers]
        if ended:
            self.last_sign = time.monotonic()
        else:
            self._check_life(workers)
        return [(future, self.sent.pop(future)) for future in ended]

    def _check_life(self, workers: Mapping[str, int]) -> None:
        silent = time.monotonic() - self.last_sign
        if not workers and silent > GRACE_SECONDS:
            hint = f"Start one where neuco and the data are: {self.start_worker}" if self.address else ""
            raise EngineError(f"no dask worker for {silent:.0f} seconds", where=_where(self.address), hint=hint)
        longest = max([self.limits.seconds_of(sent.step) for sent in self.sent.values()], default=0.0)
        if workers and silent > longest + START_SECONDS + GRACE_SECONDS:
            what = f"nothing was heard for {silent:.0f} seconds"
            raise EngineError(what, where=_where(self.address), hint="See what its workers log")

    def _workers(self) -> dict[str, int]:
        if self.client.status != "running":
            raise CancelledError
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        if self.address and not workers and not self.alone:
            wait = "%s has no worker: waiting %.0f seconds for one. Start it where neuco and the data are: %s"
            log.warning(wait, _where(self.address), GRACE_SECONDS, self.start_worker)
        self.alone = not workers
        if any(item["metrics"].get("task_counts", {}).get("ready") for item in workers.values()):
            self.last_sign = time.monotonic()  # another run on this scheduler is before us: to wait is no bad sign
        return {address: int(item["nthreads"]) for address, item in workers.items()}

    def _result(self, future: Any, sent: _Sent) -> Result | None:
        """A result; or None if the step is to be run once more because its worker died."""
        distributed = _distributed()
        try:
            if future.status in ("finished", "error"):
                return decode_result(future.result(timeout=CONNECT_SECONDS))
        except (distributed.KilledWorker, TimeoutError, CancelledError):
            pass  # the worker died with the result
        except Exception as error:
            return Failed("crash", f"dask could not run it: {type(error).__name__}: {error}")
        finally:
            future.cancel()
        if sent.deaths + 1 >= TRIES:
            return Failed("crash", f"given up: {TRIES} dask workers that ran it died")
        self.again.append(replace(sent, deaths=sent.deaths + 1))
        return None


def open_dask(address: str | None, jobs: int) -> Any:
    if address is None:
        return DaskEngine(jobs=jobs)
    try:
        parts = urlsplit(f"dask://{address}")
        whole = bool(parts.hostname and parts.port) and address == parts.netloc and "@" not in address
    except ValueError:  # a port that is not a number, or too large
        whole = False
    if not whole:
        hint = "Without :// it is a cluster on this machine: --engine dask"
        expected = "e.g. dask://127.0.0.1:8786"
        raise UsageError("not the address of a dask scheduler", expected=expected, got=f"dask://{address}", hint=hint)
    return DaskEngine(address, jobs)
