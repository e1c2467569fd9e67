"""``neuco new``: from a file to a plugin that keeps the contract.

Files are made in a temporary folder beside their destination and moved there at the end: an interrupted run leaves
nothing behind, and existing files are never touched.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from keyword import iskeyword
from pathlib import Path
from string import Template

from neuco_core._validate import ID
from neuco_core.errors import UsageError
from neuco_core.paths import checkout
from neuco_core.plugins.catalog import catalog


@dataclass(frozen=True)
class Words:
    """What a plugin says about itself."""

    name: str
    title: str
    description: str
    license: str
    citation: str = ""

    def fields(self) -> dict[str, str]:
        plain = {"name": self.name, "title": self.title.rstrip("."), "description": self.description}
        plain |= {"license": self.license, "citation": self.citation}
        for key, value in plain.items():
            if not value.isprintable():
                raise UsageError(f"the {key} has non-printable characters", got=ascii(value))
        words = {"title_doc": plain["title"].translate({ord('"'): "'", ord("\\"): "/"})}
        return plain | words | {f"{key}_literal": literal(value) for key, value in plain.items()}


@dataclass(frozen=True)
class Place:
    """Where a plugin goes: a directory of ours, or a whole distribution; and how its files are addressed."""

    target: Path
    package: str
    inner: str = ""

    def address(self, file: str) -> str:
        return f"pkg://{self.package}/{file}"


def choose_place(name: str, tree: str, into: Path | None, as_package: bool) -> Place:
    """The destination, which must not exist yet; the id must be free."""
    if not ID.fullmatch(name):
        raise UsageError("not an id", expected="1 to 64 of a-z, 0-9, _ and -", got=repr(name))
    if not name.isidentifier() or iskeyword(name):
        raise UsageError("not a Python module name", expected="a letter, then letters, digits, _", got=name)
    for candidate in catalog().plugins.candidates:
        if name in candidate.names:
            raise UsageError(f"there is a plugin {name!r} already", where=candidate.source, hint="Choose another name")
    for noun in ("dataset", "task", "method"):
        taken = catalog().plugins.find(noun, name)
        if taken is not None:
            raise UsageError(f"there is a {noun} {name!r} already", where=taken.origin, hint="Choose another name")
    if as_package:
        package = f"neuco_{name.replace('-', '_')}"
        place = Place((into or Path()) / f"neuco-{name.replace('_', '-')}", package, f"src/{package}")
    else:
        root = into or (checkout() or Path()) / tree
        if root.name != tree:
            root = root / tree
        place = Place(root / name, f"{tree}.{name}")
    if place.target.exists():
        raise UsageError("this already exists, and is never overwritten", where=place.target)
    return place


@contextmanager
def building(place: Place) -> Iterator[Path]:
    """A folder for the plugin's files, moved to its place if all goes well."""
    parent = place.target.parent
    made = [folder for folder in (parent, *parent.parents) if not folder.exists()]
    parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=parent, prefix=".new-") as name:
            root = Path(name) / place.target.name
            folder = root / place.inner
            folder.mkdir(parents=True)
            yield folder
            for source in root.rglob("*.py"):
                compile(source.read_text(encoding="utf-8"), source.name, "exec")
            root.rename(place.target)
    except BaseException:
        for empty in made:  # innermost first; what others have put there meanwhile stays
            with contextlib.suppress(OSError):
                empty.rmdir()
        raise


def fill(template: str, fields: Mapping[str, object]) -> str:
    """A template with its fields filled in; a missing one is our mistake and raises."""
    text = (resources.files("neuco_core.contract") / "templates" / f"{template}.txt").read_text(encoding="utf-8")
    return Template(text).substitute({key: str(value) for key, value in fields.items()})


def literal(text: str) -> str:
    """A text as Python and TOML both read it."""
    escaped = "".join(_escape(char) for char in text)
    return f'"{escaped}"'


def _escape(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return char if char.isprintable() else f"\\U{ord(char):08x}"


def write_package(folder: Path, words: Words, nouns: list[str], package: str) -> None:
    """What makes a plugin a distribution of its own; ``folder`` is its source folder."""
    root = folder.parent.parent
    groups = "".join(f'[project.entry-points."neuco.{noun}s"]\n{words.name} = "{package}"\n\n' for noun in nouns)
    fields = {**words.fields(), "package": package, "entry_points": groups, "distribution": root.name}
    (root / "pyproject.toml").write_text(fill("package_pyproject.toml", fields), encoding="utf-8")
    # A distribution keeps its card and tests at the top; the card is its page on the package index.
    for name in ("README.md", "test.py"):
        (folder / name).rename(root / name)
