"""What the worker must know to speak with EvalAI, and what it may do there."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from neuco_core.errors import UsageError

PORTS = {"http": 80, "https": 443}
FILES = "https://evalai.s3.amazonaws.com"  # where eval.ai keeps the files of submissions


@dataclass(frozen=True)
class Account:
    """A challenge on an EvalAI server. Times are in seconds.

    ``files`` are the only places that a submission is downloaded from beside the server itself, such as
    ``https://bucket.s3.amazonaws.com``. EvalAI shows teams how long a submission ran: an answer is held back until a
    multiple of ``hold``. A submission that another worker began ``stale`` ago and never ended is taken over.
    """

    server: str
    queue: str
    challenge: int
    token: str
    files: tuple[str, ...] = (FILES,)
    max_bytes: int = 1 << 30
    deadline: float = 600.0
    per_minute: int = 60
    tries: int = 8
    backoff: float = 1.0
    poll: float = 30.0
    hold: float = 60.0
    stale: float = 6 * 3600.0

    def __post_init__(self) -> None:
        for address in (self.server, *self.files):
            origin(address)
        if not self.token:
            raise UsageError("no token for EvalAI", hint="Put it into the variable EVALAI_TOKEN")

    def __repr__(self) -> str:
        return f"Account({self.server!r}, {self.queue!r}, {self.challenge})"  # the token is in no traceback

    @property
    def places(self) -> frozenset[tuple[str, str, int]]:
        """The origins that may be asked for a file."""
        return frozenset(map(origin, (self.server, *self.files)))


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of an address; two addresses with the same origin are one server."""
    try:
        parts = urlsplit(url)
        place = parts.scheme, (parts.hostname or "").rstrip("."), parts.port or PORTS.get(parts.scheme, 0)
    except ValueError as error:
        raise UsageError("not an address", expected="https://HOST") from error
    if parts.scheme not in PORTS or not place[1] or parts.username is not None:
        raise UsageError("not an address", expected="https://HOST", got=f"{parts.scheme}://{parts.hostname}")
    return place
