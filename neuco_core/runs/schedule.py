"""Which worker does what next; the same for all engines."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neuco_core.runs.steps import Group, Result, Step


@dataclass
class _Open:
    """A group with what is left of it. ``made``: its embeddings have been made once, so others may load them.

    ``encoding`` is what making them took; every score of theirs tells it, whichever worker computed it.
    """

    group: Group
    left: deque[Step]
    made: bool = False
    encoding: Mapping[str, Any] | None = None


class Schedule:
    """Hands out steps. A worker stays with one method, so that its embeddings are loaded once."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._waiting = deque(_Open(group, deque(group.steps)) for group in groups)
        self._started: dict[tuple[str, str], _Open] = {}
        self._at: dict[Hashable, _Open] = {}

    def next(self, worker: Hashable) -> Step | None:
        """A worker's next step: of its own group, else of one that nobody has, else of one that is made already."""
        own = self._at.get(worker)
        if own and own.made and own.left:
            return own.left.popleft()
        if self._waiting:
            return self._start(worker).group.steps[0].embedding
        others = [item for item in self._started.values() if item.made and item.left]
        if not others:
            return None
        self._at[worker] = max(others, key=lambda item: len(item.left))
        return self._at[worker].left.popleft()

    def _start(self, worker: Hashable) -> _Open:
        item = self._at[worker] = self._waiting.popleft()
        self._started[item.group.method, item.group.dataset] = item
        return item

    @property
    def left(self) -> bool:
        """Whether there is a step to hand out now."""
        return bool(self._waiting) or any(item.made and item.left for item in self._started.values())

    def ended(self, step: Step, result: Result) -> Iterator[tuple[Step, Result]]:
        """The cells that are done because this step is."""
        item = self._started[step.method, step.dataset]
        if step.task:
            if item.encoding:
                result = {**result, "provenance": {**result.get("provenance", {}), "encoding": item.encoding}}
            yield step, result
            return
        item.made, item.encoding = result["status"] == "ok", result.get("encoding")
        while not item.made and item.left:  # without embeddings there is nothing to score
            yield item.left.popleft(), result


class Shards:
    """Steps that need nothing of each other: whoever is idle has the next one."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._waiting = deque(steps)

    def next(self, worker: Hashable) -> Step | None:
        return self._waiting.popleft() if self._waiting else None

    @property
    def left(self) -> bool:
        return bool(self._waiting)

    def ended(self, step: Step, result: Result) -> Iterator[tuple[Step, Result]]:
        yield step, result
