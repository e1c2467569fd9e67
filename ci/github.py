"""The few requests to GitHub; comments and pull requests are all that is written. Nothing goes through a shell."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from ci.changed import is_core
from ci.comment import MARK, render, text
from ci.report import LARGEST, parse
from neuco_core.errors import DataError, FetchError, NeucoError
from neuco_core.text import one_line

WORKFLOW = ".github/workflows/score.yml"
AUTHOR = "github-actions[bot]"
LARGEST_ANSWER = 2 * LARGEST
PAGE = 100
MOST_FILES = 3000  # GitHub lists no more of a pull request


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

    def ask(self, path: str, query: Mapping[str, Any] | None = None, *, method: str = "GET", **fields: str) -> bytes:
        url, content = f"{self.api}/repos/{self.repository}/{path}", b""
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/vnd.github+json"}
        try:
            # Artefacts are on another host, which does not get our token: requests takes it off when it is sent there.
            with requests.request(
                method, url, params=query, headers=headers, json=fields or None, timeout=60, stream=True
            ) as answer:
                answer.raise_for_status()
                for part in answer.iter_content(1 << 20):
                    content += part
                    if len(content) > LARGEST_ANSWER:
                        raise DataError("the answer is too large", where=f"{method} {path}")
        except requests.RequestException as error:
            raise FetchError(f"no valid answer from GitHub: {error}", where=f"{method} {path}") from error
        return content

    def get(self, path: str, **query: object) -> Any:
        try:
            return json.loads(self.ask(path, query))
        except ValueError as error:
            raise FetchError(f"no valid answer from GitHub: {error}", where=f"GET {path}") from error

    def rows(self, path: str, **query: object) -> Iterator[dict[str, Any]]:
        """A list, page by page."""
        for page in range(1, 100):
            rows = self.get(path, per_page=PAGE, page=page, **query)
            yield from rows
            if len(rows) < PAGE:
                return

    def open_pull_request(self, owner: str, branch: str, sha: str) -> int | None:
        """The open pull request for main whose last commit this is; for forks the run itself does not say which."""
        head = {"head": f"{owner}:{branch}"} if owner else {}  # a deleted fork has no owner
        for row in self.rows("pulls", state="open", base="main", **head):
            if (row["head"]["sha"], row["base"]["ref"]) == (sha, "main"):
                return int(row["number"])
        return None

    def core_files(self, number: int, sha: str) -> list[str]:
        """The files of a pull request that would judge it, as GitHub lists them and not as its report does."""
        rows = list(self.rows(f"pulls/{number}/files"))
        pull = self.get(f"pulls/{number}")
        if pull["head"]["sha"] != sha:
            raise DataError("a newer commit was pushed meanwhile", got=pull["head"]["sha"])
        if len(rows) >= MOST_FILES or len(rows) != pull["changed_files"]:
            return [f"{pull['changed_files']} files, of which GitHub lists {len(rows)}"]
        names = [name for row in rows for name in (row["filename"], row.get("previous_filename")) if name]
        return [name for name in names if is_core(name)]

    def comment(self, number: int, body: str) -> str:
        """Comment once; a later comment replaces the earlier one."""
        for row in self.rows(f"issues/{number}/comments"):
            author = (row["user"] or {}).get("login")  # a deleted account is null
            if author == AUTHOR and (row["body"] or "").startswith(MARK):
                self.ask(f"issues/comments/{int(row['id'])}", method="PATCH", body=body)
                return "updated"
        self.ask(f"issues/{number}/comments", method="POST", body=body)
        return "commented"

    def propose(self, branch: str, title: str, body: str) -> str:
        """Open a pull request from a branch of this repository to main, or tell of the one that is open."""
        owner = self.repository.partition("/")[0]
        for row in self.rows("pulls", state="open", base="main", head=f"{owner}:{branch}"):
            if (row["head"]["ref"], row["base"]["ref"]) == (branch, "main"):
                return f"pull request {int(row['number'])} has it now"
        made = json.loads(self.ask("pulls", method="POST", title=title, head=branch, base="main", body=body))
        return f"pull request {int(made['number'])} was opened"

    def report(self, run: int) -> bytes:
        """The report that a run left."""
        for artefact in self.get(f"actions/runs/{run}/artifacts")["artifacts"]:
            if artefact["name"] == "report" and not artefact["expired"]:
                return unpack(self.ask(f"actions/artifacts/{int(artefact['id'])}/zip"))
        raise DataError("the run left no report", got=run)


def unpack(data: bytes) -> bytes:
    """The report in an artefact; nothing is written anywhere, and no more is unpacked than a report may be long."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open("report.json") as file:
            return file.read(LARGEST + 1)
    except Exception as error:  # a broken archive raises whatever zipfile and three decompressors can
        raise DataError(f"the artefact holds no report: {type(error).__name__}: {one_line(str(error), 300)}") from error


def post(github: GitHub, registry: Path, run: Mapping[str, str]) -> str:
    """Show a report in its pull request; a missing or bad one is reported there, too."""
    if run["RUN_PATH"].partition("@")[0] != WORKFLOW:  # any workflow may be called `score`
        return f"the run is of {run['RUN_PATH']}, not of {WORKFLOW}: nothing to show"
    number = github.open_pull_request(run["HEAD_OWNER"], run["HEAD_BRANCH"], run["HEAD_SHA"])
    if number is None:
        return "no open pull request has this commit: a newer one was pushed, or it was closed"
    try:
        parsed, records = parse(github.report(int(run["RUN_ID"])))
        if parsed.head != run["HEAD_SHA"]:
            raise DataError("the report is about another commit", got=parsed.head)
        body = render(parsed, records, registry, github.core_files(number, run["HEAD_SHA"]))
    except NeucoError as error:
        message = f"The report cannot be shown: {text(error)}. See the run's log: {text(run['RUN_URL'])}"
        body = f"{MARK}\n\n## ❌ No check completed\n\n{message}\n\n**Next:** push again, or ask a maintainer.\n"
    return f"{github.comment(number, body)} on {number}"
