"""neuco's own compiled functions: kept on disk where that is possible, and compiled by one process at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numba

from neuco_core.plugins.running import compiled_here

log = logging.getLogger(__name__)


def _without_scipy() -> None:
    """Let numba start without scipy, of which it would import 0.16 s to see that there is linear algebra in it.

    There is: scipy is installed with neuco. Whoever multiplies matrices in compiled code has numba look again.
    """
    with suppress(ImportError, AttributeError):  # another numba may do it otherwise
        from numba.np import linalg

        look, linalg.ensure_blas = linalg.ensure_blas, lambda: None
        try:
            from numba.np import arraymath  # noqa: F401 - looks while it is imported
        finally:
            linalg.ensure_blas = look


_without_scipy()


def compiled(*, keep: bool, **options: Any) -> Callable[[Any], Any]:
    """``numba.njit`` without the lock of the interpreter; with ``keep``, what is compiled is kept for other processes.

    A kept function carries the code of those that it calls, so one of a file is enough. It must be called with one
    combination of types only: numba numbers the files of several, and two processes could use a number twice.
    """

    def decorate(function: Any) -> Any:
        if keep:
            # Neither the package's folder nor the user's cache folder can be written: a RuntimeError.
            with suppress(RuntimeError), compiled_here():
                return numba.njit(cache=True, nogil=True, **options)(function)
        return numba.njit(nogil=True, **options)(function)

    return decorate


def first_call(function: Any, *arguments: Any) -> None:
    """Load what an earlier process compiled, or compile it while the others wait.

    What is damaged on disk is made again. A disk that is full is nobody's failure: then nothing is kept.
    """
    try:
        with nullcontext() if is_kept(function) else _alone(function.stats.cache_path):
            function(*arguments)
    except Exception as error:  # a damaged file shows itself in many ways
        log.warning("compiled code cannot be taken from %s, or kept there: %s", function.stats.cache_path, error)
    else:
        return
    try:
        with _alone(function.stats.cache_path):
            function._cache.flush()  # its list of files; numba has no public name for that
            function(*arguments)
    except Exception:
        function._cache.disable()
        function(*arguments)


def is_kept(function: Any) -> bool:
    """Whether there is machine code on disk. numba looks whether it fits source and processor, and compiles if not."""
    folder = function.stats.cache_path
    return bool(folder) and any(Path(folder).glob(f"*.{function.__name__}-*.nbc"))


@contextmanager
def _alone(folder: str | None) -> Iterator[None]:
    """Let one process at a time compile into a folder; where it cannot be made or locked, nobody waits."""
    from filelock import FileLock  # heavy: only who compiles waits

    with ExitStack() as stack:
        if folder:
            with suppress(OSError, NotImplementedError):  # some network file systems cannot lock
                Path(folder).mkdir(parents=True, exist_ok=True)
                stack.enter_context(FileLock(Path(folder, ".lock")))
        yield
