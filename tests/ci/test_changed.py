"""What a pull request touches is read from git, whatever its paths look like."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ci.changed import Changes, changed, check_out
from tests.ci.helpers import git

FILES = ("neuco_tasks/__init__.py", "neuco_tasks/old/__init__.py", "neuco_tasks/old/labels.csv", "neuco_core/x.py")


def write(path: Path, text: str = "text\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def commit(repo: Path) -> None:
    git(repo, "add", "--all", "--force")
    git(repo, "commit", "--quiet", "--allow-empty", "-m", "step")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for name in FILES:
        write(folder / name, name)
    commit(folder)
    git(folder, "switch", "--quiet", "-c", "branch")
    return folder


def after(repo: Path, *names: str) -> Changes:
    for name in names:
        write(repo / name)
    commit(repo)
    return changed(repo, "main")


def how(changes: Changes) -> dict[str, str]:
    return {item.folder: item.how for item in changes.plugins}


def test_added_and_changed_plugins_are_told_apart(repo: Path) -> None:
    changes = after(repo, "neuco_tasks/new/__init__.py", "neuco_tasks/old/labels.csv", "neuco_methods/m/__init__.py")
    wanted = {"neuco_methods/m": "added", "neuco_tasks/new": "added", "neuco_tasks/old": "changed"}
    assert how(changes) == wanted
    assert not any((changes.core, changes.other, changes.protected, changes.bad_names, changes.unreadable))


def test_a_rename_is_a_removal_and_an_addition(repo: Path) -> None:
    git(repo, "mv", "neuco_tasks/old", "neuco_tasks/renamed")
    assert how(after(repo)) == {"neuco_tasks/old": "removed", "neuco_tasks/renamed": "added"}


def test_a_file_that_moves_between_plugins_touches_both(repo: Path) -> None:
    write(repo / "neuco_tasks/new/__init__.py")
    git(repo, "mv", "neuco_tasks/old/labels.csv", "neuco_tasks/new/labels.csv")
    assert how(after(repo)) == {"neuco_tasks/new": "added", "neuco_tasks/old": "changed"}


def test_a_removal(repo: Path) -> None:
    git(repo, "rm", "-r", "--quiet", "neuco_tasks/old")
    assert how(after(repo)) == {"neuco_tasks/old": "removed"}


def test_a_plugin_without_its_init_is_a_removed_one(repo: Path) -> None:
    git(repo, "rm", "--quiet", "neuco_tasks/old/__init__.py")
    assert how(after(repo)) == {"neuco_tasks/old": "removed"}


@pytest.mark.parametrize("name", ["a b.csv", "ä ö.csv", "日本.csv", 'quote".csv', "tab\t.csv", "line\nbreak.csv", "-n"])
def test_any_file_name_inside_a_plugin_is_taken(repo: Path, name: str) -> None:
    assert how(after(repo, f"neuco_tasks/old/{name}")) == {"neuco_tasks/old": "changed"}


def test_a_file_name_that_is_no_text_is_taken(repo: Path) -> None:
    write(repo / "neuco_tasks/old" / os.fsdecode(b"\xff\xfe.csv"))
    write(repo / "docs/x.md")
    write(repo / "docs" / os.fsdecode(b"\xff.md"))
    changes = after(repo)
    assert how(changes) == {"neuco_tasks/old": "changed"}
    assert [path.encode("utf-8") for path in changes.other] == [b"docs/x.md", b"docs/\\xff.md"]


@pytest.mark.parametrize("name", ["Böse Task", "UPPER", "a b", "-x", "..x", "x.y", "__pycache__", "ｏｌｄ"])
def test_directories_whose_names_are_no_ids_are_named(repo: Path, name: str) -> None:
    changes = after(repo, f"neuco_tasks/{name}/__init__.py", f"neuco_tasks/{name}/more.py")
    assert (changes.bad_names, changes.plugins) == ((f"neuco_tasks/{name}",), ())


@pytest.mark.parametrize(
    "path",
    [
        "scripts/neuco_tasks/x/evil.py",
        "neuco_tasks_/x/__init__.py",
        "Neuco_tasks/x/__init__.py",
        "xneuco_tasks/x/__init__.py",
        "neuco_tasks.py",
        "neuco_tasks/evil.py",
        "neuco_tasks/__init__.py",
        "neuco_methods",
        "neuco_core/y.py",
        "ci/sandbox.py",
        "conftest.py",
        "sitecustomize.py",
        "numpy/__init__.py",
        "pyproject.toml",
        ".gitattributes",
        ".github/workflows/score.yml",
        "registry/suites/mini.toml",
        "registry/pins.json",
        "docs",
        "tests",
    ],
)
def test_whatever_is_not_known_to_be_harmless_is_core(repo: Path, path: str) -> None:
    changes = after(repo, path)
    assert (changes.core, changes.plugins, changes.other) == ((path,), (), ())


@pytest.mark.parametrize("path", ["docs/page.md", "tests/x/test_y.py", "README.md", "examples/e/x.py", "LICENSE"])
def test_harmless_files(repo: Path, path: str) -> None:
    assert after(repo, path).other == (path,)


@pytest.mark.parametrize("folder", ["results/m", "leaderboards", "withdrawn/m"])
def test_what_main_writes_is_protected(repo: Path, folder: str) -> None:
    assert after(repo, f"registry/{folder}/x.json").protected == (f"registry/{folder}/x.json",)


def link(repo: Path) -> None:
    (repo / "neuco_tasks/old/more.csv").symlink_to("/etc/passwd")


def folder_link(repo: Path) -> None:
    (repo / "neuco_tasks/evil").symlink_to("/")


def file_becomes_link(repo: Path) -> None:
    (repo / "neuco_tasks/old/labels.csv").unlink()
    (repo / "neuco_tasks/old/labels.csv").symlink_to("__init__.py")


def submodule(repo: Path) -> None:
    head = git(repo, "rev-parse", "HEAD").strip()
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{head},neuco_tasks/old/more")
    git(repo, "commit", "--quiet", "-m", "submodule")


def compiled(name: str) -> Callable[[Path], None]:
    return lambda repo: write(repo / "neuco_tasks/old" / name)


@pytest.mark.parametrize(
    "change",
    [
        link,
        folder_link,
        file_becomes_link,
        compiled("__init__.cpython-311-x86_64-linux-gnu.so"),
        compiled("sub/__init__.pyc"),
        compiled("X.SO"),
    ],
)
def test_what_nobody_can_review_is_named(repo: Path, change: Callable[[Path], None]) -> None:
    change(repo)
    assert len(after(repo).unreadable) == 1


def test_a_submodule_is_named(repo: Path) -> None:
    submodule(repo)
    assert changed(repo, "main").unreadable == ("neuco_tasks/old/more",)


def test_a_link_may_go(repo: Path) -> None:
    link(repo)
    commit(repo)
    git(repo, "branch", "--force", "main")
    (repo / "neuco_tasks/old/more.csv").unlink()
    assert after(repo).unreadable == ()


def test_what_main_did_meanwhile_is_not_the_pull_requests(repo: Path) -> None:
    after(repo, "neuco_tasks/new/__init__.py")
    git(repo, "switch", "--quiet", "main")
    after(repo, "neuco_tasks/other/__init__.py", "neuco_core/y.py")
    git(repo, "switch", "--quiet", "branch")
    assert (how(changed(repo, "main")), changed(repo, "main").core) == ({"neuco_tasks/new": "added"}, ())
    git(repo, "merge", "--quiet", "-m", "Merge main", "main")
    assert (how(changed(repo, "main")), changed(repo, "main").core) == ({"neuco_tasks/new": "added"}, ())


def test_the_commit_is_judged_and_not_the_working_tree(repo: Path, tmp_path: Path) -> None:
    after(repo, "neuco_tasks/new/__init__.py")
    write(repo / "neuco_tasks/new/__init__.py", "uncommitted")
    write(repo / "neuco_tasks/new/untracked.py")
    before = git(repo, "status", "--porcelain")
    folder = check_out(repo, "HEAD", tmp_path / "out")
    assert (folder / "neuco_tasks/new/__init__.py").read_text() == "text\n"
    assert not (folder / "neuco_tasks/new/untracked.py").exists()
    assert git(repo, "status", "--porcelain") == before
