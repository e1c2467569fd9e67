"""The local engine: worker processes on this machine, so that a cell that crashes costs only itself."""

from __future__ import annotations

import contextlib
import select
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from neuco_core.results.process import LOOK_SECONDS, WorkerProcess
from neuco_core.results.steps import Group, Limits, Result, Step


@dataclass
class _Open:
    """A group with what is left of it. ``made``: its embeddings have been made once, so others may load them."""

    group: Group
    left: deque[Step] = field(default_factory=deque)
    made: bool = False


class LocalEngine:
    """``jobs`` workers. Each stays with one method, so that its embeddings are loaded once."""

    name = "local"

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs

    def run(self, groups: Sequence[Group], limits: Limits) -> Iterator[tuple[Step, Result]]:
        run = _Run(groups, limits, self.jobs)
        try:
            yield from run.results()
        finally:
            run.end()


class _Run:
    def __init__(self, groups: Sequence[Group], limits: Limits, jobs: int) -> None:
        self.waiting = deque(_Open(group, deque(group.steps)) for group in groups)
        self.started: list[_Open] = []
        count = min(jobs, sum(len(group.steps) for group in groups))
        self.workers = [WorkerProcess(limits) for _ in range(count)]
        self.at: dict[int, _Open] = {}

    def results(self) -> Iterator[tuple[Step, Result]]:
        while True:
            for number, worker in enumerate(self.workers):
                step = None if worker.step else self._next(number)
                if step:
                    worker.give(step)
            busy = [worker for worker in self.workers if worker.step]
            if not busy:
                return
            select.select(busy, [], [], LOOK_SECONDS)
            for number, worker in enumerate(self.workers):
                step = worker.step
                result = worker.poll() if step else None
                if step and result:
                    yield from self._take(self.at[number], step, result)

    def _next(self, number: int) -> Step | None:
        """A worker's next step: of its own group, else of one that nobody has, else of one that is made already."""
        own = self.at.get(number)
        if own and own.left:
            return own.left.popleft()
        if self.waiting:
            self.at[number] = self.waiting.popleft()
            self.started.append(self.at[number])
            group = self.at[number].group
            return Step(group.method, group.dataset)
        others = [item for item in self.started if item.made and item.left]
        if not others:
            return None
        self.at[number] = max(others, key=lambda item: len(item.left))
        return self.at[number].left.popleft()

    def _take(self, item: _Open, step: Step, result: Result) -> Iterator[tuple[Step, Result]]:
        if step.task:
            yield step, result
        elif result["status"] == "ok":
            item.made = True
        else:  # without embeddings there is nothing to score
            while item.left:
                yield item.left.popleft(), result

    def end(self) -> None:
        for worker in self.workers:
            with contextlib.suppress(OSError):
                worker.kill()
