"""Engines run steps on workers: ``local`` in processes of this machine, or a plugin's, such as ``name://address``."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any, Protocol

from msgspec.structs import replace

from neuco_core.errors import NeucoError, UsageError
from neuco_core.plugins.catalog import catalog
from neuco_core.runs.messages import Embedded, Group, Result, Step, StepLimits
from neuco_core.runs.worker_process import LOOK_SECONDS, StepProgress, WorkerProcess
from neuco_core.specs import Engine, resolve


class EngineError(NeucoError):
    """The engine cannot be reached, or no longer does anything. What was saved stays."""


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
                group = self._at[worker] = _OpenGroup(deque(new.steps), ready=new.embed is None)
                self._open.append(group)
                if new.embed is not None:
                    self._group_of[id(new.embed)] = new.embed, group
                    return new.embed
        if group is None or not (group.ready and group.left):
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


class LocalEngine:
    """``jobs`` worker processes on this machine, each replaced when it dies: a cell that crashes costs only itself."""

    name = "local"

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs
        self.progress: StepProgress | None = None

    def run(self, groups: Iterable[Group | None], limits: StepLimits) -> Iterator[tuple[Step, Result]]:
        workers = [WorkerProcess(limits, self.progress) for _ in range(self.jobs)]  # each starts with its first step
        try:
            yield from self._results(Schedule(groups), workers)
        finally:
            for worker in workers:
                worker.kill()

    def _results(self, schedule: Schedule, workers: Sequence[WorkerProcess]) -> Iterator[tuple[Step, Result]]:
        while True:
            for number, worker in enumerate(workers):
                step = schedule.next(number) if worker.step is None else None
                if step is not None:
                    worker.give(step)
            busy = [worker for worker in workers if worker.step is not None]
            if not busy and not schedule.left:
                return
            wait([worker.fileno() for worker in busy], LOOK_SECONDS)
            for worker in busy:
                step, result = worker.step, worker.poll()
                if step is not None and result is not None:
                    yield from schedule.ended(step, result)


def open_local(address: str | None, jobs: int) -> LocalEngine:
    if address is not None:
        raise UsageError("the local engine has no address", expected="--engine local", got=f"local://{address}")
    return LocalEngine(jobs)
