"""GitHub's REST interface on the loopback, as far as the workflows use it."""

from __future__ import annotations

import io
import json
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

REPOSITORY = "example/neuco"


class FakeGitHub:
    """The state of a repository: pull requests, comments, runs, artefacts; and every request with its token."""

    def __init__(self) -> None:
        self.pulls: list[dict[str, Any]] = []
        self.comments: list[dict[str, Any]] = []
        self.reports: dict[str, bytes] = {}
        self.requests: list[tuple[str, str, str | None]] = []
        self.api = ""

    def zipped(self, head: str) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("report.json", self.reports[head])
        return buffer.getvalue()

    def get(self, path: str, query: dict[str, list[str]]) -> Any:
        heads = sorted(self.reports)
        if path == "pulls":
            owner, _, branch = query["head"][0].partition(":")
            return [p for p in self.pulls if (p["owner"], p["branch"]) == (owner, branch) and p["state"] == "open"]
        if path.startswith("issues/"):
            page = int(query["page"][0])
            return self.comments[(page - 1) * 100 : page * 100]
        if path.startswith("commits/"):
            return [p for p in self.pulls if p["merge_commit_sha"] == path.split("/")[1]]
        if path == "actions/workflows/score.yml/runs":
            runs = [{"id": i, "run_number": i, "head_sha": head} for i, head in enumerate(heads)]
            return {"workflow_runs": [run for run in runs if run["head_sha"] == query["head_sha"][0]]}
        if path.endswith("/artifacts"):
            number = int(path.split("/")[2])
            left = [{"id": number, "name": "report", "expired": False}]
            return {"artifacts": left if number < len(heads) else []}
        return None


def handler(state: FakeGitHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self, value: Any) -> None:
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(200 if value is not None else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _path(self) -> tuple[str, dict[str, list[str]]]:
            state.requests.append((self.command, self.path, self.headers.get("Authorization")))
            parts = urlsplit(self.path)
            return parts.path.removeprefix(f"/repos/{REPOSITORY}/"), parse_qs(parts.query)

        def _body(self) -> str:
            return str(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"])

        def do_GET(self) -> None:
            path, query = self._path()
            if path.startswith("/elsewhere/"):
                self._answer(state.zipped(sorted(state.reports)[int(path.split("/")[2])]))
            elif path.endswith("/zip"):
                self.send_response(302)
                self.send_header(
                    "Location", f"http://localhost:{self.server.server_port}/elsewhere/{path.split('/')[2]}"
                )  # type: ignore[attr-defined]
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                self._answer(state.get(path, query))

        def do_POST(self) -> None:
            self._path()
            user = {"login": "github-actions[bot]"}
            state.comments.append({"id": len(state.comments), "user": user, "body": self._body()})
            self._answer({})

        def do_PATCH(self) -> None:
            path, _ = self._path()
            state.comments[int(path.rsplit("/", 1)[1])]["body"] = self._body()
            self._answer({})

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@contextmanager
def fake_github() -> Iterator[FakeGitHub]:
    state = FakeGitHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(state))
    state.api = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
