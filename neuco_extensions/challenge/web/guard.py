"""What stands before the routes: limits for each address, headers of each answer, and the end of unread bodies."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Sized

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from neuco_extensions.challenge.web.pace import Buckets, Pace, address_key

# Only the server's own files may run, style or be asked for.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
# All that the server ever says of an error: a sentence made anew could carry something out.
SENTENCES = {
    400: "The request cannot be understood.",
    401: "A valid token is needed.",
    403: "This is not allowed.",
    404: "There is nothing here.",
    405: "This method is not allowed here.",
    408: "The upload was too slow.",
    413: "The file is larger than the challenge allows.",
    429: "Too many requests. Try again later.",
    431: "The headers are too large.",
    500: "Something went wrong. The hosts can see what.",
    503: "The server is busy. Try again later.",
}
# After an answer that came before the end of a body: what is read and dropped, so that the client sees the answer
# and not a connection that was reset.
LINGER_BYTES, LINGER_SECONDS = 4_000_000, 5.0
LARGEST_HEADERS = 16_384  # bytes
RawHeaders = list[tuple[bytes, bytes]]


def error_body(status: int) -> bytes:
    return json.dumps({"error": SENTENCES[status]}).encode()


def raw(headers: dict[str, str]) -> RawHeaders:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def retry_after(seconds: float) -> dict[str, str]:
    return {"retry-after": str(max(1, math.ceil(seconds)))}


class Guard:
    """Wraps the routes. ``connections`` gives those that are open now."""

    def __init__(self, app: ASGIApp, pace: Pace, connections: Callable[[], Sized]) -> None:
        self._app, self._pace, self._connections = app, pace, connections
        self._asked = Buckets(pace.requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send)
        if refused := self._refused(scope):
            await exchange.error(*refused)
        else:
            # Parts of files are not for asking: in some versions of starlette one such header keeps the server busy.
            headers = [(name, value) for name, value in scope["headers"] if name != b"range"]
            try:
                await self._app({**scope, "headers": headers}, exchange.receive, exchange.send)
            except asyncio.CancelledError:  # the server stops, and has waited for a while
                await exchange.stop()

    def _refused(self, scope: Scope) -> tuple[int, dict[str, str]] | None:
        if len(self._connections()) > self._pace.connections:
            return 503, retry_after(5)
        if wait := self._asked.take(address_key((scope.get("client") or ("",))[0])):
            return 429, retry_after(wait)
        if sum(len(name) + len(value) for name, value in scope["headers"]) > LARGEST_HEADERS:
            return 431, {}
        names = [name for name, _ in scope["headers"]]
        # Two lengths of one body are how a second request is smuggled past a proxy.
        return (400, {}) if b"transfer-encoding" in names and b"content-length" in names else None


class Exchange:
    """A request and its answer. An answer to a body that was not read ends the connection, after a while."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        headers = dict(scope["headers"])
        self._unread = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
        # Who asks before sending a body sends none after an answer.
        self._asks = headers.get(b"expect", b"").lower() == b"100-continue"
        self._begun = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            self._unread = False
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            own = {name for name, _ in message["headers"]}
            added = [pair for pair in raw(HEADERS) if pair[0] not in own]
            closing = [(b"connection", b"close")] if self._unread else []
            await self._send({**message, "headers": [*message["headers"], *added, *closing]})
        elif self._unread and not self._asks and not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            await self._linger()
            await self._send({"type": "http.response.body", "body": b""})
        else:
            await self._send(message)

    async def error(self, status: int, headers: dict[str, str]) -> None:
        body = error_body(status)
        plain = {"content-type": "application/json", "content-length": str(len(body)), **headers}
        await self.send({"type": "http.response.start", "status": status, "headers": raw(plain)})
        await self.send({"type": "http.response.body", "body": body})

    async def stop(self) -> None:
        """Say that the request was not dealt with, unless an answer is on its way, and wait for nothing."""
        self._asks = True
        if not self._begun:
            await self.error(503, retry_after(30))

    async def _linger(self) -> None:
        dropped = 0
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                while self._unread and dropped < LINGER_BYTES:
                    dropped += len((await self.receive()).get("body", b""))
        except TimeoutError:
            pass
