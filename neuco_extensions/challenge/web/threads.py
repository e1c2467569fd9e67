"""Threads with a ``Host`` each: the journal and the disk are waited for there, and never in the event loop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from neuco_core.errors import NeucoError
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.rules import RULES, Challenge

T = TypeVar("T")
THREADS = 6
log = logging.getLogger("neuco.challenge")


class Hosts:
    """The challenge in a folder, for an event loop. Teams that are added to the rules are known at the next request."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mark = self._seen()
        self._local = threading.local()
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="challenge")
        # All are opened now: a fault is met at the start, and rules that are bad later cannot stop a thread.
        ready, one = threading.Barrier(THREADS), threading.Lock()
        opened = [self._pool.submit(self._open, ready, one) for _ in range(THREADS)]
        self.challenge: Challenge = [own.result() for own in opened][-1]

    def _open(self, ready: threading.Barrier, one: threading.Lock) -> Challenge:
        try:
            with one:  # two threads that are the first to use a type of msgspec's crash the process (seen with 0.22)
                self._local.host = Host(self._folder)
        finally:
            ready.wait()
        return self._local.host.challenge  # type: ignore[no-any-return]

    async def refresh(self) -> Challenge:
        """The rules as they are now. If they cannot be read, or break the seal, the last good ones hold."""
        mark = self._seen()
        if mark != self._mark:
            self._mark = mark
            try:
                self.challenge = await self.run(lambda _: _load(self._folder))
            except (NeucoError, OSError) as error:
                log.warning("the new rules are not used: %s", error)
        return self.challenge

    def begin(self, work: Callable[[Host], T]) -> asyncio.Future[T]:
        """Have a thread do something with its own host."""
        return asyncio.get_running_loop().run_in_executor(self._pool, self._call, work)

    async def run(self, work: Callable[[Host], T]) -> T:
        """The same, and wait. What began is done to its end, also if nobody waits for it any more."""
        return await asyncio.shield(self.begin(work))

    def _call(self, work: Callable[[Host], T]) -> T:
        self._local.host.challenge = self.challenge
        return work(self._local.host)

    def _seen(self) -> tuple[int, int, int] | None:
        try:
            found = (self._folder / RULES).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def close(self) -> None:
        """Wait for what began."""
        self._pool.shutdown()


def _load(folder: Path) -> Challenge:
    with Host(folder) as host:
        return host.challenge
