"""A server that speaks as Hugging Face does, on the loopback: an address that is resolved is redirected.

Small files come from the same host, large ones (LFS) from a CDN, which is at another name of this machine.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, unquote

LFS = (".npz", ".npy", ".parquet", ".zip")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HuggingFace

    def do_GET(self) -> None:
        place, _, name = unquote(self.path).strip("/").partition("/resolve/main/")
        stored = unquote(self.path).removeprefix("/stored/")
        if place == self.server.repository and name in self.server.files:
            host = self.server.cdn if name.endswith(LFS) else ""
            self._answer(302, Location=f"{host}/stored/{quote(name)}")
        elif stored in self.server.files:
            self._answer(200, self.server.files[stored])
        else:
            self._answer(404)

    def _answer(self, status: int, data: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(data)), "Connection": "close"}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        return


class HuggingFace(ThreadingHTTPServer):
    """The hub and its CDN; ``files`` are those of one repository, by path."""

    daemon_threads = True

    def __init__(self, repository: str, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repository, self.files = repository, files
        self.address, self.cdn = (f"http://{host}:{self.server_port}" for host in ("127.0.0.1", "localhost"))

    def __enter__(self) -> HuggingFace:
        threading.Thread(target=self.serve_forever, args=(0.05,)).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
