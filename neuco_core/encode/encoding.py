"""A method's encoder at work on a source, with what is measured of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from neuco_core.cubes.cubes import CubeSource, Selection
from neuco_core.encode.device import choose_device, move, steady, uses_torch
from neuco_core.encode.encoder import blame, check_output, one_thread, ready
from neuco_core.encode.pipeline import Pipeline
from neuco_core.env import installed_version, requirement_name
from neuco_core.errors import DataError
from neuco_core.plugins.code_key import StandIn
from neuco_core.plugins.source import compiled_apart
from neuco_core.text import counted

if TYPE_CHECKING:
    from neuco_core.specs import Method

BATCH = 64
NAMED_DAMAGED = 5  # in an error


@dataclass
class Clock:
    """How many samples were encoded, and in how many seconds: reading counts, what an encoder learns first does not.

    ``learning`` are the seconds of that; ``made_with`` says on what and with what the numbers were made.
    """

    samples: int = 0
    seconds: float = 0.0
    learning: float = 0.0
    made_with: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def measure(self, samples: int) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.samples, self.seconds = self.samples + samples, self.seconds + time.perf_counter() - start


class Encoding:
    """A method's encoder on a source: made, and taught what it learns, when it is first needed."""

    def __init__(
        self,
        method: Method,
        source: CubeSource,
        params: Mapping[str, Any],
        batch_size: int = BATCH,
        threads: int = 1,
        device: str = "",
        learn: CubeSource | None = None,
        left_out: dict[str, str] | None = None,
    ) -> None:
        self.method, self.source, self.params, self.learn = method, source, params, learn or source
        self.left_out = left_out
        self.batch_size, self.threads, self._asked = batch_size, threads, device
        self.device = choose_device(method, device)
        self._pipeline: Pipeline | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        with one_thread(uses_torch(self.method)), compiled_apart(), steady(self.device):
            yield

    def pipeline(self, clock: Clock | None = None) -> Pipeline:
        if self._pipeline is None:
            start = time.perf_counter()
            encoder = self._learned()
            self.device = move(self.method, encoder, self.device, asked=bool(self._asked))
            place = self.batch_size, self.threads, self.device
            self._pipeline = Pipeline(self.method, encoder, self.source, *place)
            if clock is not None:
                clock.learning = time.perf_counter() - start
                clock.made_with = self.made_with()
        return self._pipeline

    def _learned(self) -> Any:
        """The encoder; if it cannot learn because of damaged samples, and these are left out, from the others."""
        try:
            return ready(self.method, self.learn, self.params)
        except DataError as error:
            good = self._readable(self.learn.ids(), self.learn, error)
            self.learn = Selection(self.learn, ids=frozenset(good))
            return ready(self.method, self.learn, self.params)

    def _readable(self, ids: tuple[str, ...], source: CubeSource, error: DataError) -> tuple[str, ...]:
        if isinstance(self.method.encoder, StandIn):
            raise error  # it ran elsewhere, where the samples are
        return skip_damaged(ids, source, error, self.left_out)

    def encode(self, ids: tuple[str, ...], advance: Callable[..., None], clock: Clock | None = None) -> np.ndarray:
        """The rows of some samples, but for those that are left out."""
        ids = tuple(name for name in ids if name not in (self.left_out or ()))
        done = 0

        def step(samples: int, size: int = 0) -> None:
            nonlocal done
            done += samples
            advance(samples, size)

        try:
            return self._rows(ids, step, clock)
        except DataError as error:
            good = self._readable(ids, self.source, error)
            rows = self._rows(good, lambda *again: None, clock)
            advance(len(ids) - done)
            return rows

    def _rows(self, ids: tuple[str, ...], advance: Callable[..., None], clock: Clock | None) -> np.ndarray:
        if not ids:
            return np.empty((0, 0), np.float32)
        pipeline, rows = self.pipeline(clock), []
        with clock.measure(len(ids)) if clock else nullcontext(), blame(self.method):
            for part, values, size in pipeline.rows(ids):
                rows.append(check_output(self.method, part, values))
                advance(len(part), size)
        return np.concatenate(rows)

    def made_with(self) -> dict[str, Any]:
        """What the numbers depend on besides the method: device, precision, versions of the packages."""
        names = sorted({"numpy", *map(requirement_name, self.method.requires)})
        packages = {name: version for name in names if (version := installed_version(name))}
        return {"device": self.device, "precision": str(self.params.get("precision", "float32")), "packages": packages}


def skip_damaged(
    ids: Sequence[str], source: CubeSource, error: DataError, left_out: dict[str, str] | None
) -> tuple[str, ...]:
    """Those of the samples that can be read; the others are added to ``left_out``, each with the reason.

    ``error`` is how it was noticed. It is raised if each sample can be read by itself. Where nothing may be left out
    (None), an error names all that are damaged among these, so that one run shows more than one of them.
    """
    damaged: dict[str, str] = {}
    for name in ids:
        try:
            source.read([name])
        except DataError as problem:
            damaged[name] = str(problem)
    if not damaged:
        raise error
    if left_out is None:
        named = "; ".join(list(damaged.values())[:NAMED_DAMAGED])
        if len(damaged) > NAMED_DAMAGED:
            named += f" and {len(damaged) - NAMED_DAMAGED} more"
        what = f"{len(damaged)} of {counted(len(ids), 'sample')} looked at so far cannot be read"
        hint = "Repair them; `neuco embed --leave-out-damaged` leaves them out, and says which"
        raise DataError(what, got=named, hint=hint) from error
    left_out |= damaged
    return tuple(name for name in ids if name not in damaged)
