"""A real HTTP server that misbehaves on demand: the path says how."""

from __future__ import annotations

import gzip
import threading
import time
from collections import Counter

from tests.fetch.helpers import BODY
from tests.loopback import Loopback, LoopbackHandler

HALF = len(BODY) // 2
ETAG = '"v1"'
WHOLE = ("good", "other-name", "datasets")
REDIRECTS = {"moved": "/good/x.csv", "circle": "/circle/x.csv", "escape": "file:///etc/hostname"}
STATUS = {"forbidden": 403, "broken": 500}


class Handler(LoopbackHandler):
    server: Server

    def do_GET(self) -> None:
        name = self.path.split("?")[0].strip("/").split("/")[0]
        self.server.requests.append((self.path, dict(self.headers)))
        self.server.counts[name] += 1
        if self.path in self.server.files:
            self.whole(self.server.files[self.path])
        elif name in WHOLE:
            self.whole()
        elif name in REDIRECTS:
            self.head(302, 0, Location=REDIRECTS[name])
        elif behaviour := getattr(self, f"send_{name.replace('-', '_')}", None):
            behaviour()
        else:
            self.head(STATUS.get(name, 404), 0)

    def head(self, status: int, length: int | None, **headers: str) -> None:
        self.send_response(status)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Connection", "close")
        self.end_headers()

    def first(self) -> bool:
        """Whether this is the first request for this behaviour."""
        return self.server.counts[self.path.split("/")[1]] == 1

    def whole(self, data: bytes = BODY) -> None:
        self.head(200, len(data), ETag=ETAG)
        self.wfile.write(data)

    def tail(self, etag: str = ETAG) -> bool:
        """Answer a request for the rest of the file, as a server does that honours Range."""
        wanted = self.headers.get("Range", "")
        if not wanted or self.headers.get("If-Range") != etag:
            return False
        start = int(wanted.removeprefix("bytes=").rstrip("-"))
        rest = BODY[start:]
        self.head(206, len(rest), ETag=etag, Content_Range=f"bytes {start}-{len(BODY) - 1}/{len(BODY)}")
        self.wfile.write(rest)
        return True

    def cut(self, half: bytes = BODY[:HALF], etag: str = ETAG) -> None:
        """Promise everything, send half, hang up."""
        self.head(200, len(BODY), ETag=etag)
        self.wfile.write(half)

    send_truncated = cut

    def send_honours_range(self) -> None:
        if not self.tail():
            self.cut()

    def send_bad_line(self) -> None:
        """Hangs up after every 1.2 MiB, and continues when asked."""
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        rest = BODY[start:]
        place = {"Content_Range": f"bytes {start}-{len(BODY) - 1}/{len(BODY)}"} if start else {}
        self.head(206 if start else 200, len(rest), ETag=ETAG, **place)
        self.wfile.write(rest[: 1_200 << 10])

    def send_ignores_range(self) -> None:
        self.cut() if self.first() else self.whole()

    def send_changed_between(self, old: str = '"old"') -> None:
        """The file has another version at the second request: If-Range does not match, the whole file comes."""
        if self.first():
            self.cut(bytes(HALF), old)
        elif not self.tail():
            self.whole()

    def send_mixes_versions(self) -> None:
        """A careless server: two versions under one ETag, so that the parts do not fit together."""
        self.send_changed_between(ETAG)

    def send_wrong_part(self) -> None:
        """Asked for the rest, it sends a part that starts elsewhere."""
        if self.headers.get("Range"):
            self.head(206, 10, ETag=ETAG, Content_Range=f"bytes 5-14/{len(BODY)}")
            self.wfile.write(BODY[5:15])
        else:
            self.send_ignores_range()

    def send_no_more(self) -> None:
        """Asked for the rest, it says that there is none."""
        self.head(416, 0) if self.headers.get("Range") else self.send_ignores_range()

    def send_stalls(self) -> None:
        self.head(200, len(BODY), ETag=ETAG)
        self.wfile.write(BODY[:1000])
        self.wfile.flush()
        self.server.released.wait(30)

    def send_silent(self) -> None:
        """Takes the request and never answers."""
        self.server.released.wait(30)

    def trickle(self, data: bytes) -> None:
        """A byte now and then, so that nobody who waits for the next one waits long."""
        for place in range(len(data)):
            self.wfile.write(data[place : place + 1])
            self.wfile.flush()
            if self.server.released.wait(0.05):
                return

    def send_trickles(self) -> None:
        self.head(200, len(BODY), ETag=ETAG)
        self.trickle(BODY)

    def send_trickles_headers(self) -> None:
        self.trickle(b"HTTP/1.1 200 OK\r\nX-Endless: " + bytes(b"x" * 10_000))

    def send_steady(self) -> None:
        """In pieces, for longer than the deadline of the tests and faster than their slowest speed."""
        self.head(200, len(BODY), ETag=ETAG)
        for start in range(0, len(BODY), 200_000):
            self.wfile.write(BODY[start : start + 200_000])
            self.server.released.wait(0.04)

    def send_flaky(self) -> None:
        self.head(500, 0) if self.first() else self.whole()

    def send_busy(self) -> None:
        self.head(503, 0, Retry_After="1") if self.first() else self.whole()

    def send_wrong(self) -> None:
        self.whole(BODY[:-1] + bytes([BODY[-1] ^ 1]))

    def send_short(self) -> None:
        self.whole(BODY[:-1])

    def send_endless(self) -> None:
        """No Content-Length, and more bytes than anybody asked for."""
        self.head(200, None)
        for _ in range(16):
            self.wfile.write(bytes(1 << 20))

    def send_no_length(self) -> None:
        self.head(200, None)
        self.wfile.write(BODY)

    def send_huge(self) -> None:
        self.head(200, 10_000_000_000)
        time.sleep(0.01)

    def send_compressed(self, share: float = 1) -> None:
        """Compresses although the request says that it must not."""
        data = gzip.compress(BODY, 1)
        self.head(200, len(data), Content_Encoding="gzip", ETag=ETAG)
        self.wfile.write(data[: int(share * len(data))])

    def send_compressed_cut(self) -> None:
        """Compresses and breaks off; offsets in the file and in the stream are then two things."""
        if not self.tail():
            self.send_compressed(0.5 if self.first() else 1)

    def send_slow(self) -> None:
        """One piece at a time, until the test lets it end: there is time to kill the reader in between."""
        self.head(200, len(BODY), ETag=ETAG)
        self.wfile.write(BODY[:HALF])
        self.wfile.flush()
        self.server.halfway.set()
        self.server.released.wait(30)
        self.wfile.write(BODY[HALF:])


class Server(Loopback):
    def __init__(self) -> None:
        super().__init__(Handler)
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.counts: Counter[str] = Counter()
        self.released, self.halfway = threading.Event(), threading.Event()
        self.files: dict[str, bytes] = {}  # whatever a test wants to have served, by path


class FileServer:
    """The server in a thread; ``url("truncated")`` is an address that behaves that way."""

    def __enter__(self) -> FileServer:
        self.http = Server().__enter__()
        self.base = self.http.base
        return self

    def __exit__(self, *_: object) -> None:
        self.http.released.set()
        self.http.__exit__()

    def url(self, behaviour: str, name: str = "x.csv") -> str:
        return f"{self.base}/{behaviour}/{name}"

    def count(self, behaviour: str) -> int:
        return self.http.counts[behaviour]
