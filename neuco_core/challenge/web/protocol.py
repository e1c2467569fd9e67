"""HTTP as uvicorn has it, with an end for clients that never finish their headers, and errors in our format."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from neuco_core.challenge.web.guard import HEADERS, error_body, raw


def protocol(seconds: float) -> type[H11Protocol]:
    """A protocol that closes connections which have brought no request for one to two times as long."""

    class Timed(H11Protocol):
        _idle_with: Any = ()  # the request after which the connection was idle at the last look

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._timer = self.loop.call_later(seconds, self._look)

        def connection_lost(self, exc: Exception | None) -> None:
            self._timer.cancel()
            super().connection_lost(exc)

        def _look(self) -> None:
            idle = self.cycle is None or self.cycle.response_complete
            if idle and self._idle_with is self.cycle:
                self.transport.close()
                return
            self._idle_with = self.cycle if idle else ()
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
