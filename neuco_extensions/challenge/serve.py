"""``neuco challenge serve``: teams upload, see their state and the board; workers evaluate.

One process takes requests in (``web``) and keeps the journal, others evaluate (``workers``). All that is to last is in
the journal and on disk before a request is answered, so either may be killed at any time. What stands before the routes
is here, too: headers of each answer, the end of unread bodies, of slow and of odd clients.
"""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import signal
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from neuco_core.env import how_to_install
from neuco_core.errors import DependencyError, UsageError
from neuco_extensions.challenge.host import sweep
from neuco_extensions.challenge.workers import EvaluationThread

try:
    import h11
    import uvicorn
    from starlette.responses import JSONResponse
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from uvicorn.protocols.http.h11_impl import H11Protocol

    from neuco_extensions.challenge.web.app import make_app
    from neuco_extensions.challenge.web.uploads import SENTENCES, HostPool, ServerLimits
except ImportError as error:
    lacking = (error.name or "").partition(".")[0]
    if lacking not in ("starlette", "uvicorn", "h11"):
        raise
    hint = f"Run `{how_to_install('challenge')}`"
    raise DependencyError(f"the server needs {lacking}", hint=hint) from error

LEFT_OVER = 3600.0  # seconds after which a part of an upload is nobody's any more
GOODBYE = 5  # seconds that uploads get to end when the server stops
BACKLOG = 512
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
# After an answer that came before the end of a body: what is read and dropped, so that the client sees the answer
# and not a connection that was reset.
LINGER_BYTES, LINGER_SECONDS = 4_000_000, 5.0
LARGEST_HEADERS = 16_384  # bytes
UNREAD_LOOKS = 60  # at which one and the same answer may be under way
RawHeaders = list[tuple[bytes, bytes]]


def serve(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    workers: int = 1,
    engine: str = "local",
    proxy: str = "",
    limits: ServerLimits | None = None,
    ready: Callable[[str], None] = print,
) -> None:
    """Serve a sealed challenge until SIGTERM or Ctrl-C. ``ready`` gets the address, which can be asked by then.

    ``proxy`` is the address of a proxy whose X-Forwarded-For and X-Forwarded-Proto are believed; none by default.
    """
    limits = limits or ServerLimits()
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # each connection is a file: as many as the system lets us have
        resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # it warns of each request that is no HTTP
    with closing(_listen(host, port)) as listening, closing(HostPool(folder)) as hosts:
        sweep(hosts.challenge.private, LEFT_OVER)
        config = uvicorn.Config(
            Guard(make_app(hosts, limits)),
            http=timed_protocol(limits.headers),
            limit_concurrency=limits.connections,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(proxy),
            forwarded_allow_ips=proxy,
            backlog=BACKLOG,
            h11_max_incomplete_event_size=LARGEST_HEADERS,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=GOODBYE,
        )
        address, number = listening.getsockname()[:2]
        # The workers stop before the process does, also at SIGTERM, which uvicorn raises again when it has ended.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with suppress(KeyboardInterrupt):
                # Before the evaluation, which may have stdout redirected while it loads plugins.
                ready(f"http://[{address}]:{number}/" if ":" in address else f"http://{address}:{number}/")
                with EvaluationThread(folder, workers, engine):
                    uvicorn.Server(config).run(sockets=[listening])
        finally:
            signal.signal(signal.SIGTERM, before)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        hint = "Choose others with --host and --port"
        raise UsageError(f"cannot listen: {error.strerror}", where=f"{host}:{port}", hint=hint) from error


def raw(headers: dict[str, str]) -> RawHeaders:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


class Guard:
    """Wraps the routes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send)
        names = [name for name, _ in scope["headers"]]
        if sum(len(name) + len(value) for name, value in scope["headers"]) > LARGEST_HEADERS:
            await exchange.error(431)
        elif b"transfer-encoding" in names and b"content-length" in names:
            await exchange.error(400)  # two lengths of one body are how a second request is smuggled past a proxy
        else:
            # Parts of files are not for asking: in some versions of starlette one such header keeps the server busy.
            headers = [(name, value) for name, value in scope["headers"] if name != b"range"]
            try:
                await self._app({**scope, "headers": headers}, exchange.receive, exchange.send)
            except asyncio.CancelledError:  # the server stops, and has waited for a while
                await exchange.stop()


class Exchange:
    """A request and its answer. An answer to a body that was not read ends the connection, after a while."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
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
            present = {name for name, _ in message["headers"]}
            added = [pair for pair in raw(HEADERS) if pair[0] not in present]
            closing = [(b"connection", b"close")] if self._unread else []
            await self._send({**message, "headers": [*message["headers"], *added, *closing]})
        elif self._unread and not self._asks and not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            await self._linger()
            await self._send({"type": "http.response.body", "body": b""})
        else:
            await self._send(message)

    async def error(self, status: int, headers: dict[str, str] | None = None) -> None:
        await JSONResponse({"error": SENTENCES[status]}, status, headers)(self._scope, self.receive, self.send)

    async def stop(self) -> None:
        """Say that the request was not dealt with, unless an answer is on its way, and wait for nothing."""
        self._asks = True
        if not self._begun:
            await self.error(503, {"retry-after": "30"})

    async def _linger(self) -> None:
        dropped = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while self._unread and dropped < LINGER_BYTES:
                    dropped += len((await self.receive()).get("body", b""))


def timed_protocol(seconds: float) -> type[H11Protocol]:
    """HTTP as uvicorn has it, which closes connections that have brought no request for one to two times as long.

    An answer that nobody has read after 60 times as long is given up. uvicorn itself waits for ever for the headers of
    the first request, and for a client that does not read.
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
            if (idle and self._looks) or (not idle and cycle.response_started and self._looks >= UNREAD_LOOKS):
                self.transport.abort()
                return
            self._timer = self.loop.call_later(seconds, self._look)

        def send_400_response(self, msg: str) -> None:
            body = json.dumps({"error": SENTENCES[400]}).encode()
            plain = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
            start = h11.Response(status_code=400, headers=raw({**HEADERS, **plain}), reason=b"Bad Request")
            with suppress(h11.LocalProtocolError):  # an answer is on its way already
                for event in (start, h11.Data(data=body), h11.EndOfMessage()):
                    self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

    return Timed
