"""A lock for a new method: pip chooses the packages that go with neuco's own, and names the hashes of their wheels."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from neuco_core.encode.lock import Locked
from neuco_core.env import requirement_name
from neuco_core.errors import DependencyError, UsageError
from neuco_core.text import one_line

ASKED = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:==[A-Za-z0-9][A-Za-z0-9.!+_-]*)?")
CORE_EXTRAS = ("all", "test")  # what every method runs with in CI
JUDGE = "3.11"  # the Python of CI, on Linux x86_64
PYTHONS = (JUDGE, "3.12", "3.13", "3.14")
PLATFORMS = ("manylinux2014_x86_64", *(f"manylinux_2_{minor}_x86_64" for minor in range(17, 29)))
AS_FILE = "If there are no such wheels, the method comes as a file of embeddings: --embeddings URL"
# Looks at no other packages than those in the folder of its first argument.
ONLY = (
    "import sys, runpy\nsys.path.append(sys.argv.pop(1))\nrunpy.run_module('pip', run_name='__main__', alter_sys=True)"
)


def make_lock(asked: Sequence[str]) -> list[Locked]:
    """The packages asked for and all that they need beyond neuco's own, each with the hashes of its wheels."""
    core = core_versions()
    for item in asked:
        if not ASKED.fullmatch(item):
            raise UsageError("not a package", expected="NAME or NAME==VERSION", got=repr(item))
        if requirement_name(item.partition("==")[0]) in core:
            raise UsageError(f"{item} is one of neuco's own packages: every method has it", hint="Leave it out")
    with tempfile.TemporaryDirectory(prefix="neuco-lock-") as name:
        folder = Path(name)
        _link(core, folder / "core")
        versions = "".join(f"{package}=={version}\n" for package, version in core.items())
        (folder / "versions.txt").write_text(versions, encoding="utf-8")
        chosen = _report(folder, *asked, "-c", "versions.txt")
        pinned = [_pin(row) for row in chosen]
        hashes = {"==".join(_pin(row)): {_hash(row)} for row in chosen}
        # A wheel for any machine is the same for all. Others may be lacking for a later Python, not for the judge's.
        special = ["==".join(_pin(row)) for row in chosen if not row["download_info"]["url"].endswith("-none-any.whl")]
        for python in PYTHONS if special else ():
            for row in _wheels(folder, special, python):
                hashes["==".join(_pin(row))].add(_hash(row))
    return [Locked(name, version, tuple(sorted(hashes[f"{name}=={version}"]))) for name, version in sorted(pinned)]


def _wheels(folder: Path, pinned: Sequence[str], python: str) -> list[Any]:
    platforms = [option for platform in PLATFORMS for option in ("--platform", platform)]
    try:
        return _report(folder, *pinned, "--no-deps", "--target", "none", "--python-version", python, *platforms)
    except DependencyError:
        if python == JUDGE:
            raise
        return []


def _pin(row: Any) -> tuple[str, str]:
    return requirement_name(row["metadata"]["name"]), str(row["metadata"]["version"])


def _hash(row: Any) -> str:
    return str(row["download_info"]["archive_info"]["hashes"]["sha256"])


def _report(folder: Path, *arguments: str) -> list[Any]:
    """What pip would install; it reaches the index as it is configured on this machine."""
    options = ("install", "--dry-run", "--quiet", "--report", "report.json", "--only-binary", ":all:", "--no-input")
    command = [sys.executable, "-I", "-S", "-c", ONLY, str(folder / "core"), *options, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if not line.startswith("WARNING")]
        words = one_line(" ".join(lines), 600)
        raise DependencyError(f"the packages cannot be locked: pip: {words}", hint=AS_FILE)
    rows: list[Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))["install"]
    return rows


def core_versions() -> dict[str, str]:
    """What neuco brings, with everything that it needs in turn, as installed here."""
    from packaging.requirements import Requirement

    versions: dict[str, str] = {}
    waiting = [Requirement(f"neuco[{','.join(CORE_EXTRAS)}]")]
    seen = set()
    while waiting:
        wanted = waiting.pop()
        name, extras = requirement_name(wanted.name), frozenset(wanted.extras)
        if (name, extras) in seen or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        seen.add((name, extras))
        try:
            here = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # an extra that this machine does without
        versions[name] = here.version
        for line in here.requires or ():
            needed = Requirement(line)
            asks = [needed.marker.evaluate({"extra": extra}) for extra in ("", *extras)] if needed.marker else [True]
            needed.marker = None
            waiting += [needed] if any(asks) else []
    return versions


def _link(core: dict[str, str], folder: Path) -> None:
    """A folder in which pip finds itself and neuco's packages, and nothing else that is installed here."""
    folder.mkdir()
    for place, name in _descriptions():
        if name in core or name == "pip":
            (folder / place.name).unlink(missing_ok=True)
            (folder / place.name).symlink_to(place)
    pip = Path(str(metadata.distribution("pip").locate_file("pip")))
    (folder / "pip").symlink_to(pip)


def _descriptions() -> Iterator[tuple[Path, str]]:
    for entry in sys.path:
        for place in sorted(Path(entry or ".").glob("*.dist-info")):
            yield place.absolute(), requirement_name(metadata.Distribution.at(place).metadata["Name"] or "")
