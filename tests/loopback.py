"""What the servers of the tests have in common: HTTP on the loopback, in a thread, without a word on the terminal."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


class LoopbackHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status: int, data: bytes = b"", **headers: str) -> None:
        """``X_Repo_Commit`` is the header ``X-Repo-Commit``."""
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data)), "Connection": "close"}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        return


class Loopback(ThreadingHTTPServer):
    """Start it with ``with``."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, handler: type[LoopbackHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.base = f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is part of the game."""
