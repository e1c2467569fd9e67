"""A server that speaks as Hugging Face does, on the loopback: resolve addresses, redirects, a CDN at another address.

Small files come from the repository itself (``307`` to a cache of the same host, with the blob's number as ETag), large
ones (LFS) from a CDN (``302`` to another host, with the sha256 as ``X-Linked-ETag``). Unknown ones are ``404`` with
``X-Error-Code``.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

COMMIT = hashlib.sha1(b"the only revision", usedforsecurity=False).hexdigest()
LFS = (".npz", ".npy", ".parquet", ".zip")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HuggingFace

    def do_GET(self) -> None:
        path = unquote(self.path.partition("?")[0]).strip("/")
        if path.startswith("api/resolve-cache/"):
            return self._body(path.partition(f"/{COMMIT}/")[2])
        if path.startswith("cdn/"):
            return self._body(self.server.by_hash.get(path.removeprefix("cdn/"), ""))
        repository, _, rest = path.partition("/resolve/")
        revision, _, name = rest.partition("/")
        if repository != self.server.repository or revision not in ("main", COMMIT) or name not in self.server.files:
            return self._head(404, 0, {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found"})
        return self._resolve(repository, name, self.server.files[name])

    def _resolve(self, repository: str, name: str, data: bytes) -> None:
        linked = {"X-Repo-Commit": COMMIT, "X-Linked-Size": str(len(data)), "Accept-Ranges": "bytes"}
        if name.endswith(LFS):
            sha256 = hashlib.sha256(data).hexdigest()
            place = {
                "Location": f"{self.server.cdn}/cdn/{sha256}?Expires=1&Signature=x",
                "X-Linked-ETag": f'"{sha256}"',
            }
            return self._head(302, 0, {**linked, **place})
        blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        place = {"Location": f"/api/resolve-cache/{repository}/{COMMIT}/{name}", "X-Linked-ETag": f'"{blob}"'}
        return self._head(307, 0, {**linked, **place})

    def _body(self, name: str) -> None:
        data = self.server.files.get(name, b"")
        self._head(200 if data else 404, len(data), {"ETag": f'"{hashlib.sha256(data).hexdigest()}"'})
        self.wfile.write(data)

    def _head(self, status: int, length: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(length), "Connection": "close"}.items():
            self.send_header(key, value)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        return


class HuggingFace(ThreadingHTTPServer):
    """The hub and, at another name of this machine, its CDN; ``files`` are those of one repository, by path."""

    daemon_threads = True

    def __init__(self, repository: str, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repository, self.files = repository, files
        self.by_hash = {hashlib.sha256(data).hexdigest(): name for name, data in files.items()}
        self.address, self.cdn = (f"http://{host}:{self.server_address[1]}" for host in ("127.0.0.1", "localhost"))

    def __enter__(self) -> HuggingFace:
        threading.Thread(target=self.serve_forever, args=(0.05,)).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
