"""What reaches main: no commit is lost, and where main takes no push a pull request carries it. What is said on it:
one comment, which is updated, and says loudly if a pull request judges itself. On real git and a loopback server.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ci.comment import ITS_OWN_CLAIM, MARK, render
from ci.git import BRANCH, commit_of, deliver, require_main
from ci.github import GitHub, post
from ci.report import Report
from neuco_core.contract.contract import Finding
from neuco_core.errors import DataError, FetchError
from tests.ci.fake_github import REPOSITORY, FakeGitHub, zipped
from tests.ci.helpers import ROOT, git

SHA, OTHER = "a" * 40, "b" * 40
RUN = {
    "HEAD_OWNER": "someone",
    "HEAD_BRANCH": "a b&head=x;$(y)",
    "HEAD_SHA": SHA,
    "RUN_ID": "0",
    "RUN_PATH": ".github/workflows/score.yml",
    "RUN_URL": "https://example.org/run",
}
GREEN = Report(SHA, SHA, "bubblewrap", (), (Finding("nothing", "pull request", "ok", "fine"),), (), (), 1.0, 1)


@pytest.fixture
def server() -> Iterator[FakeGitHub]:
    with FakeGitHub() as state:
        state.pulls.append(pull())
        yield state


def pull(**more: object) -> dict[str, object]:
    fields = {"number": 7, "owner": "someone", "branch": RUN["HEAD_BRANCH"], "state": "open", "head": {"sha": SHA}}
    return {**fields, "base": {"ref": "main"}, **more}


def github(server: FakeGitHub) -> GitHub:
    return GitHub(REPOSITORY, "secret", server.base)


def say(server: FakeGitHub, folder: Path, report: bytes | None = None, **run: str) -> str:
    server.artefacts = [] if report is None else [zipped(report)]
    (folder / "suites").mkdir(exist_ok=True)
    return post(github(server), folder, {**RUN, **run})


def test_one_comment_that_is_updated(server: FakeGitHub, tmp_path: Path) -> None:
    for number in range(120):  # what people wrote before, over two pages; one of them tries to be us
        body = MARK if number == 3 else "words"
        server.comments.append({"id": number, "user": {"login": "someone"}, "body": body})
    path = f"{RUN['RUN_PATH']}@refs/heads/x"
    assert say(server, tmp_path, GREEN.to_bytes(), RUN_PATH=path) == "commented on 7"
    assert say(server, tmp_path, b"{}") == "updated on 7"
    assert [len(server.comments), server.comments[3]["body"]] == [121, MARK]
    assert server.comments[-1]["body"].startswith(f"{MARK}\n\n## ❌ No check completed")


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (None, "the run left no report"),
        (b"{", "is not JSON"),
        (b'"<b>@all</b>"', "bad"),
        (msgspec.structs.replace(GREEN, head=OTHER).to_bytes(), "about another commit"),
        (GREEN.to_bytes(), ""),
    ],
)
def test_what_is_shown_for_a_missing_bad_or_other_report(
    server: FakeGitHub, tmp_path: Path, report: bytes | None, message: str
) -> None:
    say(server, tmp_path, report)
    body = server.comments[0]["body"]
    assert ("✅" in body) == (report == GREEN.to_bytes())
    assert message in body
    assert "@all" not in body


@pytest.mark.parametrize(
    ("run", "base", "message"),
    [
        ({"HEAD_SHA": OTHER}, "main", "no open pull request"),
        ({"HEAD_OWNER": "other"}, "main", "no open pull request"),
        ({"HEAD_BRANCH": "other"}, "main", "no open pull request"),
        ({}, "old", "no open pull request"),
        ({"RUN_PATH": ".github/workflows/mine.yml"}, "main", "nothing to show"),
    ],
)
def test_a_run_that_is_out_of_date_or_of_another_workflow_says_nothing(
    server: FakeGitHub, tmp_path: Path, run: dict[str, str], base: str, message: str
) -> None:
    server.pulls[0] |= {"base": {"ref": base}}
    assert message in say(server, tmp_path, GREEN.to_bytes(), **run)
    assert server.comments == []


@pytest.mark.parametrize(
    "row",
    [
        {"filename": ".github/workflows/score.yml"},
        {"filename": "ci/report.py"},
        {"filename": "neuco_core/scoring/scorer.py"},
        {"filename": "registry/suites/mini.toml"},
        {"filename": "docs/x.md", "previous_filename": "ci/evaluate.py", "status": "renamed"},
    ],
)
def test_a_pull_request_that_judges_itself_is_never_called_ready(
    server: FakeGitHub, tmp_path: Path, row: dict[str, str]
) -> None:
    """The report is its own work, and says nothing of it: what GitHub says counts."""
    server.files = [{"filename": f"neuco_methods/plain/{number}.csv"} for number in range(150)] + [row]
    say(server, tmp_path, GREEN.to_bytes())
    (body,) = [comment["body"] for comment in server.comments]
    assert body.splitlines()[2] == f"## ⚠️ {ITS_OWN_CLAIM}"
    assert "✅ Ready" not in body


def test_a_plugin_alone_is_ready_unless_github_lists_only_a_part_of_it(server: FakeGitHub, tmp_path: Path) -> None:
    server.files = [{"filename": "neuco_methods/plain/__init__.py"}, {"filename": "docs/x.md"}]
    say(server, tmp_path, GREEN.to_bytes())
    assert server.comments[0]["body"].splitlines()[2] == "## ✅ Ready for review"
    server.files = [{"filename": f"neuco_methods/plain/{number}.csv"} for number in range(3001)]
    say(server, tmp_path, GREEN.to_bytes())
    assert server.comments[0]["body"].splitlines()[2] == f"## ⚠️ {ITS_OWN_CLAIM}"


def test_a_report_that_admits_it_is_not_called_ready(tmp_path: Path) -> None:
    (tmp_path / "suites").mkdir()
    green = msgspec.structs.replace(GREEN, core=("ci/x.py",))
    assert f"## ⚠️ {ITS_OWN_CLAIM}" in render(green, [], tmp_path)
    bad = Finding("a", "b", "failed", "c")
    red = render(msgspec.structs.replace(green, general=(bad,)), [], tmp_path)
    assert "## ❌ 1 check failed" in red
    assert ITS_OWN_CLAIM in red


def test_accounts_that_were_deleted(server: FakeGitHub, tmp_path: Path) -> None:
    server.pulls[0] |= {"user": None, "owner": None, "head": {"sha": SHA, "repo": None, "user": None}}
    server.comments.append({"id": 0, "user": None, "body": MARK})
    server.comments.append({"id": 1, "user": {"login": "github-actions[bot]"}, "body": None})
    assert say(server, tmp_path, GREEN.to_bytes(), HEAD_OWNER="") == "commented on 7"
    assert server.comments[0]["body"] == MARK


def test_the_store_of_artefacts_does_not_get_the_token(server: FakeGitHub, tmp_path: Path) -> None:
    say(server, tmp_path, GREEN.to_bytes())
    tokens = {path.startswith("/elsewhere"): token for _, path, token in server.requests}
    assert tokens == {False: "Bearer secret", True: None}


def test_an_answer_that_is_none_is_an_error(server: FakeGitHub) -> None:
    with pytest.raises(FetchError, match="404"):
        github(server).ask("nothing")
    server.artefacts = [b"<html>"]
    with pytest.raises(FetchError, match="no valid answer"):
        github(server).get("actions/artifacts/0/zip")


def test_the_command_needs_its_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    with pytest.raises(DataError, match="is not set"):
        GitHub.from_environment()


def test_showing_a_report_imports_no_plugin(tmp_path: Path) -> None:
    """The step with the right to comment runs main's code, and of that only what is needed."""
    (tmp_path / "suites").mkdir()
    (tmp_path / "report.json").write_bytes(GREEN.to_bytes())
    arguments = ["comment", "--report", str(tmp_path / "report.json"), "--registry", str(tmp_path)]
    code = f"""
import sys
from ci.__main__ import cli
cli.main({arguments!r}, standalone_mode=False)
print([name for name in sys.modules if name.startswith(("neuco_tasks.", "neuco_methods.", "ci.sandbox"))])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "[]"), done.stderr


def bare_with_clone(folder: Path) -> Path:
    """A clone of a bare repository whose main has one commit."""
    git(folder, "init", "--quiet", "--bare", "upstream.git")
    git(folder, "clone", "--quiet", "upstream.git", "repo")
    write(folder / "repo" / "registry", "start")
    git(folder / "repo", "add", "--all")
    git(folder / "repo", "commit", "--quiet", "-m", "Start")
    git(folder / "repo", "push", "--quiet", "origin", "HEAD:refs/heads/main")
    return folder / "repo"


def clone(folder: Path, name: str) -> Path:
    git(folder, "clone", "--quiet", "--branch", "main", "upstream.git", name)
    return folder / name


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return bare_with_clone(tmp_path)


def write(registry: Path, name: str, text: str = "x") -> None:
    registry.mkdir(exist_ok=True)
    (registry / name).write_text(text)


def on_branch(repo: Path, branch: str = "main") -> list[str]:
    bare = repo.with_name("upstream.git")
    return [name.partition("/")[2] for name in git(bare, "ls-tree", "-r", "--name-only", branch).split()]


def protect(repo: Path) -> None:
    hook = repo.with_name("upstream.git") / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nwhile read old new ref; do test $ref != refs/heads/main || exit 1; done\n")
    hook.chmod(0o755)


def test_an_update_is_committed_once_and_the_checkout_stays(repo: Path) -> None:
    assert deliver(repo, "Update", lambda registry: write(registry, "new")) == "pushed to main"
    assert on_branch(repo) == ["new", "start"]
    assert (git(repo, "status", "--porcelain"), [path.name for path in (repo / "registry").iterdir()]) == (
        "",
        ["start"],
    )
    assert deliver(repo, "Update", lambda registry: write(registry, "new")) == "main has all of it already"
    assert git(repo, "worktree", "list").count("\n") == 1


def test_of_two_at_once_none_is_lost(repo: Path) -> None:
    clone(repo.parent, "other")
    started = threading.Barrier(2)

    def update(name: str) -> None:
        first = True

        def change(registry: Path) -> None:
            nonlocal first
            write(registry, name)
            if first:  # both have looked at main before one of them pushes
                first = False
                started.wait(30)

        deliver(repo if name == "one" else repo.with_name("other"), "Update", change)

    threads = [threading.Thread(target=update, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert on_branch(repo) == ["one", "start", "two"]


def test_where_main_takes_no_push_a_pull_request_carries_it(repo: Path) -> None:
    protect(repo)
    with FakeGitHub() as server:
        github = GitHub(REPOSITORY, "token", server.base)
        first = deliver(repo, "Update", lambda registry: write(registry, "new"), github.propose)
        again = deliver(repo, "Update", lambda registry: write(registry, "newer"), github.propose)
    assert ("pull request 1 was opened" in first, "pull request 1 has it now" in again) == (True, True)
    (pull,) = server.pulls
    assert (pull["head"]["ref"], pull["base"]["ref"], pull["title"]) == (BRANCH, "main", "Update")
    assert (on_branch(repo), on_branch(repo, BRANCH)) == (["start"], ["newer", "start"]), "the later one has it all"
    assert "open a pull request from it" in deliver(repo, "Update", lambda registry: write(registry, "new"))


def test_only_a_clean_checkout_of_main_may_push(repo: Path) -> None:
    require_main(repo)
    write(repo / "registry", "start", "its registry may differ")
    require_main(repo)
    (repo / "code.py").write_text("1")
    git(repo, "add", "code.py")
    with pytest.raises(DataError, match=r"files of the checkout were edited.*code\.py"):
        require_main(repo)
    git(repo, "commit", "--quiet", "-m", "Mine")
    with pytest.raises(DataError, match="not a checkout of main"):
        require_main(repo)


def test_a_tag_does_not_pass_for_the_branch(repo: Path) -> None:
    """A tag `origin/main` on the pull request's own commit would make every change of it invisible."""
    main = git(repo, "rev-parse", "HEAD").strip()
    git(repo, "fetch", "--quiet", "origin")
    git(repo, "commit", "--quiet", "--allow-empty", "-m", "Mine")
    git(repo, "tag", "origin/main")
    assert commit_of(repo, "origin/main") == main
    with pytest.raises(DataError, match="no such branch"):
        commit_of(repo, "v1")
