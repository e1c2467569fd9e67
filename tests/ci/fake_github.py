"""GitHub's REST interface on the loopback, as far as the workflows use it."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.loopback import Loopback, LoopbackHandler

REPOSITORY = "example/neuco"


class Handler(LoopbackHandler):
    server: FakeGitHub

    def _answer(self, value: Any) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.answer(200 if value is not None else 404, data)

    def _asked(self) -> tuple[str, Any]:
        """The path below the repository, and the query or the fields."""
        self.server.requests.append((self.command, self.path, self.headers.get("Authorization")))
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        fields = json.loads(self.rfile.read(length)) if length else parse_qs(parts.query)
        return parts.path.removeprefix(f"/repos/{REPOSITORY}/"), fields

    def do_GET(self) -> None:
        path, query = self._asked()
        if path.startswith("/elsewhere/"):
            self._answer(self.server.artefacts[int(path.split("/")[2])])
        elif path.endswith("/zip"):
            place = f"http://localhost:{self.server.server_port}/elsewhere/{path.split('/')[2]}"
            self.answer(302, Location=place)
        else:
            self._answer(self.server.get(path, query))

    def do_POST(self) -> None:
        path, fields = self._asked()
        if path == "pulls":
            self._answer(self.server.open(fields))
            return
        user = {"login": "github-actions[bot]"}
        self.server.comments.append({"id": len(self.server.comments), "user": user, "body": fields["body"]})
        self._answer({})

    def do_PATCH(self) -> None:
        path, fields = self._asked()
        self.server.comments[int(path.rsplit("/", 1)[1])]["body"] = fields["body"]
        self._answer({})


class FakeGitHub(Loopback):
    """The state of a repository: pull requests, comments, artefacts of runs; and every request with its token."""

    def __init__(self) -> None:
        super().__init__(Handler)
        self.pulls: list[dict[str, Any]] = []
        self.comments: list[dict[str, Any]] = []
        self.files: list[dict[str, Any]] = []
        self.artefacts: list[bytes] = []
        self.requests: list[tuple[str, str, str | None]] = []

    def get(self, path: str, query: dict[str, list[str]]) -> Any:
        page = int(query.get("page", ["1"])[0])
        if path == "pulls":
            owner, _, branch = query.get("head", [":"])[0].partition(":")
            rows = [p for p in self.pulls if not owner or (p["owner"], p["branch"]) == (owner, branch)]
            return [p for p in rows if p["state"] == "open"]
        if path.endswith("/files"):
            return self.files[:3000][(page - 1) * 100 : page * 100]
        if path.startswith("pulls/"):
            (pull,) = [p for p in self.pulls if p["number"] == int(path.split("/")[1])]
            return {**pull, "changed_files": len(self.files)}
        if path.startswith("issues/"):
            return self.comments[(page - 1) * 100 : page * 100]
        if path.endswith("/artifacts"):
            number = int(path.split("/")[2])
            left = [{"id": number, "name": "report", "expired": False}]
            return {"artifacts": left if number < len(self.artefacts) else []}
        return None

    def open(self, fields: dict[str, str]) -> dict[str, Any]:
        """A pull request from a branch of the repository itself."""
        pull = {
            "number": len(self.pulls) + 1,
            "title": fields["title"],
            "head": {"ref": fields["head"], "sha": "0" * 40},
            "base": {"ref": fields["base"]},
            "state": "open",
            "owner": REPOSITORY.partition("/")[0],
            "branch": fields["head"],
        }
        self.pulls.append(pull)
        return pull


def zipped(report: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("report.json", report)
    return buffer.getvalue()
