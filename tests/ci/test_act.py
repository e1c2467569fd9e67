"""The workflows themselves, run by act on this machine against the rehearsal's upstream.

act cannot fetch actions without a network, so each has a stand-in in ``tests/ci/actions`` that does the
same with files; ``ci/setup.sh``, ``ci/parts.sh`` and ``sudo`` are stand-ins too, because this machine is set up
already. All other steps run as they are. What act does not do: GitHub's permissions and concurrency groups, and the
event ``workflow_run`` that follows a real run; it is given as a file instead.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ci.comment import MARK
from ci.report import parse
from tests.ci.fake_github import REPOSITORY, FakeGitHub, zipped
from tests.ci.going_live import TAG, live
from tests.ci.helpers import ROOT, Upstream, fresh_cache, git, method, need_bubblewrap
from tests.ci.test_workflows import WORKFLOWS, tool

ACTIONS = ROOT / "tests" / "ci" / "actions"
NUMBER = 7

pytestmark = pytest.mark.slow


class Act:
    """Runs workflows of an upstream's main branch."""

    def __init__(self, upstream: Upstream, folder: Path, server: FakeGitHub) -> None:
        self.upstream, self.folder, self.server = upstream, folder, server
        self.program = tool("act")
        self.artefacts = folder / "artefacts"
        self.cache = fresh_cache(folder / "neuco-cache")
        (folder / "bin").mkdir()
        # act takes the folder that it runs in for the checkout, whose remote must be GitHub's; git finds ours instead.
        address = f"https://github.com/{REPOSITORY}.git"
        (folder / "gitconfig").write_text(f'[url "{upstream.bare}"]\n\tinsteadOf = {address}\n')
        sudo = folder / "bin" / "sudo"
        sudo.write_text('#!/bin/sh\nexec "$@"\n')
        sudo.chmod(0o755)

    def run(self, event: str, name: str, values: dict[str, Any], *options: str) -> subprocess.CompletedProcess[str]:
        path = self.folder / f"{name}-event.json"
        path.write_text(json.dumps(values))
        checkout = self.folder / f"{name}-checkout"
        shutil.rmtree(checkout, ignore_errors=True)  # of the run before
        git(self.folder, "clone", "--quiet", str(self.upstream.bare), str(checkout))
        git(checkout, "remote", "set-url", "origin", f"https://github.com/{REPOSITORY}.git")
        command = [self.program, event, "-W", f".github/workflows/{name}.yml", "-e", str(path), "--pull=false"]
        command += ["-P", "ubuntu-latest=-self-hosted", "-s", "GITHUB_TOKEN=secret", *self._actions(), *options]
        for key, value in self._variables().items():
            command += ["--env", f"{key}={value}"]
        path_variable = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path_variable, "HOME": str(self.folder / "home")}
        environment |= {"XDG_CACHE_HOME": str(self.folder / "cache"), "GIT_CONFIG_GLOBAL": "/dev/null"}
        (self.folder / "home").mkdir(exist_ok=True)
        return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=900)

    def _variables(self) -> dict[str, str]:
        return {
            "REHEARSAL_UPSTREAM": str(self.upstream.bare),
            "REHEARSAL_ARTEFACTS": str(self.artefacts),
            "GITHUB_API_URL": self.server.base,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GIT_CONFIG_GLOBAL": str(self.folder / "gitconfig"),
            "NEUCO_CACHE": self.cache,
        }

    def _actions(self) -> list[str]:
        used = {action for path in WORKFLOWS for action in re.findall(r"[\w-]+/[\w-]+@\w{40}", path.read_text())}
        pairs = ((name, ACTIONS / name.split("/")[1].split("@")[0]) for name in sorted(used))
        return [part for name, folder in pairs for part in ("--local-repository", f"{name}={folder}")]


def with_workflows(folder: Path) -> Upstream:
    """An upstream with the real workflows; only the set-up of Python is another."""

    def prepare(fork: Path) -> None:
        shutil.copytree(ROOT / ".github", fork / ".github")
        (fork / "ci" / "setup.sh").write_text(f'echo "{Path(sys.executable).parent}" >>"$GITHUB_PATH"\n')
        (fork / "ci" / "parts.sh").write_text("exit 0\n")

    upstream = Upstream(folder)
    upstream.merge(upstream.pull_request("workflows", prepare))
    return upstream


