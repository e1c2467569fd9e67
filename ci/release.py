"""What must be true of a distribution before it goes to the package index; the workflow ``release`` asks."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from neuco_core.errors import DataError

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


def check(dist: Path, repo: Path, tag: str) -> str:
    """Check all that a release needs, and return its section of the changelog."""
    version, built = tag.removeprefix("v"), the_wheel(dist).name.split("-")[1]
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
