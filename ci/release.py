"""What must be true of a distribution before it goes to the package index; the workflow ``release`` asks."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from email import message_from_string
from email.message import Message
from pathlib import Path

from neuco_core.errors import DataError

LARGEST = 5_000_000  # bytes of the wheel: records ship with it while they fit, embeddings do not
# What whoever hosts the project has to fill in; each says so with this word.
UNSET = re.compile(r"\bPLACEHOLDER\b")
TO_FILL_IN = (".github/CODEOWNERS", "mkdocs.yml")


def the_wheel(dist: Path) -> tuple[Path, Message]:
    """The only wheel in ``dist``, which must not be too large, and its metadata."""
    wheels = sorted(dist.glob("*.whl"))
    if len(wheels) != 1:
        got = ", ".join(path.name for path in wheels) or "none"
        raise DataError("not one wheel", where=dist, expected="exactly one", got=got, hint="Run `python -m build`")
    with zipfile.ZipFile(wheels[0]) as archive:
        (name,) = (name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        metadata = message_from_string(archive.read(name).decode())
        largest = sorted(archive.infolist(), key=lambda item: -item.compress_size)[:3]
    size = wheels[0].stat().st_size
    if size >= LARGEST:
        named = ", ".join(f"{item.filename} ({item.compress_size:,})" for item in largest)
        hint = f"The largest files in it: {named}. If it is the records, publish them (docs/results.md)"
        raise DataError("the wheel is too large", where=wheels[0], expected=f"< {LARGEST:,} bytes", got=size, hint=hint)
    return wheels[0], metadata


def check(dist: Path, repo: Path, tag: str) -> str:
    """Check all that a release needs, and return its section of the changelog."""
    _, metadata = the_wheel(dist)
    version = tag.removeprefix("v")
    date, notes = section((repo / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    if wrong := list(_problems(metadata, dist, repo, version, date)):
        raise DataError(f"{tag} cannot be released: {'; '.join(wrong)}", where=repo, hint="See docs/maintaining.md")
    return notes


def _problems(metadata: Message, dist: Path, repo: Path, version: str, date: str) -> Iterator[str]:
    built = metadata["Version"]
    if built != version:
        yield f"the wheel's version is {built}: set __version__ in neuco_core/__init__.py, or move the tag"
    if not (dist / f"neuco-{built}.tar.gz").is_file():
        yield f"there is no neuco-{built}.tar.gz beside the wheel"
    if not metadata.get_all("Project-URL"):
        yield "pyproject.toml has no [project.urls]: set project.urls to the repository and the documentation"
    if not date:
        yield f"CHANGELOG.md has no section '## {version} (YYYY-MM-DD)'"
    cited = (repo / "CITATION.cff").read_text(encoding="utf-8")
    for key, value in (("version", version), ("date-released", date)):
        if not re.search(rf"^{key}: [\"']?{re.escape(value)}[\"']?$", cited, re.MULTILINE):
            yield f"CITATION.cff does not say '{key}: {value or 'YYYY-MM-DD'}'"
    for name in TO_FILL_IN:
        if UNSET.search((repo / name).read_text(encoding="utf-8")):
            yield f"{name} still has a PLACEHOLDER"


def section(changelog: str, version: str) -> tuple[str, str]:
    """The date and the text of a version's section; empty if it has none, or no date yet."""
    head = rf"^## {re.escape(version)} \((\d{{4}}-\d{{2}}-\d{{2}})\)\n(.*?)(?=^## |\Z)"
    match = re.search(head, changelog, re.MULTILINE | re.DOTALL)
    return (match[1], match[2].strip() + "\n") if match else ("", "")
