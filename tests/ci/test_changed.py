"""What a pull request touches is read from git, whatever its paths look like."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ci.changed import LARGEST_FILE, Changes, changed
from ci.git import blobs, check_out
from neuco_core.files import LARGEST_DATA
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


@pytest.mark.parametrize(
    ("names", "cards"),
    [
        (["neuco_tasks/old/README.md"], ("neuco_tasks/old",)),
        (["neuco_tasks/old/test.py", "neuco_tasks/old/test_more.py", "docs/x.md"], ("neuco_tasks/old",)),
        (["neuco_tasks/old/README.md", "neuco_tasks/old/labels.csv"], ()),
        (["neuco_tasks/old/data/README.md"], ()),
        (["neuco_tasks/old/testing.py"], ()),
        (["neuco_tasks/new/README.md"], ()),
    ],
)
def test_a_change_of_the_card_and_the_tests_alone_is_told(repo: Path, names: list[str], cards: tuple[str, ...]) -> None:
    assert after(repo, *names).cards == cards


def test_pins_and_suites_are_data(repo: Path) -> None:
    changes = after(repo, "registry/pins.json", "registry/suites/x.toml")
    assert (changes.only_data, len(changes.core)) == (True, 2)
    assert not after(repo, "registry/schema/record-2.json").only_data


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


def test_a_plugin_without_its_init_is_still_there(repo: Path) -> None:
    """What is left of it is judged, and fails: a removed plugin leaves nothing behind."""
    git(repo, "rm", "--quiet", "neuco_tasks/old/__init__.py")
    assert how(after(repo)) == {"neuco_tasks/old": "changed"}


@pytest.mark.parametrize("name", ["a b.csv", 'quote".csv', "-n", "sub/[1].csv"])
def test_any_plain_file_name_inside_a_plugin_is_taken(repo: Path, name: str) -> None:
    changes = after(repo, f"neuco_tasks/old/{name}")
    assert (how(changes), changes.unreadable) == ({"neuco_tasks/old": "changed"}, ())


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("日本.csv", "\\u65e5\\u672c.csv"),
        ("tab\t.csv", "tab\\t.csv"),
        ("line\nbreak.csv", "line\\nbreak.csv"),
        ("\x1b[1m.csv", "\\x1b[1m.csv"),
        ("a\u202evsc.py", "a\\u202evsc.py"),
        ("a\u200b.csv", "a\\u200b.csv"),
        (os.fsdecode(b"\xff.csv"), "\\xff.csv"),
        ("end .csv/x ", "end .csv/x "),
        (" folder/x", " folder/x"),
    ],
)
def test_a_file_name_that_cannot_be_seen_is_refused_and_shown(repo: Path, name: str, shown: str) -> None:
    changes = after(repo, f"neuco_tasks/old/{name}")
    assert how(changes) == {"neuco_tasks/old": "changed"}
    ((path, reason),) = changes.unreadable
    assert (path, "printable ASCII" in reason) == (f"neuco_tasks/old/{shown}", True)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("labels.csv", "id,label\r\na,1\r\n", ""),
        ("labels.csv", "\ufeffid,label\ra,1\r", ""),
        ("labels.csv", "id,label\na\u200b,1\n", "U+200B, in line 2"),
        ("labels.csv", "id,label\x1b[2K\n", "U+001B, in line 1"),
        ("notes.txt", "seen\runseen\n", "U+000D, in line 1"),
        ("words.json", '{"a": "\u202e"}\n', "U+202E, in line 1"),
        ("data.bin", "\x00\x1b\u202e", ""),
        ("big.py", "x = 1\n" * 170_000, "at most 1000000"),
    ],
)
def test_hidden_characters_are_found_in_any_text(repo: Path, name: str, content: str, reason: str) -> None:
    path = repo / "neuco_tasks/old" / name
    path.write_bytes(content.encode())
    commit(repo)
    reasons = [words for _, words in changed(repo, "main").unreadable]
    assert len(reasons) == bool(reason)
    assert all(reason in words for words in reasons)


def names_of(repo: Path, size: int, names: int, folder: str = "neuco_tasks/old") -> None:
    """A commit with one file of zeros under many names; git packs it well, and no file is made."""
    (repo / "zeros").write_bytes(bytes(size))
    blob = git(repo, "hash-object", "-w", "zeros").strip()
    (repo / "zeros").unlink()
    for number in range(names):
        git(repo, "update-index", "--add", "--cacheinfo", f"100644,{blob},{folder}/{number}.bin")
    git(repo, "commit", "--quiet", "-m", "zeros")


def test_a_file_that_is_too_large_is_not_read(repo: Path) -> None:
    names_of(repo, LARGEST_FILE + 1, 1, "docs")
    ((path, reason),) = changed(repo, "main").unreadable
    assert (path, "at most 50 MB" in reason) == ("docs/0.bin", True)


def test_a_large_file_of_a_plugin_is_to_be_published_elsewhere(repo: Path) -> None:
    names_of(repo, LARGEST_DATA + 1, 1)
    ((path, reason),) = changed(repo, "main").unreadable
    assert (path, "at most 1 MB in a plugin: publish it" in reason) == ("neuco_tasks/old/0.bin", True)


def test_one_file_under_many_names_is_read_once_and_counts_for_each(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names_of(repo, 1_000_000, 12)
    read = [name for name, _ in blobs(repo, ["HEAD:neuco_tasks/old/0.bin"] * 12)]
    assert len(read) == 1
    assert changed(repo, "main").unreadable == ()
    monkeypatch.setattr("ci.changed.LARGEST_SUM", 11_000_000)
    ((path, reason),) = changed(repo, "main").unreadable
    assert (path, "12 MB" in reason) == ("12 files", True)


def test_more_files_than_anybody_reads_are_refused(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ci.changed.MOST_FILES", 2)
    assert after(repo, "docs/1.md", "docs/2.md").unreadable == ()
    assert [path for path, _ in after(repo, "docs/3.md").unreadable] == ["3 files"]


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
    assert dict(changed(repo, "main").unreadable).keys() == {"neuco_tasks/old/more"}


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
