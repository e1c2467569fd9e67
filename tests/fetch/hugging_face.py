"""A server that answers as Hugging Face does: branches that move, commits, redirects, its errors.

Small files come from the same host, large ones (LFS) from a CDN, which is at another name of this machine.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import unquote

LFS = (".npz", ".npy", ".parquet", ".zip")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        path = unquote(self.path.split("?")[0]).strip("/")
        self.server.requests.append(path)
        if path.startswith("blobs/"):  # where the bytes of a file are: the answer there knows no repository
            data = self.server.blobs[path.removeprefix("blobs/")]
            self.answer(200, data, ETag=f'"{path[6:]}"')
            return
        repo, _, rest = path.partition("/resolve/")
        revision, _, file = rest.partition("/")
        commit = self.server.branches.get(revision, revision)
        if repo != self.server.repo:
            self.answer(401, b"Invalid username or password.", X_Error_Code="RepoNotFound")
        elif self.server.gated:
            self.answer(401, b"Access to this resource is restricted.", X_Error_Code="GatedRepo")
        elif commit not in self.server.commits:
            self.answer(404, b"Invalid rev id", X_Error_Code="RevisionNotFound")
        elif file not in self.server.commits[commit]:
            self.answer(404, b"Entry not found", X_Error_Code="EntryNotFound", X_Repo_Commit=commit)
        else:
            sha256 = self.server.commits[commit][file]
            linked = {"X_Linked_ETag": f'"{sha256}"', "X_Linked_Size": str(len(self.server.blobs[sha256]))}
            host = f"http://localhost:{self.server.server_port}" if file.endswith(LFS) else ""
            self.answer(302, b"", Location=f"{host}/blobs/{sha256}", X_Repo_Commit=commit, **linked)

    def answer(self, status: int, data: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        return


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, repo: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repo, self.gated = repo, False
        self.blobs: dict[str, bytes] = {}
        self.commits: dict[str, dict[str, str]] = {}  # commit → file → sha256
        self.branches: dict[str, str] = {}
        self.requests: list[str] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up early is nothing to report."""


class HuggingFace:
    """The server in a thread, with one repository such as ``datasets/somebody/set``, and these files on main."""

    def __init__(self, repo: str, files: Mapping[str, bytes] | None = None) -> None:
        self._server = Server(repo)
        self.base = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.push(files or {})

    def __enter__(self) -> HuggingFace:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def push(self, files: Mapping[str, bytes]) -> str:
        """Commit files on top of what main has; gives the commit."""
        before = self._server.commits.get(self._server.branches.get("main", ""), {})
        new = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        self._server.blobs |= {new[name]: data for name, data in files.items()}
        commit = hashlib.sha1(repr((before, new)).encode(), usedforsecurity=False).hexdigest()
        self._server.commits[commit] = before | new
        self._server.branches["main"] = commit
        return commit

    def close_gate(self) -> None:
        self._server.gated = True

    @property
    def requests(self) -> list[str]:
        return self._server.requests
