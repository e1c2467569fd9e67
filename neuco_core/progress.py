"""How far a long piece of work is: a bar on a terminal or in a notebook, a line a minute elsewhere, or a callback."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

# Called with the share of all the work that is done, and what is being worked on.
Progress: TypeAlias = Callable[[float, str], None]
# Called with the number of samples that are done, and of all.
SampleProgress: TypeAlias = bool | Callable[[int, int], None] | None
LINE_SECONDS = 60.0


@contextmanager
def show_progress(progress: bool | Progress | None = None, *, lines: bool = True) -> Iterator[Progress | None]:
    """Yield the function to call; ``progress`` is called instead if it is one, and ``False`` means silence.

    Without ``lines`` there is ``None`` where nobody would see a bar.
    """
    if callable(progress):
        yield progress
        return
    # In a notebook rich needs ipywidgets for a bar that moves.
    notebook = "ipykernel" in sys.modules and importlib.util.find_spec("ipywidgets") is not None
    if progress is not False and (sys.stderr.isatty() or notebook):
        with _bar() as tell:
            yield tell
    else:
        yield ProgressLines() if lines and progress is not False else None


@contextmanager
def _bar() -> Iterator[Progress]:
    # heavy: only where a bar is shown
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("so far,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with RichProgress(*columns, console=Console(stderr=True), refresh_per_second=4, transient=True) as bars:
        bar = bars.add_task("", total=1.0)

        def tell(share: float, name: str) -> None:
            bars.update(bar, completed=min(share, 1.0), description=name)

        yield tell


class DownloadBar:
    """How much of a file has arrived; by default it is drawn on a terminal only."""

    def __init__(self, name: str, size: int | None, shown: bool | None = None) -> None:
        self._bars: RichProgress | None = None
        if sys.stderr.isatty() if shown is None else shown:
            # heavy: only where a bar is shown
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
            from rich.progress import Progress as RichProgress

            name_column = TextColumn("{task.description}", markup=False)
            columns = (name_column, BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn())
            console = Console(stderr=True)
            self._bars = RichProgress(*columns, TimeRemainingColumn(), console=console, transient=console.is_terminal)
            self._bar = self._bars.add_task(name, total=size)
            self._bars.start()

    def show(self, received: int, size: int | None = None) -> None:
        """The bytes that are here; ``size`` is that of the whole file, once it is known."""
        if self._bars is not None:
            self._bars.update(self._bar, completed=received, total=size)

    def close(self) -> None:
        if self._bars is not None:
            self._bars.stop()


class ProgressLines:
    """A line a minute on standard error."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._start = clock, clock()
        self._next = self._start + LINE_SECONDS

    def __call__(self, share: float, name: str) -> None:
        now = self._clock()
        if now < self._next:
            return
        self._next = now + LINE_SECONDS
        left = duration((now - self._start) * (1 - share) / share) if share > 0 else "unknown"
        so_far = duration(now - self._start)
        print(f"{name}: {100 * share:.0f} %, {so_far} so far, {left} left", file=sys.stderr, flush=True)


@contextmanager
def sample_progress(name: str, total: int, progress: SampleProgress = None) -> Iterator[SampleCounter]:
    """Yield a counter of samples that shows how far an encoder is; ``progress`` as for ``show_progress``."""
    if callable(progress):
        callback = progress
        yield SampleCounter(name, total, lambda counter: callback(counter.done, total))
    else:
        with show_progress(progress) as tell:

            def show(counter: SampleCounter) -> None:
                if tell is not None:
                    tell(counter.share, str(counter))

            yield SampleCounter(name, total, show)


class SampleCounter:
    """Samples and bytes since the start, and their speed."""

    def __init__(
        self,
        name: str,
        total: int,
        show: Callable[[SampleCounter], None] = lambda counter: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name, self.total = name, total
        self.done = self.earlier = self._bytes = 0
        self._show, self._clock, self._start = show, clock, clock()

    def __call__(self, samples: int, size: int = 0, made: bool = True) -> None:
        """Count samples of ``size`` bytes; those of an earlier run, ``made=False``, cost no time now."""
        self.done += samples
        self._bytes += size
        if not made:
            self.earlier += samples
        self._show(self)

    @property
    def share(self) -> float:
        """Of the work of this run."""
        return (self.done - self.earlier) / max(self.total - self.earlier, 1)

    def __str__(self) -> str:
        seconds = max(self._clock() - self._start, 1e-9)
        speed = f"{(self.done - self.earlier) / seconds:.3g} samples/s, {self._bytes / 1e6 / seconds:.3g} MB/s"
        return f"{self.name}: {self.done} of {self.total} samples, {speed}"


def duration(seconds: float) -> str:
    """``2 h 05 min``, ``3 min 20 s`` or ``12.3 s``."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 60} min {whole % 60:02d} s" if whole >= 60 else f"{seconds:.1f} s"
