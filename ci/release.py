"""What must be true of a distribution before it goes to the package index; the workflow ``release`` asks."""

from __future__ import annotations

import hashlib
import re
import tomllib
import zipfile
from pathlib import Path

from ci.git import git
from neuco_core.errors import DataError
from neuco_core.text import join_names

SHIPPED = "neuco_core/_registry/"
LARGEST = 5_000_000  # bytes of the wheel: records ship with it while they fit, embeddings do not


def the_wheel(dist: Path) -> Path:
    """The only wheel in ``dist``, which must not be too large."""
    wheels = sorted(dist.glob("*.whl"))
    if len(wheels) != 1:
        got = ", ".join(path.name for path in wheels) or "none"
        raise DataError("not one wheel", where=dist, expected="exactly one", got=got, hint="Run `python -m build`")
    size = wheels[0].stat().st_size
    if size >= LARGEST:
        hint = "`unzip -lv` shows the largest files in it"
        raise DataError("the wheel is too large", where=wheels[0], expected=f"< {LARGEST:,} bytes", got=size, hint=hint)
    return wheels[0]


def not_committed(wheel: Path, repo: Path) -> list[str]:
    """Files of the registry in the wheel that are not as git has them, such as records of whoever built it."""
    entries = (entry.split("\t") for entry in git(repo, "ls-tree", "-r", "-z", "HEAD", "registry").split("\0")[:-1])
    committed = {path: facts.split()[2] for facts, path in entries}
    odd = []
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            path = f"registry/{name.removeprefix(SHIPPED)}"
            if name.startswith(SHIPPED) and blob_id(archive.read(name)) != committed.get(path):
                odd.append(path)
    return odd


def blob_id(content: bytes) -> str:
    """How git names a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def check(dist: Path, repo: Path, tag: str) -> str:
    """Check all that a release needs, and return its section of the changelog."""
    wheel = the_wheel(dist)
    version, built = tag.removeprefix("v"), wheel.name.split("-")[1]
    date, notes = section((repo / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    cited = (repo / "CITATION.cff").read_text(encoding="utf-8")
    wrong = []
    if built != version:
        wrong.append(f"the wheel's version is {built}: set __version__ in neuco_core/__init__.py, or move the tag")
    if not (dist / f"neuco-{built}.tar.gz").is_file():
        wrong.append(f"there is no neuco-{built}.tar.gz beside the wheel")
    if "urls" not in tomllib.loads((repo / "pyproject.toml").read_text(encoding="utf-8"))["project"]:
        wrong.append("pyproject.toml has no [project.urls]: set project.urls to the repository and the documentation")
    if not date:
        wrong.append(f"CHANGELOG.md has no section '## {version} (YYYY-MM-DD)'")
    for key, value in (("version", version), ("date-released", date)):
        if not re.search(rf"^{key}: [\"']?{re.escape(value)}[\"']?$", cited, re.MULTILINE):
            wrong.append(f"CITATION.cff does not say '{key}: {value or 'YYYY-MM-DD'}'")
    # What whoever hosts the project has to fill in says so with this word.
    for name in (".github/CODEOWNERS", "mkdocs.yml"):
        if re.search(r"\bPLACEHOLDER\b", (repo / name).read_text(encoding="utf-8")):
            wrong.append(f"{name} still has a PLACEHOLDER")
    if odd := not_committed(wheel, repo):
        wrong.append(f"the wheel has files that git does not have so: {join_names(odd)}; build it in a fresh clone")
    if wrong:
        raise DataError(
            f"{tag} cannot be released: {'; '.join(wrong)}", where=repo, hint="See docs/maintain/maintaining.md"
        )
    return notes


def section(changelog: str, version: str) -> tuple[str, str]:
    """The date and the text of a version's section; empty if it has none, or no date yet."""
    head = rf"^## {re.escape(version)} \((\d{{4}}-\d{{2}}-\d{{2}})\)\n(.*?)(?=^## |\Z)"
    match = re.search(head, changelog, re.MULTILINE | re.DOTALL)
    return (match[1], match[2].strip() + "\n") if match else ("", "")
