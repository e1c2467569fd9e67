"""Which commits on main are publishing's own, where main takes no push: on real git, with made-up records."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ci.own import MESSAGE, Own, edits, last_own, propose

from ci.embeddings import Entry, push_index, read_index, write_index
from neuco_core.errors import DataError
from tests.ci.helpers import WHO, git

PACK = "registry/records/one/pack.json.xz"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of a bare repository whose main has one commit."""
    for name, value in {**WHO, "GIT_CONFIG_GLOBAL": "/dev/null"}.items():
        monkeypatch.setenv(name, value)
    git(tmp_path, "init", "--quiet", "--bare", "upstream.git")
    git(tmp_path, "clone", "--quiet", "upstream.git", "repo")
    merge(tmp_path / "repo", "one")
    return tmp_path / "repo"


def tip(repo: Path) -> str:
    return git(repo, "rev-parse", "HEAD").strip()


def merge(repo: Path, name: str, content: str = "") -> str:
    """A commit on main as GitHub makes it; with ``content``, one that changes the registry."""
    path = repo / (PACK if content else f"neuco_methods/{name}/__init__.py")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content or name)
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "-m", f"Merge {name}")
    git(repo, "push", "--quiet", "origin", "HEAD:refs/heads/main")
    return tip(repo)


def proposed(repo: Path, content: str) -> None:
    """What publishing proposes; the checkout stays on main."""
    start = tip(repo)
    path = repo / PACK
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "-m", "Registry")
    propose(repo, start)
    git(repo, "reset", "--quiet", "--hard", start)


def test_what_an_earlier_proposal_had_is_an_edit_once_a_later_one_was_merged(repo: Path) -> None:
    starts = []
    for content in ("1 record", "2 records"):
        starts.append(merge(repo, f"method-{content[0]}"))
        proposed(repo, content)
        carried = merge(repo, "registry-update", content)
        assert last_own(repo, carried) == Own(carried, starts[-1])
    back = merge(repo, "roll-back", "1 record")
    own = last_own(repo, back)
    assert own == Own(carried, starts[-1]), "it does not count as ours, and no merge is forgotten or done again"
    assert edits(repo, own, back, "") == [PACK]


def test_an_earlier_proposal_may_be_the_one_that_is_merged(repo: Path) -> None:
    start = tip(repo)
    proposed(repo, "1 record")
    merge(repo, "two")
    proposed(repo, "2 records")
    carried = merge(repo, "registry-update", "1 record")
    assert last_own(repo, carried) == Own(carried, start)


def test_two_runs_that_push_the_index_keep_each_others_entries(repo: Path, tmp_path: Path) -> None:
    """Making the embeddings takes hours, so another run may well have pushed its own meanwhile."""
    first, second, gone = (Entry(name, "content", "https://example.org/x", "0" * 64, 1) for name in "abc")
    (repo / "registry").mkdir()
    write_index(repo / "registry", {"gone/mini": gone})
    (tmp_path / "scratch").mkdir()
    push_index(repo, tmp_path / "scratch")
    clones = [tmp_path / name for name in ("one", "two")]
    for clone in clones:
        git(tmp_path, "clone", "--quiet", "--branch", "main", "upstream.git", clone.name)
    write_index(clones[0] / "registry", {"gone/mini": gone, "first/mini": first})
    write_index(clones[1] / "registry", {"second/mini": second})
    for number, clone in enumerate(clones):
        (tmp_path / f"scratch{number}").mkdir()
        assert push_index(clone, tmp_path / f"scratch{number}") == "pushed"
    git(tmp_path, "clone", "--quiet", "--branch", "main", "upstream.git", "after")
    assert read_index(tmp_path / "after" / "registry") == {"first/mini": first, "second/mini": second}


def test_who_pushes_the_index_must_be_publishing(repo: Path, tmp_path: Path) -> None:
    """Under a maintainer's own name the commit would be refused as an edit, and with it every later merge."""
    bot = "bot@example.org"
    (repo / "registry").mkdir()
    write_index(repo / "registry", {})
    environment = ["env", f"GIT_COMMITTER_EMAIL={bot}", "git", "commit", "--quiet", "--allow-empty", "-m", MESSAGE]
    subprocess.run(environment, cwd=repo, check=True)
    git(repo, "push", "--quiet", "origin", "HEAD:refs/heads/main")
    with pytest.raises(DataError, match=f"expected committer {bot}"):
        push_index(repo, tmp_path)
