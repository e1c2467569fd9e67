"""One download: settings, tries, back-off, resuming, limits, progress. How bytes travel is left to the transports."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from neuco_core.env import switched_on
from neuco_core.errors import ChecksumError, DataError, FetchError, UsageError
from neuco_core.fetch.cache import writing
from neuco_core.progress import DownloadBar

LOOK_SECONDS = 0.1
MIB, GIB = 1 << 20, 1 << 30
CHUNK = 1 << 16  # what is lost at most when a connection breaks off


class TransientError(FetchError):
    """A failure that may not recur; ``wait`` is how many seconds the server asked for."""

    def __init__(self, what: str, *, wait: float = 0.0, **parts: Any) -> None:
        super().__init__(what, **parts)
        self.wait = wait


class TooLargeError(DataError):
    """More bytes than a file may have here."""


@dataclass(frozen=True)
class Settings:
    """From environment variables, read at each call. ``timeout`` is for connecting and for each wait for data.

    A download with all its tries may take ``deadline`` seconds, and one more for each ``min_speed`` bytes received;
    ``retries`` come after the first try.
    """

    offline: bool = False
    timeout: float = 30.0
    retries: int = 3
    backoff: float = 0.5
    deadline: float = 600.0
    min_speed: float = 10_000.0
    max_bytes: int = 4 * GIB
    hf_endpoint: str = "https://huggingface.co"

    @classmethod
    def from_environment(cls) -> Settings:
        return cls(
            offline=switched_on("NEUCO_OFFLINE"),
            timeout=_number("NEUCO_TIMEOUT", cls.timeout, above=0),
            retries=int(_number("NEUCO_RETRIES", cls.retries, above=-1)),
            backoff=_number("NEUCO_BACKOFF", cls.backoff, above=-1),
            deadline=_number("NEUCO_DEADLINE", cls.deadline, above=0),
            min_speed=_number("NEUCO_MIN_SPEED", cls.min_speed, above=0),
            max_bytes=int(_number("NEUCO_MAX_BYTES", cls.max_bytes, above=0)),
            hf_endpoint=(os.environ.get("HF_ENDPOINT") or cls.hf_endpoint).rstrip("/"),
        )


def _number(name: str, default: float, above: float) -> float:
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not above < number < math.inf:
        raise UsageError(f"bad {name}", expected=f"a number above {above:g}", got=repr(text))
    return number


class Sink:
    """The file that a transport writes to. It survives a failed try, so that the next can continue it."""

    def __init__(self, path: Path, url: str, *, size: int | None, limit: int, progress: bool | None = False) -> None:
        self.path, self.url = path, url
        self.size, self.limit = size, limit
        self.received = 0
        self.total = 0  # of all tries, also of what was thrown away
        self.validator = ""  # ETag or date of what was received, so that two versions are never glued together
        self.commit = ""  # of a repository, if the server says so: what its branch stood for
        self.resumed = False
        self._bar = DownloadBar(path.name, size, progress)
        with writing(path.parent):
            self._file = path.open("wb")

    def start(self, *, offset: int, length: int | None, validator: str) -> None:
        """Called by a transport when it knows what it is going to deliver."""
        if offset not in (0, self.received):
            self.reset()
            raise TransientError("the server sent the wrong part of the file", where=shown(self.url))
        if length is not None:
            self._check_total(offset + length)
        if offset == 0:
            self.reset()
        self.resumed = self.resumed or offset > 0
        self.validator = validator
        self._bar.show(self.received, offset + length if length is not None else self.size)

    def reset(self) -> None:
        if self.received:
            self._file.seek(0)
            self._file.truncate()
        self.received, self.validator = 0, ""
        self._bar.show(0)

    def write(self, chunk: bytes) -> None:
        if self.received + len(chunk) > self.limit:
            self._check_total(self.received + len(chunk))
        with writing(self.path.parent):
            self._file.write(chunk)
            self._file.flush()  # so that a full disk shows at once
        self.received += len(chunk)
        self.total += len(chunk)
        self._bar.show(self.received)

    def _check_total(self, total: int) -> None:
        if self.size is not None and total != self.size:
            raise ChecksumError(
                "not the declared file",
                where=shown(self.url),
                expected=f"{self.size} bytes",
                got=f"{total} or more",
                hint="The server offers another file: try a mirror, or declare the new hash and raise the version",
            )
        check_limit(self.url, total, self.limit)

    def close(self) -> None:
        self._bar.close()
        # After a failed write closing fails again, for the same reason.
        with suppress(OSError):
            self._file.close()


def check_limit(url: str, total: int, limit: int) -> None:
    if total > limit:
        hint = f"If it should be that large, set NEUCO_MAX_BYTES={total}"
        expected = f"up to {limit} bytes"
        raise TooLargeError("the file is too large", where=shown(url), expected=expected, got=total, hint=hint)


Transport = Callable[[str, Sink, Settings], None]


def download(
    url: str,
    path: Path,
    settings: Settings,
    *,
    size: int | None,
    progress: bool | None,
    transport: Transport | None = None,
) -> Sink:
    """Download an address to ``path``; the sink knows whether it took several tries, and the commit.

    ``transport`` is how, where it is not the usual way of the address's scheme. It reads in a thread, which is not
    waited for when it takes too long. A timeout does not help: a server that sends a byte now and then keeps each wait
    short, and no call returns.
    """
    read = transport or transport_of(url)
    limit = settings.max_bytes if size is None else size
    check_limit(url, limit, settings.max_bytes)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            _with_retries(read, url, sink, settings)
        except BaseException as error:
            failures.append(error)

    with closing(Sink(path, url, size=size, limit=limit, progress=progress)) as sink:
        thread, start = threading.Thread(target=run, daemon=True), time.monotonic()
        thread.start()
        while thread.is_alive():
            thread.join(LOOK_SECONDS)
            seconds = time.monotonic() - start
            if thread.is_alive() and seconds > settings.deadline + sink.total / settings.min_speed:
                raise FetchError(
                    f"the download is too slow: {sink.total} bytes in {seconds:.0f} seconds",
                    where=shown(url),
                    expected=f"{settings.min_speed:g} bytes per second after the first {settings.deadline:g} seconds",
                    hint="Declare a mirror, or set NEUCO_DEADLINE or NEUCO_MIN_SPEED",
                )
        for error in failures:
            raise error
        return sink


def transport_of(url: str) -> Transport:
    """The function that reads addresses of this scheme."""
    if url.startswith("s3://"):
        from neuco_core.fetch.s3 import read_s3

        return read_s3
    from neuco_core.fetch.http import read_hf, read_http

    if url.startswith("hf://"):
        return read_hf
    if url.startswith(("http://", "https://")):
        return read_http
    raise FetchError("no transport for addresses of this scheme", where=shown(url))


def _with_retries(transport: Transport, url: str, sink: Sink, settings: Settings) -> None:
    tries, furthest = 0, 0
    while True:
        try:
            return transport(url, sink, settings)
        except TransientError as error:
            # A large file over a bad line: tries are counted anew after each one that brought at least 1 MiB.
            tries = 1 if sink.received >= furthest + MIB else tries + 1
            furthest = max(furthest, sink.received)
            if tries > settings.retries:
                what = f"the download stopped after {furthest} bytes: {error.what}" if furthest else error.what
                what += f" (tried {tries} times)" if tries > 1 else ""
                hint = error.hint or "Try again later, or declare a mirror"
                raise TransientError(what, where=shown(url), hint=hint) from error
            time.sleep(max(error.wait, settings.backoff * 2 ** (tries - 1)))


def shown(url: str) -> str:
    """An address as it may be printed: without a password, and without a signature in the query."""
    parts = urlsplit(url)
    query = urlencode([(key, value) for key, value in parse_qsl(parts.query) if key == "versionId"])
    if parts.scheme == "hf" or (not parts.username and query == parts.query):
        return url
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query=query).geturl()
