"""The gate before a release: it names everything that is missing, and lets through what is complete."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from ci import release
from ci.release import check, section, the_wheel
from neuco_core.errors import DataError
from tests.ci.going_live import DATE, TAG, fill_in
from tests.ci.helpers import ROOT, ci, git

NEEDED = ("pyproject.toml", "CHANGELOG.md", "CITATION.cff", ".github/CODEOWNERS", "mkdocs.yml")


def make(folder: Path, version: str = "0.1.0", **records: str) -> Path:
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"neuco-{version}-py3-none-any.whl", "w") as wheel:
        for method, text in {"known": "{}\n", **records}.items():
            wheel.writestr(f"neuco_core/_registry/records/{method}.jsonl", text)
    (folder / f"neuco-{version}.tar.gz").write_bytes(b"")
    return folder


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """What a release asks for, as it is in the tree."""
    target = tmp_path / "repo"
    for name in NEEDED:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes((ROOT / name).read_bytes())
    (target / "registry" / "records").mkdir(parents=True)
    (target / "registry" / "records" / "known.jsonl").write_text("{}\n")
    git(target, "init", "--quiet")
    git(target, "add", "--all")
    git(target, "commit", "--quiet", "-m", "Start")
    return target


def test_a_wheel_with_records_of_ones_own_is_refused(repo: Path, tmp_path: Path) -> None:
    fill_in(repo)
    check(make(tmp_path / "dist"), repo, TAG)
    odd = r"files that git does not have so: registry/records/known\.jsonl, registry/records/mine\.jsonl; build it in a"
    with pytest.raises(DataError, match=odd):
        check(make(tmp_path / "dist", known="{1}\n", mine="{}\n"), repo, TAG)


def test_as_long_as_nobody_hosts_it_all_that_is_missing_is_named(repo: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        check(make(tmp_path / "dist"), repo, TAG)
    for word in (
        "set project.urls",
        "CHANGELOG.md has no section '## 0.1.0 (YYYY-MM-DD)'",
        "CITATION.cff does not say 'date-released: YYYY-MM-DD'",
        ".github/CODEOWNERS still has a PLACEHOLDER",
        "mkdocs.yml still has a PLACEHOLDER",
    ):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("tag", "version", "word"),
    [
        ("v0.2.0", "0.1.0", "the wheel's version is 0.1.0"),
        ("v0.1.0", "0.2.0", "the wheel's version is 0.2.0"),
        ("v0.2.0", "0.2.0", "CITATION.cff does not say 'version: 0.2.0'"),
    ],
)
def test_tag_wheel_and_citation_have_one_version(tag: str, version: str, word: str, repo: Path, tmp_path: Path) -> None:
    fill_in(repo)
    with pytest.raises(DataError, match=word):
        check(make(tmp_path / "dist", version), repo, tag)


def test_a_large_wheel_or_two_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "LARGEST", 0)
    with pytest.raises(DataError, match="the wheel is too large; expected < 0 bytes"):
        the_wheel(make(tmp_path / "dist"))
    make(tmp_path / "dist", "0.2.0")
    with pytest.raises(DataError, match="expected exactly one"):
        the_wheel(tmp_path / "dist")


def test_the_command_writes_the_notes_and_ends_with_an_error_otherwise(repo: Path, tmp_path: Path) -> None:
    dist, notes = make(tmp_path / "dist"), tmp_path / "notes.md"
    asked = ("release", "--repo", str(repo), "--dist", str(dist), "--tag", TAG, "--notes", str(notes))
    refused = ci(ROOT, *asked)
    assert (refused.returncode, notes.exists()) == (4, False)
    fill_in(repo)
    done = ci(ROOT, *asked)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, f"{TAG}: ready to be released")
    assert notes.read_text() == section((repo / "CHANGELOG.md").read_text(), "0.1.0")[1]
    assert notes.read_text().startswith("### Added\n")


def test_a_section_ends_where_the_next_begins() -> None:
    text = (
        f"# Changelog\n\n## 0.2.0 (unreleased)\n\nnew\n\n## 0.1.0 ({DATE})\n\nold\n\n## 0.0.1 (2020-01-01)\n\nolder\n"
    )
    assert section(text, "0.1.0") == (DATE, "old\n")
    assert section(text, "0.2.0") == ("", "")
