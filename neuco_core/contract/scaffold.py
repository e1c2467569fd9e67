"""``neuco new``: from a file to a plugin that keeps the contract.

Files are made in a temporary folder beside their destination and moved there at the end: an interrupted run leaves
nothing behind, and existing files are never touched.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from keyword import iskeyword
from pathlib import Path
from string import Template

from neuco_core._validate import ID
from neuco_core.errors import UsageError
from neuco_core.files import LARGEST_DATA
from neuco_core.paths import checkout
from neuco_core.plugins.catalog import catalog
from neuco_core.specs import Remote

WIDEST = 90  # of a tuple and what stands before it
ENDINGS = ("https://", "http://", "hf://", "s3://", "file://")
# What a card says until somebody writes down what is true of it; continuous integration refuses these sentences.
CAVEATS = {
    "task": "Say here what the labels do not tell: how they were measured, what is missing, what a random split leaks.",
    "method": "Say here what it was trained on, and whether that overlaps with the tasks.",
    "dataset": "Say here how the images were chosen and made, what they do not show, and which of them overlap.",
}


@dataclass(frozen=True)
class Words:
    """What a plugin says about itself."""

    name: str
    title: str
    description: str
    license: str
    citation: str = ""
    caveats: str = ""

    def fields(self) -> dict[str, str]:
        plain = {"name": self.name, "title": self.title.rstrip("."), "description": self.description}
        plain |= {"license": self.license, "citation": self.citation, "caveats": self.caveats}
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


def bring(source: str, scratch: Path) -> Path:
    """The file itself, or what is at the address; that goes to the cache later, when it is declared."""
    from neuco_core.fetch.fetch import fetch_unverified

    if source.startswith(ENDINGS):
        return fetch_unverified(Remote(source), scratch)
    if not Path(source).is_file():
        raise UsageError("no such file", where=source, expected="a file, or an address: " + ", ".join(ENDINGS))
    return Path(source)


def remote_of(address: str, path: Path) -> Remote:
    """The declaration of a file that will be at an address."""
    with path.open("rb") as file:
        return Remote(address, sha256=hashlib.file_digest(file, "sha256").hexdigest(), size=path.stat().st_size)


def declare(remote: Remote, indent: int) -> str:
    """The source of a remote, each argument on a line of its own."""
    arguments = (f'"{remote.url}"', f'sha256="{remote.sha256}"', f"size={remote.size}")
    return "Remote(\n" + "".join(f"{' ' * (indent + 4)}{item},\n" for item in arguments) + " " * indent + ")"


def refuse_large(path: Path, place: Place, hint: str) -> None:
    """A file in our tree stays in git for ever; a distribution of its own may be as large as its author likes."""
    size = path.stat().st_size
    if not place.inner and size > LARGEST_DATA:
        expected = f"at most {LARGEST_DATA / 1e6:g} MB"
        raise UsageError("too large for the tree", where=path, expected=expected, got=f"{size / 1e6:.1f} MB", hint=hint)


def fill(template: str, fields: Mapping[str, object]) -> str:
    """A template with its fields filled in; a missing one is our mistake and raises."""
    text = (resources.files("neuco_core.contract") / "templates" / f"{template}.txt").read_text(encoding="utf-8")
    return Template(text).substitute({key: str(value) for key, value in fields.items()})


def literal(text: str) -> str:
    """A text as Python and TOML both read it."""
    escaped = "".join(_escape(char) for char in text)
    return f'"{escaped}"'


def names_literal(names: Sequence[str], indent: int) -> str:
    """A tuple of texts, laid out as a formatter would: on one line if they fit."""
    items = [literal(name) for name in names]
    short = f"({', '.join(items)}{',' * (len(items) == 1)})"
    if indent + len(short) < WIDEST:
        return short
    return "(\n" + "".join(f"{' ' * (indent + 4)}{item},\n" for item in items) + " " * indent + ")"


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
