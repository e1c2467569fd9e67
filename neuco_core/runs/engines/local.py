"""The local engine: worker processes on this machine, so that a cell that crashes costs only itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait

from neuco_core.runs.process import LOOK_SECONDS, WorkerProcess
from neuco_core.runs.schedule import Schedule
from neuco_core.runs.steps import Group, Result, Step, StepLimits, StepProgress


class LocalEngine:
    """``jobs`` worker processes, each looked after and replaced when it dies."""

    name = "local"

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs
        self.progress: StepProgress | None = None

    def run(self, groups: Sequence[Group], limits: StepLimits) -> Iterator[tuple[Step, Result]]:
        count = min(self.jobs, sum(len(group.steps) for group in groups))
        workers = [WorkerProcess(limits, self.progress) for _ in range(count)]
        try:
            yield from _results(Schedule(groups), workers)
        finally:
            for worker in workers:
                worker.kill()


def _results(schedule: Schedule, workers: Sequence[WorkerProcess]) -> Iterator[tuple[Step, Result]]:
    while True:
        for number, worker in enumerate(workers):
            step = None if worker.step else schedule.next(number)
            if step:
                worker.give(step)
        busy = [worker for worker in workers if worker.step]
        if not busy:
            return
        wait([worker.fileno() for worker in busy], LOOK_SECONDS)
        for worker in busy:
            step, result = worker.step, worker.poll()
            if step and result:
                yield from schedule.ended(step, result)
