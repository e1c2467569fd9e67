"""How far a study is: a bar on a terminal or in a notebook, a line a minute elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from neuco_core.encode.progress import LINE_SECONDS, duration, in_notebook

# Called with the share of all the work that is done, and what is being worked on.
Progress: TypeAlias = Callable[[float, str], None]
FORM = "{desc:30.30} {percentage:3.0f} %|{bar}| {elapsed} so far, {remaining} left"


@contextmanager
def shown(progress: bool | Progress | None = None, *, lines: bool = True) -> Iterator[Progress | None]:
    """Where to tell; ``progress`` is a function that is told instead, or False for silence."""
    if progress is False or callable(progress):
        yield progress or None
    elif sys.stderr.isatty() or in_notebook():
        with _bar() as tell:
            yield tell
    else:
        yield Lines() if lines else None


@contextmanager
def _bar() -> Iterator[Progress]:
    from tqdm.auto import tqdm

    form = None if in_notebook() else FORM  # a widget draws its own
    with tqdm(total=1.0, bar_format=form, file=sys.stderr, leave=False) as bar:

        def tell(share: float, name: str) -> None:
            bar.set_description_str(name, refresh=False)
            bar.update(min(share, 1.0) - bar.n)

        yield tell


class Lines:
    """A line a minute on stderr."""

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
