"""``neuco new``: from a file to a plugin that keeps the contract.

Files are made in a temporary folder beside their destination and moved there at the end: an interrupted run leaves
nothing behind, and existing files are never touched.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path
from typing import ClassVar

from jinja2 import Environment, PackageLoader, StrictUndefined

from neuco_core.contract.builtin import CAVEATS
from neuco_core.contract.checks import check_citation, check_license
from neuco_core.contract.contract import Broken
from neuco_core.env import checkout, is_checkout
from neuco_core.errors import UsageError
from neuco_core.fetch.cache import hash_file
from neuco_core.fetch.fetch import fetch_unverified
from neuco_core.fields import ID
from neuco_core.files import LARGEST_DATA
from neuco_core.plugins.catalog import catalog
from neuco_core.specs import SCHEMES, Remote
from neuco_core.text import one_line

WIDEST = 90  # of a tuple and what stands before it
ADDRESSES = tuple(f"{scheme}://" for scheme in SCHEMES if scheme != "pkg")  # how they begin


@dataclass(frozen=True, kw_only=True)
class PluginRequest:
    """What every new plugin says about itself, and where it goes: below ``into``, or as a whole distribution."""

    name: str
    title: str
    description: str
    license: str
    citation: str = ""
    caveats: str = ""
    into: Path | None = None
    as_package: bool = False
    noun: ClassVar[str]
    tree: ClassVar[str]  # the directory of a checkout
    must_cite: ClassVar[bool] = False

    def __post_init__(self) -> None:
        try:
            check_license(self.license)
            if self.must_cite or self.citation:
                check_citation(self.citation)
        except Broken as error:
            raise UsageError(error.what, expected=error.expected, got=error.got) from error
        for field in ("title", "description", "license", "citation", "caveats"):
            if not (text := getattr(self, field)).isprintable():
                raise UsageError(f"the {field} has non-printable characters", got=ascii(text))


@dataclass(frozen=True)
class NewPlugin:
    """A plugin under construction: its files are written to ``folder``; ``scratch`` is for others, and thrown away."""

    request: PluginRequest
    target: Path
    module: str
    folder: Path
    scratch: Path

    def keep(self, path: Path, name: str, hint: str) -> str:
        """Put a file into the plugin and return its address there.

        A file in a checkout stays in git for ever; elsewhere it may be as large as its author likes.
        """
        size = path.stat().st_size
        contributed = not self.request.as_package and is_checkout(self.target.resolve().parents[1])
        if contributed and size > LARGEST_DATA:
            limit, got = f"at most {LARGEST_DATA / 1e6:g} MB", f"{size / 1e6:.1f} MB"
            raise UsageError("too large for the tree", where=path, expected=limit, got=got, hint=hint)
        shutil.copyfile(path, self.folder / name)
        return self.address(name)

    def address(self, file: str) -> str:
        return f"pkg://{self.module}/{file}"

    def write(self, **facts: object) -> None:
        """Write code, card and test; for a package also what makes it a distribution of its own.

        Templates see the request's fields and the facts.
        """
        request, noun = self.request, self.request.noun
        fields = {**vars(request), "noun": noun, "module": self.module, "distribution": self.target.name, **facts}
        fields["title"] = request.title.rstrip(".")
        fields["caveats"] = request.caveats or CAVEATS[noun]
        fields["source_text"] = one_line(str(facts["source_text"]))
        for name, template in (("__init__.py", "init.py"), ("README.md", "card.md"), ("test.py", "test.py")):
            (self.folder / name).write_text(fill(f"{noun}_{template}", fields), encoding="utf-8")
        if request.as_package:
            top = self.folder.parent.parent
            (top / "pyproject.toml").write_text(fill("package_pyproject.toml", fields), encoding="utf-8")
            # A distribution keeps its card and tests at the top; the card is its page on the package index.
            for name in ("README.md", "test.py"):
                (self.folder / name).rename(top / name)


@contextmanager
def building(request: PluginRequest) -> Iterator[NewPlugin]:
    """A plugin whose id is free, moved to its destination, which must not exist yet, if all goes well."""
    name = request.name
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
    if request.as_package:
        target = (request.into or Path()) / f"neuco-{name.replace('_', '-')}"
        module, inner = f"neuco_{name}", f"src/neuco_{name}"
    else:
        root = request.into or (checkout() or Path()) / request.tree
        if root.name != request.tree:
            root = root / request.tree
        target, module, inner = root / name, f"{request.tree}.{name}", ""
    if target.exists():
        raise UsageError("this already exists, and is never overwritten", where=target)
    with tempfile.TemporaryDirectory() as scratch, _moved_to(target) as made:
        (made / inner).mkdir(parents=True)
        yield NewPlugin(request, target, module, made / inner, Path(scratch))
        for source in made.rglob("*.py"):
            compile(source.read_text(encoding="utf-8"), source.name, "exec")


@contextmanager
def _moved_to(target: Path) -> Iterator[Path]:
    """A path for a folder that is moved to its target at the end, or leaves nothing behind."""
    made = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".new-") as name:
            yield Path(name) / target.name
            (Path(name) / target.name).rename(target)
    except BaseException:
        for empty in made:  # innermost first; what others have put there meanwhile stays
            with contextlib.suppress(OSError):
                empty.rmdir()
        raise


def bring(source: str, scratch: Path) -> Path:
    """The file itself, or what is at the address; that goes to the cache later, when it is declared."""
    if source.startswith(ADDRESSES):
        return fetch_unverified(Remote(source), scratch)[0]
    if not Path(source).is_file():
        raise UsageError(
            "no such file", where=source, expected="a file, or an address: https://, hf://, s3:// or file://"
        )
    return Path(source)


def refuse_http(source: str) -> None:
    """Before anything is fetched: the contract refuses such an address, too."""
    if source.startswith("http://"):
        hint = "Anybody on the way may change what comes over http: give the address with https://"
        raise UsageError("files of a plugin are fetched over https", where=source, hint=hint)


def remote_of(address: str, path: Path) -> Remote:
    """The declaration of a file that will be at an address."""
    return Remote(address, sha256=hash_file(path), size=path.stat().st_size)


def fill(template: str, fields: Mapping[str, object]) -> str:
    """A template with its fields filled in; a missing one is our mistake and raises."""
    return TEMPLATES.get_template(f"{template}.txt").render(fields)


def literal(text: str) -> str:
    """A text as Python and TOML both read it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in escaped) + '"'


def names_literal(names: Sequence[str], indent: int = 0) -> str:
    """A tuple of texts, laid out as a formatter would: on one line if they fit."""
    items = [literal(name) for name in names]
    short = f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    return short if indent + len(short) < WIDEST else _one_a_line("(", items, indent)


def declare(remote: Remote, indent: int = 0) -> str:
    """The source of a remote, each argument on a line of its own."""
    return _one_a_line("Remote(", (literal(remote.url), f'sha256="{remote.sha256}"', f"size={remote.size}"), indent)


def _one_a_line(start: str, items: Sequence[str], indent: int) -> str:
    return f"{start}\n" + "".join(f"{' ' * (indent + 4)}{item},\n" for item in items) + " " * indent + ")"


# Not HTML, but Python, Markdown and TOML: values go through ``literal`` where they are code.
TEMPLATES = Environment(  # noqa: S701
    loader=PackageLoader("neuco_core.contract"),
    undefined=StrictUndefined,
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= {"literal": literal, "names": names_literal, "declare": declare}
TEMPLATES.filters["in_docstring"] = lambda text: text.translate({ord('"'): "'", ord("\\"): "/"})
