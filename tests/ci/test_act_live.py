"""Release and Pages, run by act as far as they can run here: everything but the package index and GitHub itself.

The stand-ins are those of ``test_act``, and one for ``gh``, which notes what it was asked to do.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ci.fake_github import REPOSITORY, fake_github
from tests.ci.going_live import TAG, live
from tests.ci.helpers import git
from tests.ci.test_act import Act

pytestmark = pytest.mark.slow
GH = """#!/bin/sh
set -eu
test "$GH_REPO" = "{repository}"
printf '%s\\n' "$@" >"{folder}/gh.txt"
"""


@pytest.fixture(scope="module")
def act(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Act]:
    folder = tmp_path_factory.mktemp("live")
    with fake_github() as server:
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


def test_a_tag_that_is_not_the_version_goes_nowhere(act: Act, tmp_path: Path) -> None:
    act.artefacts = tmp_path / "artefacts"
    done = release(act, "v0.2.0")
    assert done.returncode != 0
    assert "v0.2.0 cannot be released: the wheel's version is 0.1.0" in done.stdout
    assert not (act.artefacts / "index").exists()


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
    assert (served / "maintaining.html").is_file()


def test_without_boards_nothing_is_deployed(act: Act, tmp_path: Path) -> None:
    act.artefacts = tmp_path / "artefacts"
    act.artefacts.mkdir()
    done = pages(act)
    assert done.returncode != 0
    assert "Failure - Main Fetch the boards" in done.stdout
    assert not (act.artefacts / "deployed").exists()
