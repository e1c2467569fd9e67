"""HTTP as uvicorn has it, with an end for clients that never finish their headers or never read, and our errors."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from neuco_extensions.challenge.web.guard import HEADERS, error_body, raw

LOOKS = 60  # at which one and the same answer may be under way


def protocol(seconds: float) -> type[H11Protocol]:
    """A protocol that closes connections which have brought no request for one to two times as long.

    An answer that nobody has read after 60 times as long is given up.
    """

    class Timed(H11Protocol):
        _seen: Any = ()  # the request, and whether it was answered, at the last look
        _looks = 0  # at which this was the same

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._timer = self.loop.call_later(seconds, self._look)

        def connection_lost(self, exc: Exception | None) -> None:
            self._timer.cancel()
            super().connection_lost(exc)

        def _look(self) -> None:
            cycle = self.cycle
            idle = cycle is None or cycle.response_complete
            self._looks = self._looks + 1 if self._seen == (cycle, idle) else 0
            self._seen = (cycle, idle)
            if (idle and self._looks) or (not idle and cycle.response_started and self._looks >= LOOKS):
                self.transport.abort()
                return
            self._timer = self.loop.call_later(seconds, self._look)

        def send_400_response(self, msg: str) -> None:
            body = error_body(400)
            plain = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
            start = h11.Response(status_code=400, headers=raw({**HEADERS, **plain}), reason=b"Bad Request")
            with suppress(h11.LocalProtocolError):  # an answer is on its way already
                for event in (start, h11.Data(data=body), h11.EndOfMessage()):
                    self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

    return Timed
