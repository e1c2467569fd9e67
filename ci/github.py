"""The few requests to GitHub, one of which writes: a comment. Nothing here goes through a shell."""

from __future__ import annotations

import io
import json
import os
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci.comment import MARK, render, text
from ci.report import COMMIT, LARGEST, parse
from neuco_core.errors import DataError, FetchError, NeucoError

WORKFLOW = "score.yml"
AUTHOR = "github-actions[bot]"
LARGEST_ANSWER = 2 * LARGEST
PAGE = 100


class _NoToken(urllib.request.HTTPRedirectHandler):
    """Artefacts are on another host, which must not get our token."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> urllib.request.Request | None:
        request = super().redirect_request(*args, **kwargs)
        if request is not None:
            request.headers.pop("Authorization", None)
        return request


@dataclass(frozen=True)
class GitHub:
    """One repository through the REST interface."""

    repository: str
    token: str
    api: str = "https://api.github.com"

    @classmethod
    def from_environment(cls) -> GitHub:
        try:
            api = os.environ.get("GITHUB_API_URL", cls.api)
            return cls(os.environ["GITHUB_REPOSITORY"], os.environ["GITHUB_TOKEN"], api)
        except KeyError as error:
            raise DataError(f"the variable {error.args[0]} is not set", hint="This command is for workflows") from error

    def ask(
        self, path: str, query: Mapping[str, object] | None = None, *, method: str = "GET", body: str = ""
    ) -> bytes:
        url = f"{self.api}/repos/{self.repository}/{path}"
        url += "?" + urllib.parse.urlencode(query) if query else ""
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/vnd.github+json"}
        data = json.dumps({"body": body}).encode() if body else None
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 - the address is the runner's
        try:
            with urllib.request.build_opener(_NoToken).open(request, timeout=60) as answer:
                content: bytes = answer.read(LARGEST_ANSWER + 1)
        except (urllib.error.URLError, TimeoutError) as error:
            raise FetchError(f"no valid answer from GitHub: {error}", where=f"{method} {path}") from error
        if len(content) > LARGEST_ANSWER:
            raise DataError("the answer is too large", where=f"{method} {path}")
        return content

    def rows(self, path: str, **query: object) -> Iterator[dict[str, Any]]:
        """A list, page by page."""
        for page in range(1, 100):
            rows = json.loads(self.ask(path, {"per_page": PAGE, "page": page, **query}))
            yield from rows
            if len(rows) < PAGE:
                return

    def open_pull_request(self, owner: str, branch: str, sha: str) -> int | None:
        """The open pull request whose last commit this is; for forks the run itself does not say which."""
        for row in self.rows("pulls", state="open", head=f"{owner}:{branch}"):
            if row["head"]["sha"] == sha:
                return int(row["number"])
        return None

    def comment(self, number: int, body: str) -> str:
        """Comment once; a later comment replaces the earlier one."""
        for row in self.rows(f"issues/{number}/comments"):
            if row["user"]["login"] == AUTHOR and row["body"].startswith(MARK):
                self.ask(f"issues/comments/{int(row['id'])}", method="PATCH", body=body)
                return "updated"
        self.ask(f"issues/{number}/comments", method="POST", body=body)
        return "commented"

    def merged_heads(self, sha: str) -> list[str]:
        """The last commits of the pull requests whose merge made this commit."""
        rows = self.rows(f"commits/{sha}/pulls")
        heads = [str(row["head"]["sha"]) for row in rows if row["merged_at"] and row["merge_commit_sha"] == sha]
        return [head for head in heads if COMMIT.fullmatch(head)]

    def report_of(self, head: str) -> bytes:
        """The report of the newest successful run on a commit. GitHub, not the report, says which commit it ran on."""
        query = {"head_sha": head, "event": "pull_request", "status": "success"}
        runs = json.loads(self.ask(f"actions/workflows/{WORKFLOW}/runs", query))["workflow_runs"]
        for run in sorted(runs, key=lambda run: int(run["run_number"]), reverse=True):
            if run["head_sha"] == head:
                return self.report(int(run["id"]))
        raise DataError("the merged pull request has no green report", got=head, hint="Run its workflow `score` again")

    def report(self, run: int) -> bytes:
        """The report that a run left."""
        for artefact in json.loads(self.ask(f"actions/runs/{run}/artifacts"))["artifacts"]:
            if artefact["name"] == "report" and not artefact["expired"]:
                return unpack(self.ask(f"actions/artifacts/{int(artefact['id'])}/zip"))
        raise DataError("the run left no report", got=run)


def unpack(data: bytes) -> bytes:
    """The report in an artefact; nothing is written anywhere, and no more is unpacked than a report may be long."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open("report.json") as file:
            return file.read(LARGEST + 1)
    except (zipfile.BadZipFile, KeyError, RuntimeError, NotImplementedError, EOFError, OSError, ValueError) as error:
        raise DataError(f"the artefact holds no report: {error}") from error


def post(github: GitHub, registry: Path, run: Mapping[str, str]) -> str:
    """Show a report in its pull request; a missing or bad one is reported there, too."""
    number = github.open_pull_request(run["HEAD_OWNER"], run["HEAD_BRANCH"], run["HEAD_SHA"])
    if number is None:
        return "no open pull request has this commit: a newer one was pushed, or it was closed"
    try:
        parsed, records = parse(github.report(int(run["RUN_ID"])))
        if parsed.head != run["HEAD_SHA"]:
            raise DataError("the report is about another commit", got=parsed.head)
        body = render(parsed, records, registry)
    except NeucoError as error:
        body = _no_report(error, run["RUN_URL"])
    return f"{github.comment(number, body)} on {number}"


def _no_report(error: NeucoError, url: str) -> str:
    words = f"The report cannot be shown: {text(error)}. See the run's log: {text(url)}"
    return f"{MARK}\n\n## ❌ No check completed\n\n{words}\n\n**Next:** push again, or ask a maintainer.\n"
