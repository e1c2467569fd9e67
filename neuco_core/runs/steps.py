"""What engines and workers tell each other: steps to do, limits to keep, results. All of it is plain JSON."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from neuco_core.errors import NeucoError

Result: TypeAlias = dict[str, Any]
GIGABYTE = 10**9


@dataclass(frozen=True)
class Step:
    """One thing for a worker: make a method's embeddings of a dataset, or (with a task) score them.

    ``file`` is the path of embeddings that no plugin registers, and ``method`` then only their name. ``shared`` is a
    folder that the workers of a run share, ``threads`` how many splits a worker trains side by side. With ``fresh``
    embeddings are made in this run and not taken from the cache; ``known`` are hashes of them that are on record.

    With a ``shard``, the places of its first sample and behind its last, it is to encode these alone: with ``params``,
    in batches, on a device; ``key`` names the data and code that the values must come from.

    With ``tuning`` the probe's settings are searched: numbers of trials and repeats, the seed, and what is done of it.
    """

    method: str
    dataset: str
    task: str = ""
    protocol: str = ""
    file: str = ""
    sha256: str = ""
    strict: bool = False
    shared: str = ""
    threads: int = 1
    fresh: bool = False
    known: Sequence[str] = ()
    shard: Sequence[int] = ()
    params: Sequence[tuple[str, Any]] = ()
    batch_size: int = 64
    device: str = ""
    key: str = ""
    tuning: Sequence[tuple[str, Any]] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def embedding(self) -> Step:
        """The step that makes the embeddings which this one scores."""
        return replace(self, task="", tuning=())


@dataclass(frozen=True)
class Group:
    """The cells of one method on one dataset: they share the embeddings."""

    method: str
    dataset: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class StepLimits:
    """What a step may use: seconds of a score, seconds of making embeddings, bytes of memory (None: no limit).

    Embeddings of a large dataset may well take hours; these seconds hold where nobody gave any.
    """

    seconds: float = 3600.0
    embed_seconds: float = 24 * 3600.0
    memory: int | None = None

    def seconds_of(self, step: Step) -> float:
        return self.seconds if step.task else self.embed_seconds


class EngineError(NeucoError):
    """The engine cannot be reached, or no longer does anything. What was saved stays."""


# Called with a step and the share of it that is done.
StepProgress: TypeAlias = Callable[[Step, float], None]


class EngineLike(Protocol):
    """Runs cells and yields each with its result when it ends, in any order.

    ``progress`` may be set before a run; an engine that knows nothing of the steps under way never calls it. One that
    can also encode shards has ``encode(steps, limits)``, which yields each step with its result.
    """

    name: str
    progress: StepProgress | None

    def run(self, groups: Sequence[Group], limits: StepLimits) -> Iterator[tuple[Step, Result]]: ...


def failure(kind: str, reason: str) -> Result:
    return {"status": "failed", "failure": kind, "reason": reason}


def machine_memory() -> int | None:
    """Bytes that this process may use: the machine's, or less if its control group says so."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
    try:
        text = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return whole
    return min(whole, int(text)) if text.isdigit() else whole
