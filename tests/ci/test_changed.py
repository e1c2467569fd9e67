"""What a pull request touches: paths are sorted out by pure functions, and read from git whatever they look like."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from ci.__main__ import cli
from ci.changed import Changes, changed, sort_out
from ci.git import blobs, check_out, uncommitted
from neuco_core.contract.checks.review import LARGEST_FILE, deceptive, odd_path
from neuco_core.files import LARGEST_DATA
from tests.ci.helpers import git

OLD = {"neuco_tasks/old"}


def sorted_out(*paths: str, before: set[str] = OLD, after: set[str] = OLD) -> Changes:
    return sort_out(paths, before, after)


def how(changes: Changes) -> dict[str, str]:
    return {item.folder: item.how for item in changes.plugins}


def test_added_changed_and_removed_plugins_are_told_apart() -> None:
    """A plugin without its init is still there: what is left of it is judged, and fails."""
    paths = ("neuco_tasks/new/__init__.py", "neuco_tasks/old/labels.csv", "neuco_methods/m/a.py", "neuco_tasks/o-2/x")
    changes = sorted_out(*paths, before={*OLD, "neuco_tasks/o-2"}, after={*OLD, "neuco_tasks/new", "neuco_methods/m"})
    assert how(changes) == {
        "neuco_methods/m": "added", "neuco_tasks/new": "added", "neuco_tasks/o-2": "removed",
        "neuco_tasks/old": "changed",
    }  # fmt: skip
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
def test_a_change_of_the_card_and_the_tests_alone_is_told(names: list[str], cards: tuple[str, ...]) -> None:
    assert sorted_out(*names, after={*OLD, "neuco_tasks/new"}).cards == cards


def test_pins_and_suites_are_data_and_numbers_of_extensions_submissions() -> None:
    changes = sorted_out("registry/pins.json", "registry/suites/x.toml")
    assert (changes.only_data, len(changes.core)) == (True, 2)
    assert not sorted_out("registry/schema/record-2.json", "registry/pins.json").only_data
    changes = sorted_out("registry/geobench/new/runs.csv", "registry/geobench/new/run.py")
    assert (changes.submissions, changes.core) == (("geobench/new",), ("registry/geobench/new/run.py",))


@pytest.mark.parametrize("name", ["Böse Task", "UPPER", "a b", "-x", "..x", "x.y", "__pycache__", "ｏｌｄ"])
def test_directories_whose_names_are_no_ids_are_named(name: str) -> None:
    changes = sorted_out(f"neuco_tasks/{name}/__init__.py", f"neuco_tasks/{name}/more.py")
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
        "numpy/__init__.py",
        "pyproject.toml",
        ".gitattributes",
        "docs/.gitattributes",
        ".github/workflows/score.yml",
        "registry/suites/mini.toml",
        "docs",
        "tests",
    ],
)
def test_whatever_is_not_known_to_be_harmless_is_core(path: str) -> None:
    changes = sorted_out(path)
    assert (changes.core, changes.plugins, changes.other) == ((path,), (), ())


@pytest.mark.parametrize(
    ("field", "paths"),
    [
        ("other", ("docs/page.md", "tests/x/test_y.py", "README.md", "examples/e/x.py", "LICENSE")),
        ("protected", ("registry/records/m.jsonl", "registry/results/m/x.json", "registry/leaderboards/x.json")),
        ("protected", ("registry/withdrawn/x", "registry/catalog.json")),
    ],
)
def test_what_is_harmless_and_what_only_main_writes(field: str, paths: tuple[str, ...]) -> None:
    changes = sorted_out(*paths)
    assert (getattr(changes, field), changes.core, changes.plugins) == (paths, (), ())


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *((name, "") for name in ("a b.csv", 'quote".csv', "-n", "sub/[1].csv")),
        *((name, "printable ASCII") for name in ("日本.csv", "tab\t.csv", "line\nbreak.csv", "\x1b[1m.csv")),
        *((name, "printable ASCII") for name in ("a\u202evsc.py", "a\u200b.csv", "\\xff.csv", "end .csv/x ", " a/x")),
        *((name, "compiled") for name in ("x.cpython-311-x86_64-linux-gnu.so", "sub/__init__.pyc", "X.SO")),
        (".gitattributes", "tells git what to hide"),
    ],
)
def test_a_file_name_that_hides_something_is_refused(name: str, reason: str) -> None:
    message = odd_path(f"neuco_tasks/old/{name}")
    assert (bool(message), reason in message) == (bool(reason), True)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("labels.csv", "id,label\r\na,1\r\n", ""),
        ("labels.csv", "\ufeffid,label\ra,1\r", ""),
        ("labels.csv", "id,label\na\u200b,1\n", "U+200B, in line 2"),
        ("labels.csv", "id,label\x1b[2K\n", "U+001B, in line 1"),
        ("notes.txt", "seen\runseen\n", "U+000D, in line 1"),
        ("message.json", '{"a": "\u202e"}\n', "U+202E, in line 1"),
        ("data.bin", "\x00\x1b\u202e", ""),
        ("big.py", "x = 1\n" * 170_000, "at most 1000000"),
        ("wide.py", "x = 1" + " " * 3000 + "; evil()\n", "line 1 has"),
        ("other.py", "# coding: utf-7\n", "declares the encoding utf-7"),
        ("alike.py", "ｅval('1')\n", "which Python reads as another"),
        ("plain.py", "größe = 'ｅ'\n", ""),
        ("latin.py", "\udcff", "source that is not UTF-8"),
        ("latin.npy", "\udcff", ""),
    ],
)
def test_what_a_reviewer_does_not_see_is_named(name: str, content: str, reason: str) -> None:
    message = deceptive(name, os.fsencode(content))
    assert (bool(message), reason in message) == (bool(reason), True), message


DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">{}</svg>'
ACTIVE = {
    "<script>alert(1)</script>": "<script>",
    "<h:script xmlns:h='http://www.w3.org/1999/xhtml'>alert(1)</h:script>": "<script>",
    "<foreignObject><p/></foreignObject>": "<foreignObject>",
    "<g onclick='alert(1)'/>": "onclick='alert(1)'",
    "<set attributeName='onclick' to='alert(1)'/>": "<set>",
    "<use xlink:href='javascript:alert(1)'/>": "href='javascript:alert(1)'",
    "<use xlink:href='data:,x' href='#a'/>": "href='data:,x'",
    '<style>g { mask: image-set("http:example.org" 1x) }</style>': "a style that reaches outside",
    "<use href='https://example.org/x.svg#a'/>": "href='https://example.org/x.svg#a'",
    "<rect fill='url(https://example.org/x)'/>": "fill='url(https://example.org/x)'",
    "<style>@im<!-- -->port 'https:example.org'</style>": "a style that reaches outside",
    "<style>g { background: u\\72l(x) }</style>": "a style that reaches outside",
    "<style>g { fill: u<title/>rl(https:example.org) }</style>": "a style that reaches outside, or has elements in it",
    "<?xml-stylesheet href='x.css'?>": "<?xml-stylesheet",
    "<g>": "no XML",
    # Copies of copies, of which each line makes ten times as many.
    "<path id='a'/><use id='b' href='#a'/><use href='#b'/>": "href='#b', a copy of more than one shape",
    "<g id='a'><use href='#b'/></g><use xlink:href='#a'/>": "href='#a', a copy of more than one shape",
    "<marker id='a'><path marker-mid='url(#b)'/></marker>": "<marker> that refers to what is drawn elsewhere",
    "<clipPath id='a'><use href='#b'/></clipPath>": "<clipPath> that refers to what is drawn elsewhere",
    "<style>path { marker-mid: URL(#b) }</style>": "a style that reaches outside",
}


@pytest.mark.parametrize(("inside", "reason"), ACTIVE.items())
def test_a_drawing_that_does_more_than_draw_is_refused(inside: str, reason: str) -> None:
    message = deceptive("docs/why/x.svg", DRAWING.format(inside).encode())
    assert message.startswith(f"not a plain drawing: {reason}")


@pytest.mark.parametrize("inner", ['<!ENTITY x "alert(1)">', '<!ATTLIST svg onload CDATA "alert(1)">'])
def test_a_drawing_declares_nothing(inner: str) -> None:
    message = deceptive("x.svg", f"<!DOCTYPE svg [{inner}]>{DRAWING.format('')}".encode())
    assert message.endswith(inner.split(maxsplit=1)[0])


def test_a_drawing_is_read_in_the_encoding_that_it_declares() -> None:
    """Where a browser reads GBK, the end of the first section is swallowed, and the comment is none."""
    hidden = "<desc><![CDATA[中]]></desc><!-- ]]></desc><script>alert(1)</script> -->"
    assert deceptive("x.svg", f'<?xml version="1.0" encoding="gbk"?>{DRAWING.format(hidden)}'.encode())
    assert deceptive("x.svg", DRAWING.format("<script/>").encode("utf-16")) == "source that is not UTF-8"


def test_our_own_drawings_only_draw(root: Path) -> None:
    drawings = [root / "neuco_core/site/assets/icon.svg", *root.glob("docs/**/*.svg")]
    assert len(drawings) > 3
    assert [deceptive(path.name, path.read_bytes()) for path in drawings] == [""] * len(drawings)


def write(path: Path, text: str = "text\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def commit(repo: Path) -> None:
    git(repo, "add", "--all", "--force")
    git(repo, "commit", "--quiet", "--allow-empty", "-m", "step")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet", "repo")
    folder = tmp_path / "repo"
    for name in ("neuco_tasks/__init__.py", "neuco_tasks/old/__init__.py", "neuco_tasks/old/labels.csv"):
        write(folder / name, name)
    commit(folder)
    git(folder, "switch", "--quiet", "-c", "branch")
    return folder


def after(repo: Path, *names: str) -> Changes:
    for name in names:
        write(repo / name)
    commit(repo)
    return changed(repo, "main")


def test_a_rename_is_a_removal_and_an_addition_and_a_move_touches_both(repo: Path) -> None:
    write(repo / "neuco_tasks/new/__init__.py")
    git(repo, "mv", "neuco_tasks/old/labels.csv", "neuco_tasks/new/labels.csv")
    assert how(after(repo)) == {"neuco_tasks/new": "added", "neuco_tasks/old": "changed"}
    git(repo, "mv", "neuco_tasks/old", "neuco_tasks/renamed")
    assert how(after(repo)) == {
        "neuco_tasks/new": "added", "neuco_tasks/old": "removed", "neuco_tasks/renamed": "added",
    }  # fmt: skip


def test_what_is_not_committed_is_said_not_to_be_judged(repo: Path) -> None:
    after(repo, "neuco_tasks/new/__init__.py", "README.md")
    write(repo / "README.md", "of no contribution")
    assert uncommitted(repo) == ""
    write(repo / "neuco_tasks/new/__init__.py", "changed")
    write(repo / "neuco_tasks/ghost/__init__.py")
    done = CliRunner().invoke(cli, ["changed", "--repo", str(repo), "--since", "main"])
    assert "ghost" not in done.stdout
    both = "neuco_tasks/new/__init__.py, neuco_tasks/ghost/"
    assert done.stderr == f"not committed, so not judged: {both}. Commit it, and run this again\n"


def test_a_file_name_that_is_no_text_is_refused_and_shown(repo: Path) -> None:
    write(repo / "docs" / os.fsdecode(b"\xff.md"))
    changes = after(repo, "neuco_tasks/old/" + os.fsdecode(b"\xff.csv"), "neuco_tasks/old/日本.csv")
    assert [path for path, _ in changes.unreadable] == [
        "neuco_tasks/old/\\u65e5\\u672c.csv",
        "neuco_tasks/old/\\xff.csv",
    ]
    assert changes.other == ("docs/\\xff.md",)


def names_of(repo: Path, size: int, names: int, folder: str = "neuco_tasks/old") -> None:
    """A commit with one file of zeros under many names; git packs it well, and no file is made."""
    (repo / "zeros").write_bytes(bytes(size))
    blob = git(repo, "hash-object", "-w", "zeros").strip()
    (repo / "zeros").unlink()
    for number in range(names):
        git(repo, "update-index", "--add", "--cacheinfo", f"100644,{blob},{folder}/{number}.bin")
    git(repo, "commit", "--quiet", "-m", "zeros")


def test_a_file_that_is_too_large_is_not_read_and_one_of_a_plugin_is_to_be_published(repo: Path) -> None:
    names_of(repo, LARGEST_FILE + 1, 1, "docs")
    names_of(repo, LARGEST_DATA + 1, 1)
    reasons = dict(changed(repo, "main").unreadable)
    assert "at most 50 MB" in reasons["docs/0.bin"]
    assert "at most 1 MB in a plugin: publish it" in reasons["neuco_tasks/old/0.bin"]


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
    monkeypatch.setattr("ci.changed.MOST_FILES", 11)
    ((path, reason),) = changed(repo, "main").unreadable
    assert (path, "more than anybody reviews" in reason) == ("12 files", True)


def link(repo: Path) -> None:
    (repo / "neuco_tasks/old/more.csv").symlink_to("/etc/passwd")


def file_becomes_link(repo: Path) -> None:
    (repo / "neuco_tasks/old/labels.csv").unlink()
    (repo / "neuco_tasks/old/labels.csv").symlink_to("__init__.py")


def submodule(repo: Path) -> None:
    head = git(repo, "rev-parse", "HEAD").strip()
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{head},neuco_tasks/old/more")


@pytest.mark.parametrize("change", [link, file_becomes_link, submodule])
def test_what_hides_its_content_is_named_and_may_go(repo: Path, change: Callable[[Path], None]) -> None:
    change(repo)
    if change is not submodule:
        git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "-m", "hide")
    ((path, reason),) = changed(repo, "main").unreadable
    assert "a link or a submodule" in reason
    git(repo, "branch", "--force", "main")
    git(repo, "rm", "--quiet", "--cached", path)
    git(repo, "commit", "--quiet", "-m", "remove")
    assert changed(repo, "main").unreadable == ()


def test_what_main_did_meanwhile_is_not_the_pull_requests(repo: Path) -> None:
    after(repo, "neuco_tasks/new/__init__.py")
    git(repo, "switch", "--quiet", "main")
    after(repo, "neuco_tasks/other/__init__.py", "neuco_core/y.py")
    git(repo, "switch", "--quiet", "branch")
    for _ in range(2):
        changes = changed(repo, "main")
        assert (how(changes), changes.core) == ({"neuco_tasks/new": "added"}, ())
        git(repo, "merge", "--quiet", "-m", "Merge main", "main")


def test_the_commit_is_judged_and_not_the_working_tree(repo: Path, tmp_path: Path) -> None:
    after(repo, "neuco_tasks/new/__init__.py")
    write(repo / "neuco_tasks/new/__init__.py", "uncommitted")
    write(repo / "neuco_tasks/new/untracked.py")
    before = git(repo, "status", "--porcelain")
    folder = check_out(repo, "HEAD", tmp_path / "out")
    assert (folder / "neuco_tasks/new/__init__.py").read_text() == "text\n"
    assert not (folder / "neuco_tasks/new/untracked.py").exists()
    assert git(repo, "status", "--porcelain") == before
