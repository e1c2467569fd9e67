"""A host's account on EvalAI, the calls that a remote worker needs, and the files of submissions.

No error carries the token, or an address with a signature.
"""

from __future__ import annotations

import ipaddress
import json
import random
import socket
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec
import requests
from msgspec import Meta, Struct
from msgspec.structs import replace
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from neuco_core.errors import FetchError, UsageError
from neuco_core.fetch.http import TRANSIENT, accept, keep_secure
from neuco_core.fetch.transfer import CHUNK, Settings, Sink, TransientError, Transport, download, shown
from neuco_extensions.challenge.journal import MESSAGES, Verdict

PORTS = {"http": 80, "https": 443}
FILES = "https://evalai.s3.amazonaws.com"  # where eval.ai keeps the files of submissions
MINUTE = 61.0  # a little more: the server counts arrivals, not departures
LONGEST_WAIT = 60.0  # between two tries, if the server asks for no more
LONGEST_ASKED = 3600.0  # what a server may ask for
TIMEOUT = (10.0, 60.0)  # seconds to connect, and to wait for data
REDIRECTS = 3


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
    token: str = field(repr=False)  # it is in no traceback
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


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of an address; two addresses with the same origin are one server."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port or PORTS.get(parts.scheme, 0)
    except ValueError as error:
        raise UsageError("not an address", expected="https://HOST") from error
    if parts.scheme not in PORTS or not host or parts.username is not None:
        raise UsageError("not an address", expected="https://HOST", got=f"{parts.scheme}://{parts.hostname}")
    return parts.scheme, host, port


class EvalAIRefusedError(FetchError):
    """EvalAI understood a request and will not do it; asking again would not help."""

    def __init__(self, what: str, *, status: int, **parts: Any) -> None:
        super().__init__(what, **parts)
        self.status = status


class OddAnswerError(FetchError):
    """EvalAI sent fields that are missing, or not of their kind."""


class TokenRefusedError(FetchError):
    """EvalAI refused the token, so no request will do any more."""


Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]  # as SQLite keeps it
T = TypeVar("T")


class Body(Struct, frozen=True):
    """What a message says. EvalAI takes some of the numbers from an address, as texts."""

    challenge_pk: Number
    phase_pk: Number
    submission_pk: Number


class Message(Struct, frozen=True):
    body: Any = None
    receipt_handle: str | None = None


class Submission(Struct, frozen=True):
    """What EvalAI says of a submission, as far as the worker looks at it."""

    status: str
    input_file: str | None = None
    participant_team: Number | None = None
    participant_team_name: str | None = None
    is_public: bool = False
    submitted_at: str | None = None
    started_at: str | None = None


class PhaseName(Struct, frozen=True):
    codename: str


def read(answer: Any, kind: type[T], what: str) -> T:
    try:
        return msgspec.convert(answer, kind, strict=False)
    except (msgspec.ValidationError, RecursionError) as error:
        raise OddAnswerError(f"EvalAI's {what} cannot be read: {error}") from error


