"""Files as they come in over the network, and the threads that wait for disk and journal, so that the event loop never
does. Only a part of a file is ever in memory, and it is kept only if it is whole.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from starlette.types import Receive

from neuco_core.errors import NeucoError
from neuco_extensions.challenge.host import Host, Upload
from neuco_extensions.challenge.journal import JournalEntry, RefusedError, stamp
from neuco_extensions.challenge.rules import AMENDMENTS, RULES, Challenge

T = TypeVar("T")
THREADS = 6
PART = 262_144  # bytes that are collected before a thread writes them
# All that the server ever says of an error: a sentence made anew could carry something out.
SENTENCES = {
    400: "The request cannot be understood.",
    401: "A valid token is needed.",
    403: "This is not allowed.",
    404: "There is nothing here.",
    405: "This method is not allowed here.",
    408: "The upload was too slow.",
    413: "The file is larger than the challenge allows.",
    429: "Your team has too many uploads at once. Try again later.",
    431: "The headers are too large.",
    500: "Something went wrong. The hosts can see what.",
    503: "The server is busy. Try again later.",
}
log = logging.getLogger("neuco.challenge")


class Problem(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, sentence: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence or SENTENCES[status])
        self.status, self.headers = status, headers


@dataclass(frozen=True)
class ServerLimits:
    """How much the server takes at once, and how slow a client may be. How often somebody may ask, a proxy says.

    An upload may pause for ``stall`` seconds. After ``grace`` seconds it must have come with ``slowest`` bytes a second
    on average, and after ``deadline`` seconds it must be over. A connection has ``headers`` seconds for each request.
    """

    uploads: int = 32
    uploads_of_team: int = 4
    connections: int = 1000
    stall: float = 30.0
    grace: float = 30.0
    slowest: float = 50_000.0
    deadline: float = 10_800.0
    headers: float = 10.0


class HostPool:
    """The challenge in a folder, for an event loop. New teams and deadlines are known at the next request."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._changed = self._rules_stat()
        self._idle: queue.SimpleQueue[Host] = queue.SimpleQueue()
        # All are opened now, journal and all: a fault is met at the start, and rules that are bad later stop no thread.
        for _ in range(THREADS):
            host = Host(folder)
            host.journal.submissions(team="")
            self._idle.put(host)
            self.challenge: Challenge = host.challenge
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="challenge")

    def _rules_stat(self) -> list[tuple[int, int, int]]:
        stats = []
        for path in (self._folder / RULES, self._folder / "public" / AMENDMENTS):
            with suppress(OSError):
                stat = path.stat()
                stats.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
        return stats

    async def refresh(self) -> Challenge:
        """The rules as they are now. If they cannot be read, or break the seal, the last good ones hold."""
        changed = self._rules_stat()
        if changed != self._changed:
            self._changed = changed
            try:
                self.challenge = await self.run(lambda _: Host(self._folder).challenge)
            except (NeucoError, OSError) as error:
                log.warning("the new rules are not used: %s", error)
        return self.challenge

    def begin(self, work: Callable[[Host], T]) -> asyncio.Future[T]:
        """Have a thread do something with a host that nobody else uses meanwhile."""

        def call() -> T:
            host = self._idle.get()
            try:
                host.challenge = self.challenge
                return work(host)
            finally:
                self._idle.put(host)

        return asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def run(self, work: Callable[[Host], T]) -> T:
        """The same, and wait. What began is done to its end, also if nobody waits for it any more."""
        return await asyncio.shield(self.begin(work))

    def close(self) -> None:
        """Wait for what began."""
        self._threads.shutdown()
        for _ in range(THREADS):
            self._idle.get().close()


class IncomingUpload:
    """An upload, used as ``async with``: ``read`` takes the body, ``enter`` makes it a submission."""

    def __init__(self, hosts: HostPool, limits: ServerLimits) -> None:
        self._hosts, self._limits = hosts, limits
        self._most = hosts.challenge.limits.bytes
        self._part = bytearray()
        self._upload: Upload | None = None
        self._work: asyncio.Future[Any] | None = None
        self.size = 0

    async def read(self, receive: Receive) -> None:
        """Take the whole body, or raise ``RefusedError`` or ``Problem``."""
        limits, begun, more = self._limits, time.monotonic(), True
        while more:
            passed = time.monotonic() - begun
            earned = limits.grace + self.size / limits.slowest
            patience = min(limits.stall, earned - passed, limits.deadline - passed)
            try:
                async with asyncio.timeout(patience):
                    message = await receive()
            except TimeoutError as error:
                raise Problem(408) from error
            if message["type"] == "http.disconnect":
                raise Problem(400)  # nobody is there to read it
            more = message.get("more_body", False)
            data = message.get("body", b"")
            self.size += len(data)
            if self.size > self._most:
                raise RefusedError("size")
            self._part += data
            if len(self._part) >= PART:
                await self._do(self._write)

    async def enter(self, team: str, phase: str, *, public: bool) -> tuple[JournalEntry, bool]:
        """The submission, on disk and in the journal, and whether it is new. Only for a body that came whole."""
        now = datetime.now(UTC)

        def enter(host: Host) -> JournalEntry:
            return host.journal.enter(host.challenge, team, phase, self._write(host), public=public, now=now)

        entry = await self._do(enter)
        return entry, entry.received == stamp(now)

    def _write(self, host: Host) -> Upload:
        if self._upload is None:
            self._upload = Upload(host.challenge.private, self._most)
        self._upload.write(bytes(self._part))
        self._part.clear()
        return self._upload

    async def _do(self, work: Callable[[Host], T]) -> T:
        self._work = self._hosts.begin(work)
        return await asyncio.shield(self._work)

    async def __aenter__(self) -> IncomingUpload:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Remove what was not kept, once no thread is at it."""
        if self._work is not None and not self._work.done():
            await asyncio.wait([self._work])
        upload = self._upload
        if upload is not None:
            await self._hosts.run(lambda _: upload.__exit__())