def test_a_pull_request_from_its_score_to_the_board(tmp_path: Path) -> None:
    need_bubblewrap()
    with FakeGitHub() as server:
        upstream = with_workflows(tmp_path / "own")
        act = Act(upstream, tmp_path, server)
        fork = upstream.pull_request("plain", method)
        git(fork, "push", "--quiet", str(upstream.bare), f"HEAD:refs/pull/{NUMBER}/head")
        base, head = git(upstream.bare, "rev-parse", "main").strip(), git(fork, "rev-parse", "HEAD").strip()
        pull = {"number": NUMBER, "base": {"sha": base, "ref": "main"}, "head": {"sha": head, "ref": "plain"}}

        done = act.run("pull_request", "score", {"action": "opened", "number": NUMBER, "pull_request": pull})
        report = act.artefacts / "report" / "report.json"
        assert (done.returncode, report.is_file()) == (0, True), done.stdout[-5000:] + done.stderr[-2000:]
        parsed, records = parse(report.read_bytes())
        assert (parsed.green, parsed.sandbox, parsed.head, len(records)) == (True, "bubblewrap", head, 1)

        server.artefacts = [zipped(report.read_bytes())]
        server.pulls.append({**pull, "owner": "someone", "branch": "plain", "state": "open"})
        server.files = [{"filename": name} for name in git(fork, "diff", "--name-only", base).splitlines()]
        run = {
            "id": 0,
            "path": ".github/workflows/score.yml",
            "event": "pull_request",
            "head_branch": "plain",
            "head_sha": head,
            "html_url": "https://example.org",
        }
        run["head_repository"] = {"owner": {"login": "someone"}}
        done = act.run("workflow_run", "comment", {"action": "completed", "workflow_run": run})
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
        assert [comment["body"][: len(MARK)] for comment in server.comments] == [MARK]
        assert "Ready for review" in server.comments[0]["body"]

        upstream.merge(fork)
        merge = git(upstream.bare, "rev-parse", "main").strip()
        done = act.run("push", "reconcile", {"before": base, "after": merge, "ref": "refs/heads/main"})
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
        assert ("plain", "digits_class") in [record.key[:2] for record in upstream.records()]
        assert (act.artefacts / "site" / "index.html").is_file()


GH = """#!/bin/sh
set -eu
test "$GH_REPO" = "{repository}"
printf '%s\\n' "$@" >"{folder}/gh.txt"
"""


@pytest.fixture(scope="module")
def act(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Act]:
    folder = tmp_path_factory.mktemp("live")
    with FakeGitHub() as server:
        act = Act(live(folder / "own"), folder, server)
        gh = folder / "bin" / "gh"
        gh.write_text(GH.format(repository=REPOSITORY, folder=folder))
        gh.chmod(0o755)
        yield act


def release(act: Act, tag: str) -> subprocess.CompletedProcess[str]:
    commit = git(act.upstream.bare, "rev-parse", "main").strip()
    values = {"ref": f"refs/tags/{tag}", "after": commit, "repository": {"full_name": REPOSITORY}}
    return act.run("push", "release", values, "--matrix", "python:3.11")


def test_a_tag_becomes_a_release(act: Act) -> None:
    done = release(act, TAG)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "v0.1.0: ready to be released" in done.stdout
    assert "3 of 3 scored now" in done.stdout, "the wheel was tried"
    assert {path.name for path in (act.artefacts / "index").iterdir()} == {
        "neuco-0.1.0-py3-none-any.whl",
        "neuco-0.1.0.tar.gz",
    }
    asked = (act.folder / "gh.txt").read_text().split("\n")
    assert asked[:3] == ["release", "create", TAG]
    assert "dist/neuco-0.1.0-py3-none-any.whl" in asked
    assert (act.artefacts / "notes" / "notes.md").read_text().startswith("### Added\n")


def pages(act: Act, **changed: Any) -> subprocess.CompletedProcess[str]:
    run = {"id": 1, "conclusion": "success", "event": "push", "head_branch": "main"}
    run |= {"head_repository": {"full_name": REPOSITORY}, "path": ".github/workflows/reconcile.yml"}
    values = {"action": "completed", "workflow_run": run | changed, "repository": {"full_name": REPOSITORY}}
    return act.run("workflow_run", "pages", values)


def test_boards_and_documentation_go_to_pages_together(act: Act, tmp_path: Path) -> None:
    act.artefacts = tmp_path / "artefacts"
    boards = act.artefacts / "site"
    boards.mkdir(parents=True)
    (boards / "index.html").write_text("the boards of main")

    for other in ({"event": "pull_request"}, {"head_repository": {"full_name": "someone/neuco"}}):
        assert "Check out main" not in pages(act, **other).stdout, "a pull request can make boards of its own"

    done = pages(act)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    served = act.artefacts / "deployed"
    assert (served / "leaderboard" / "index.html").read_text() == "the boards of main"
    assert 'href="leaderboard/index.html"' in (served / "index.html").read_text()
    assert (served / "maintain" / "maintaining.html").is_file()
