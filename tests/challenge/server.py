"""The real server of a challenge in a process of its own, on the loopback, and clients with real sockets."""

from __future__ import annotations

import http.client
import json
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from neuco_extensions.challenge.journal import JOURNAL, Journal, JournalEntry
from tests.challenge.parts import make_challenge

SERVE = """
import json, logging, sys
from pathlib import Path
from neuco_extensions.challenge import serve as module
from neuco_extensions.challenge.web.uploads import ServerLimits
module.GOODBYE, module.LINGER_SECONDS = 1, 1.0  # as long as the tests have patience
folder, options, limits = sys.argv[1], json.loads(sys.argv[2]), ServerLimits(**json.loads(sys.argv[3]))
logging.basicConfig(level=logging.INFO)
module.serve(Path(folder), port=0, limits=limits, ready=lambda address: print(address, flush=True), **options)
"""


def open_challenge(folder: Path, changes: Mapping[str, str] | None = None, **options: Any) -> Path:
    """A challenge whose phase dev is open now and whose phase test comes later; answers come at each second."""
    moved = {
        "end = 2026-02-01": "end = 2101-02-01",
        "start = 2026-02-01": "start = 2101-02-01",
        "end = 2026-03-01": "end = 2101-03-01",
        "[limits]": "[limits]\ntick = 1",
    }
    return make_challenge(folder, moved | dict(changes or {}), **options)


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """A server that runs, and its folder."""

    def __init__(self, folder: Path, process: subprocess.Popen[str], address: str) -> None:
        self.folder, self.process, self.address = folder, process, address
        self.host, self.port = urlsplit(address).hostname or "", urlsplit(address).port or 0

    def ask(
        self,
        method: str,
        path: str,
        *,
        token: str | None = None,
        body: bytes | Iterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        source: str = "127.0.0.1",
    ) -> Answer:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60, source_address=(source, 0))
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        with closing(connection):
            connection.request(method, path, body=body, headers={**bearer, **(headers or {})})
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())

    def put(self, data: bytes | Iterable[bytes], team: str = "alpha", phase: str = "dev", **options: Any) -> Answer:
        return self.ask("PUT", f"/api/phases/{phase}/submissions", token=team, body=data, **options)

    def connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=30)

    def head(self, team: str = "alpha", *more: str, phase: str = "dev") -> bytes:
        """The beginning of an upload, to be followed by a body."""
        lines = [f"PUT /api/phases/{phase}/submissions HTTP/1.1", "Host: here", f"Authorization: Bearer {team}", *more]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def journal(self) -> list[JournalEntry]:
        with closing(Journal(self.folder / "private" / JOURNAL)) as journal:
            return journal.submissions()

    def incoming(self) -> list[str]:
        """What lies there of uploads that are under way."""
        folder = self.folder / "private" / "incoming"
        return [path.name for path in folder.iterdir()] if folder.exists() else []

    def memory(self, what: str = "VmRSS") -> int:
        """Bytes; ``VmHWM`` is the most that it ever was."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what + ":"))

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    @property
    def log(self) -> str:
        return (self.folder / "log.txt").read_text()


@contextmanager
def serving(folder: Path, *, workers: int = 0, proxy: str = "", **limits: Any) -> Iterator[Server]:
    """A server of a challenge; it must end well at SIGTERM, unless it was killed before."""
    options = {"workers": workers, "proxy": proxy}
    command = [sys.executable, "-c", SERVE, str(folder), json.dumps(options), json.dumps(limits)]
    with (folder / "log.txt").open("a") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout
        address = process.stdout.readline().strip()
        assert address, (process.wait(), (folder / "log.txt").read_text())
        yield Server(folder, process, address)
        if process.poll() is None:
            process.terminate()
            assert process.wait(30) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()


@contextmanager
def no_file_above(size: int, process: int = 0) -> Iterator[None]:
    """As on a full disk, files of a process, or of this one, cannot grow."""
    before = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, before)


def read_all(connection: socket.socket) -> bytes:
    """What comes until the other end closes."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def wait_until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.005)
