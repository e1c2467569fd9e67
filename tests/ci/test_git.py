"""What reaches main, on real git: nobody's commit is lost, and where main takes no push a pull request carries it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ci.git import BRANCH, commit_of, deliver, require_main
from ci.github import GitHub
from neuco_core.errors import DataError
from tests.ci.fake_github import REPOSITORY, FakeGitHub
from tests.ci.helpers import git


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
        github = GitHub(REPOSITORY, "token", server.api)
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
