"""A file as it comes in over the network: only a part of it is ever in memory, and it is kept only if it is whole."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from starlette.types import Receive

from neuco_extensions.challenge.files import Upload
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import RefusedError, Submission, stamp
from neuco_extensions.challenge.web.pace import Pace
from neuco_extensions.challenge.web.threads import Hosts

T = TypeVar("T")
PART = 262_144  # bytes that are collected before a thread writes them


class CutError(Exception):
    """The client went away before the end of its file."""


class SlowError(Exception):
    """The client is slower than allowed."""


class Incoming:
    """An upload, used as ``async with``: ``read`` takes the body, ``enter`` makes it a submission."""

    def __init__(self, hosts: Hosts, pace: Pace) -> None:
        self._hosts, self._pace = hosts, pace
        self._most = hosts.challenge.limits.bytes
        self._parts: list[bytes] = []
        self._held = 0
        self._upload: Upload | None = None
        self._work: asyncio.Future[Any] | None = None
        self.size = 0

    async def read(self, receive: Receive) -> None:
        """Take the whole body, or raise ``RefusedError``, ``CutError`` or ``SlowError``."""
        begun, more = time.monotonic(), True
        while more:
            try:
                async with asyncio.timeout(self._patience(time.monotonic() - begun)):
                    message = await receive()
            except TimeoutError as error:
                raise SlowError from error
            if message["type"] == "http.disconnect":
                raise CutError
            more = message.get("more_body", False)
            await self._take(message.get("body", b""))

    def _patience(self, passed: float) -> float:
        """The seconds that the next bytes may take."""
        pace = self._pace
        earned = pace.grace + self.size / pace.slowest
        return min(pace.stall, earned - passed, pace.deadline - passed)

    async def _take(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > self._most:
            raise RefusedError("size")
        self._parts.append(data)
        self._held += len(data)
        if self._held >= PART:
            await self._do(self._write)

    async def enter(self, team: str, phase: str, *, public: bool) -> tuple[Submission, bool]:
        """The submission, on disk and in the journal, and whether it is new. Only for a body that came whole."""
        now = datetime.now(UTC)

        def enter(host: Host) -> Submission:
            return host.enter(team, phase, self._write(host), public=public, now=now)

        own = await self._do(enter)
        return own, own.received == stamp(now)

    def _write(self, host: Host) -> Upload:
        if self._upload is None:
            self._upload = Upload(host.challenge.private, self._most)
        for part in self._parts:
            self._upload.write(part)
        self._parts, self._held = [], 0
        return self._upload

    async def _do(self, work: Callable[[Host], T]) -> T:
        self._work = self._hosts.begin(work)
        return await asyncio.shield(self._work)

    async def __aenter__(self) -> Incoming:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Remove what was not kept, once no thread is at it."""
        if self._work is not None and not self._work.done():
            await asyncio.wait([self._work])
        upload = self._upload
        if upload is not None:
            await self._hosts.run(lambda _: upload.__exit__())
