"""``neuco challenge serve``: teams upload, see their state and the board; workers evaluate.

One process takes requests in (``web``) and keeps the journal, others evaluate (``workers``). All that is to last is in
the journal and on disk before a request is answered, so either may be killed at any time.
"""

from __future__ import annotations

import logging
import resource
import signal
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from types import FrameType

from neuco_core.env import how_to_install
from neuco_core.errors import DependencyError, UsageError
from neuco_extensions.challenge.host import sweep
from neuco_extensions.challenge.workers import EvaluationThread

try:
    import uvicorn

    from neuco_extensions.challenge.web.app import make_app
    from neuco_extensions.challenge.web.guard import LARGEST_HEADERS, Guard, timed_protocol
    from neuco_extensions.challenge.web.uploads import HostPool, ServerLimits
except ImportError as error:
    lacking = (error.name or "").partition(".")[0]
    if lacking not in ("starlette", "uvicorn", "h11"):
        raise
    hint = f"Run `{how_to_install('challenge')}`"
    raise DependencyError(f"the server needs {lacking}", hint=hint) from error

LEFT_OVER = 3600.0  # seconds after which a part of an upload is nobody's any more
GOODBYE = 5  # seconds that uploads get to end when the server stops
BACKLOG = 512


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
    """Serve a sealed challenge until SIGTERM or Ctrl-C. ``ready`` gets the address once it can be asked.

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
        server = Announced(config, lambda: ready(_address(listening)))
        # The workers stop before the process does, also at SIGTERM, which uvicorn raises again when it has ended.
        before = signal.signal(signal.SIGTERM, _end)
        try:
            with EvaluationThread(folder, workers, engine), suppress(KeyboardInterrupt, SystemExit):
                server.run(sockets=[listening])
        finally:
            signal.signal(signal.SIGTERM, before)


class Announced(uvicorn.Server):
    """Says when it can be asked, and not before."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._ready()


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        hint = "Choose others with --host and --port"
        raise UsageError(f"cannot listen: {error.strerror}", where=f"{host}:{port}", hint=hint) from error


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
