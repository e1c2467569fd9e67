"""How far an encoder is: a bar on a terminal or in a notebook, a line a minute elsewhere, or a function to tell."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Progress: TypeAlias = bool | Callable[[int, int], None] | None
Advance: TypeAlias = Callable[..., None]
LINE_SECONDS = 60.0


@contextmanager
def shown(name: str, total: int, progress: Progress) -> Iterator[Advance]:
    """Give ``advance(samples, bytes, made)``; ``made=False`` are samples of an earlier run, which cost no time now."""
    if callable(progress):
        yield _telling(progress, total)
    elif progress is False:
        yield lambda samples, size=0, made=True: None
    elif sys.stderr.isatty() or in_notebook():
        with _bar(name, total) as advance:
            yield advance
    else:
        yield Lines(name, total)


def in_notebook() -> bool:
    return "ipykernel" in sys.modules


def _telling(tell: Callable[[int, int], None], total: int) -> Advance:
    done = 0

    def advance(samples: int, size: int = 0, made: bool = True) -> None:
        nonlocal done
        done += samples
        tell(done, total)

    return advance


@contextmanager
def _bar(name: str, total: int) -> Iterator[Advance]:
    from tqdm.auto import tqdm

    with tqdm(total=total, desc=name, unit="sample", leave=False) as bar:
        rate = Rate(total)

        def advance(samples: int, size: int = 0, made: bool = True) -> None:
            rate.add(samples, size, made)
            if not made:
                bar.initial += samples  # else the bar would take them for this run's speed
            bar.set_postfix_str(f"{rate.megabytes:.0f} MB/s", refresh=False)
            bar.update(samples)

        yield advance


class Rate:
    """Samples and bytes, and the seconds since the start."""

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self.clock, self.start = total, clock, clock()
        self.done = self.made = self.bytes = 0

    def add(self, samples: int, size: int, made: bool) -> None:
        self.done, self.bytes = self.done + samples, self.bytes + size
        self.made += samples * made

    @property
    def seconds(self) -> float:
        return max(self.clock() - self.start, 1e-9)

    @property
    def megabytes(self) -> float:
        """Megabytes per second, as the values are stored."""
        return self.bytes / 1e6 / self.seconds

    def __str__(self) -> str:
        speed = self.made / self.seconds
        left = duration((self.total - self.done) / speed) if speed else "unknown"
        share = f"{self.done} of {self.total} samples, {100 * self.done / max(self.total, 1):.0f} %"
        return f"{share}, {speed:.3g} samples/s, {self.megabytes:.3g} MB/s, time left {left}"


class Lines:
    """A line a minute on stderr."""

    def __init__(self, name: str, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.name, self.rate = name, Rate(total, clock)
        self._next = self.rate.start + LINE_SECONDS

    def __call__(self, samples: int, size: int = 0, made: bool = True) -> None:
        self.rate.add(samples, size, made)
        if self.rate.clock() >= self._next:
            self._next = self.rate.clock() + LINE_SECONDS
            print(f"{self.name}: {self.rate}", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """``2 h 05 min``, ``3 min 20 s`` or ``12 s``."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 60} min {whole % 60:02d} s" if whole >= 60 else f"{seconds:.1f} s"