class Api:
    """No more than ``account.per_minute`` requests are sent in a minute.

    A PUT is tried once: it would overwrite a state that a team or a host has set meanwhile, and EvalAI servers of some
    versions add another line to the board for each that arrives, also for one whose answer was lost. The worker looks
    at the submission before it tries again.
    """

    def __init__(self, account: Account) -> None:
        self.account = account
        self._sent: deque[float] = deque(maxlen=account.per_minute)
        self._session = requests.Session()
        self._codenames: dict[int, str] = {}

    def receive(self) -> Message:
        """The next message of the queue; its ``body`` is None if there is none."""
        return read(self._ask("GET", f"/api/jobs/challenge/queues/{self.account.queue}/"), Message, "queue")

    def acknowledge(self, receipt: str) -> None:
        """Take a message from the queue."""
        self._ask("POST", f"/api/jobs/queues/{self.account.queue}/", {"receipt_handle": receipt})

    def submission(self, number: int) -> Submission | None:
        """A submission as it is now; None if it was deleted."""
        try:
            answer = read(self._ask("GET", f"/api/jobs/submission/{number}"), Submission, "submission")
        except EvalAIRefusedError as error:
            if error.status == 404:
                return None
            raise
        return replace(answer, status=answer.status.lower())

    def codename(self, phase: int) -> str:
        """The name that a phase has in ``challenge_config.yaml``."""
        if phase not in self._codenames:
            answer = self._ask("GET", f"/api/challenges/challenge/phase/{phase}/")
            self._codenames[phase] = read(answer, PhaseName, "phase").codename
        return self._codenames[phase]

    def running(self, number: int) -> None:
        """Say that the evaluation began. EvalAI would re-open an ended submission: look before."""
        self._ask("PATCH", self._updates, {"submission": number, "submission_status": "RUNNING"})

    def put(self, number: int, phase: int, codename: str, verdict: Verdict, metadata: Mapping[str, Any]) -> None:
        """Say how it ended. Teams read ``stdout``, ``stderr`` and ``result``: a fixed sentence and the feedback."""
        done, message = verdict.code == "scored", MESSAGES[verdict.code]
        board = [{"split": codename, "show_to_participant": True, "accuracies": dict(verdict.feedback)}]
        answer = {
            "challenge_phase": phase,
            "submission": number,
            "submission_status": "FINISHED" if done else "FAILED",
            "stdout": message if done else "",
            "stderr": "" if done else message,
            "result": json.dumps(board if done and verdict.feedback else [], allow_nan=False),
            "metadata": json.dumps(metadata, sort_keys=True),
        }
        self._ask("PUT", self._updates, answer, tries=1)

    @property
    def _updates(self) -> str:
        return f"/api/jobs/challenge/{self.account.challenge}/update_submission/"

    def _ask(self, method: str, path: str, data: Mapping[str, Any] | None = None, tries: int = 0) -> Any:
        number = 0
        while True:
            number += 1
            if len(self._sent) == self.account.per_minute:
                time.sleep(max(0.0, self._sent[0] + MINUTE - time.monotonic()))
            self._sent.append(time.monotonic())
            try:
                return self._once(method, path, data)
            except TransientError as error:
                if number >= (tries or self.account.tries):
                    raise
                time.sleep(self.after(number, error))

    def after(self, tries: int, error: TransientError) -> float:
        """Seconds to wait after so many failed tries. Workers that fail together must not come back together."""
        longest = min(self.account.backoff * 2.0 ** (tries - 1), LONGEST_WAIT)
        return max(error.wait, longest * random.uniform(0.5, 1.0))  # noqa: S311 - spreads requests, protects nothing

    def _once(self, method: str, path: str, data: Mapping[str, Any] | None) -> Any:
        where = f"{method} {self.account.server}{path}"
        url = self.account.server.rstrip("/") + path
        try:
            answer = self._session.request(
                method, url, data=data, auth=self._sign, timeout=TIMEOUT, allow_redirects=False
            )
        except RequestException as error:
            # Not "from error": its text has the address and may have more.
            raise TransientError(f"EvalAI does not answer ({type(error).__name__})", where=where) from None
        status = answer.status_code
        if status in TRANSIENT:
            header = answer.headers.get("Retry-After", "")  # Django's REST framework gives whole seconds
            wait = min(float(header), LONGEST_ASKED) if header.isdecimal() else 0.0
            raise TransientError(f"EvalAI is busy or failed (HTTP {status})", where=where, wait=wait)
        if status in (401, 403):
            hint = "The token may have expired, or its owner is not a host of the challenge"
            raise TokenRefusedError(f"EvalAI refused the token (HTTP {status})", where=where, hint=hint)
        if 300 <= status < 400:
            raise EvalAIRefusedError(f"EvalAI redirects elsewhere (HTTP {status})", where=where, status=status)
        try:
            content = answer.json()
        except (ValueError, RecursionError):
            raise TransientError(f"EvalAI sent no JSON (HTTP {status})", where=where) from None
        if status >= 400:
            reason = str(content.get("error", ""))[:200] if isinstance(content, dict) else ""
            raise EvalAIRefusedError(f"EvalAI refused (HTTP {status})", where=where, status=status, got=reason or None)
        return content

    def _sign(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """As an ``auth``, so that a line in the host's .netrc does not take its place."""
        request.headers["Authorization"] = f"Bearer {self.account.token}"
        return request


class RefusedPlaceError(FetchError):
    """An address that is not one of the places for files of submissions."""


def bring(url: str, path: Path, account: Account) -> None:
    """Put a submission's file there, whole: a part has another name. What is there already is not fetched again.

    It comes from known places only, up to a size, within a time, under our own name: its address comes from EvalAI and
    in part from a team. It must not lead into the host's network, and it says nothing about where the file is put.
    """
    if path.is_file():
        return
    allowed(url, account)
    part = path.with_suffix(".part")
    settings = Settings(max_bytes=account.max_bytes, deadline=account.deadline, backoff=account.backoff)
    try:
        download(url, part, settings, size=None, progress=False, transport=_transport(account))
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)


def allowed(url: str, account: Account) -> None:
    """Raise unless a file may be read from there: a place that was named, and not a name for the host's own network."""
    try:
        source = origin(url)
    except UsageError:
        raise RefusedPlaceError("the file has no address that can be read", where="EvalAI") from None
    scheme, host, port = source
    if source not in map(origin, (account.server, *account.files)):
        hint = f"If it is right, add --files {scheme}://{host}" + (f":{port}" if port not in (80, 443) else "")
        raise RefusedPlaceError(
            "the file is at a place that is not allowed", got=f"{scheme}://{host}:{port}", hint=hint
        )
    # The server may be in the host's own network; a public store that resolves to it is a trick.
    if source == origin(account.server):
        return
    try:
        addresses = [entry[4][0] for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except OSError:
        return  # the download will say so
    if not all(ipaddress.ip_address(str(address).partition("%")[0]).is_global for address in addresses):
        raise RefusedPlaceError("the name of a file's place leads into a private network", got=host)


def _transport(account: Account) -> Transport:
    """How a file is read: each redirect is looked at before it is followed."""
    options: dict[str, Any] = {
        "stream": True,
        "allow_redirects": False,
        "headers": {"Accept-Encoding": "identity", "User-Agent": "neuco"},
        "hooks": {"response": keep_secure},
        "auth": lambda request: request,  # it adds nothing: no line of the host's .netrc goes to a store of files
    }

    def read(url: str, sink: Sink, settings: Settings) -> None:
        for _ in range(REDIRECTS + 1):
            allowed(url, account)
            where = urlsplit(shown(url))._replace(query="", fragment="").geturl()
            try:
                with requests.get(url, **options, timeout=settings.timeout) as answer:
                    if answer.is_redirect:
                        url = urljoin(url, answer.headers["Location"])
                        continue
                    accept(answer, url, sink)
                    # As it is stored: a small file that unpacks to a large one stays small, and is no table.
                    while chunk := answer.raw.read(CHUNK, decode_content=False):
                        sink.write(chunk)
                    length = answer.headers.get("Content-Length", "")
            except (RequestException, HTTPError) as error:
                raise TransientError(f"the file cannot be read ({type(error).__name__})", where=where) from None
            if length.isdecimal() and sink.received != int(length):
                raise TransientError("the connection was lost in the middle of the file", where=where)
            return
        raise RefusedPlaceError("too many redirects", where=where)

    return read
