"""Which plugins does a pull request touch? Counted from the merge base, so changes on main meanwhile are not its."""

from __future__ import annotations

import io
import re
import tokenize
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from ci.git import blobs, commit_of, git, git_bytes
from neuco_core.fields import ID
from neuco_core.files import LARGEST_DATA
from neuco_core.plugins.catalog import read_suite
from neuco_core.specs import Suite

TREES = ("neuco_tasks", "neuco_methods")
# Cannot change scores or the registry; whatever is neither this nor a plugin counts as core.
HARMLESS = re.compile(r"(?:docs|tests|examples|benchmarks)/.+|[^/]+\.md|LICENSE", re.DOTALL)
# No reviewer can read what these do, and Python prefers them to a source file of the same name.
COMPILED = (".so", ".pyd", ".dll", ".dylib", ".pyc", ".pyo", ".pth", ".egg", ".whl")
REGULAR, GONE = ("100644", "100755", "000000"), "000000"
# Files with which git itself hides changes from a reviewer, or runs filters.
STEERING = (".gitattributes", ".gitmodules", ".lfsconfig", ".mailmap")
# Written by `reconcile` on main only.
PROTECTED = tuple(f"registry/{name}" for name in ("records", "results/", "leaderboards/", "withdrawn/", "catalog.json"))
LARGEST_FILE, LARGEST_SUM = 50_000_000, 500_000_000  # bytes of what a pull request adds or changes
MOST_FILES = 20_000
# Of a plugin: what tells about it and tests it.
CARD = re.compile(r"README\.md|test(_[^/]*)?\.py")
# Data by which main compares and verifies; no code that could judge anything.
REGISTRY_DATA = re.compile(r"registry/pins\.json|registry/suites/[^/]+\.toml")
# Numbers of an extension, as files of data that judge nobody: its checks look at each folder.
SUBMISSION = re.compile(rf"registry/(?!suites/|schema/|published/)([a-z]+/{ID.pattern})/[^/]+\.(?:json|csv)")
PUBLISH = " in a plugin: publish it (`neuco data upload`, Hugging Face, a release) and declare its address and sha256"
PLUGIN = re.compile(rf"({'|'.join(TREES)})/([^/]+)/(.+)", re.DOTALL)
# Turn the reading direction around, or are not seen at all.
HIDDEN = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# Python ends a line, or a page, where an editor may show none.
BREAKS = re.compile("\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029]")
CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.MULTILINE)
CODE = (".py", ".pyi", ".toml", ".cfg", ".ini", ".yml", ".yaml", ".sh", ".svg")
# An SVG of shapes and text, with the notes of matplotlib. Browsers run scripts in others, and load what they name.
SHAPES = re.compile(
    r"\{http://www\.w3\.org/2000/svg\}(?:svg|g|defs|use|marker|clipPath|style|title|desc|metadata|path|rect|circle|ellipse"
    r"|line|polyline|polygon|text|tspan)"
)
NOTES = re.compile(
    r"\{http://(www\.w3\.org/1999/02/22-rdf-syntax-ns#|creativecommons\.org/ns#|purl\.org/dc/[^}]+)\}\w+"
)
DECLARED = re.compile(r"<!(?!DOCTYPE|--|\[CDATA\[)\w*|<\?(?!xml\s)[-\w]*")  # entities, default attributes, style sheets
OUTSIDE = re.compile(r"url\((?!['\"]?#)|[@\\]|//", re.IGNORECASE)
LONGEST_LINE = 2000
LARGEST_SOURCE = 1_000_000  # bytes


@dataclass(frozen=True, order=True)
class Touched:
    """A plugin that a pull request adds, changes or removes; renaming one removes one and adds one."""

    tree: str
    name: str
    how: str

    @property
    def folder(self) -> str:
        return f"{self.tree}/{self.name}"


@dataclass(frozen=True)
class Changes:
    """Everything that a pull request touches."""

    base: str = ""
    head: str = ""
    plugins: tuple[Touched, ...] = ()
    core: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    bad_names: tuple[str, ...] = ()
    unreadable: tuple[tuple[str, str], ...] = ()  # path and reason
    cards: tuple[str, ...] = ()  # folders of plugins of which only the card or the tests changed
    submissions: tuple[str, ...] = ()  # folders of the registry, as ``KIND/ID``

    @property
    def only_data(self) -> bool:
        """Whether all that counts as core are pins and suites."""
        return bool(self.core) and all(map(REGISTRY_DATA.fullmatch, self.core))


def is_core(path: str) -> bool:
    """Whether a file can change how plugins are judged: it is of no plugin, no data, not harmless."""
    if HARMLESS.fullmatch(path):
        return Path(path).name in STEERING
    return not (PLUGIN.fullmatch(path) or SUBMISSION.fullmatch(path) or path.startswith(PROTECTED))


class TreeEntry(NamedTuple):
    """A changed file: its mode and content after the change, and its path."""

    mode: str
    blob: str
    path: str


def changed(repo: Path, base: str, head: str = "HEAD") -> Changes:
    """What ``head`` changed since it left ``base``."""
    end = git(repo, "rev-parse", f"{head}^{{commit}}").strip()
    start = git(repo, "merge-base", commit_of(repo, base), end).strip()
    # Without rename detection a move is a deletion and an addition, which is what it is for a registry of names.
    fields = git(repo, "diff", "--no-renames", "--raw", "-z", "--abbrev=64", start, end).split("\0")
    entries = []
    for facts, path in zip(fields[:-1:2], fields[1::2], strict=True):
        _, mode, _, blob, _ = facts.split()
        entries.append(TreeEntry(mode, blob, path))
    changes = sort_out([entry.path for entry in entries], _folders(repo, start), _folders(repo, end))
    return replace(changes, base=start, head=end, unreadable=tuple(_unreadable(repo, entries)))


def sort_out(paths: Iterable[str], before: Collection[str], after: Collection[str]) -> Changes:
    """What changed paths belong to; ``before`` and ``after`` are the folders of all plugins then and now."""
    touched: dict[tuple[str, str], bool] = {}  # and whether only their card and tests changed
    core, other, protected, bad_names, submissions = [], [], [], [], []
    for path in paths:
        match, submission = PLUGIN.fullmatch(path), SUBMISSION.fullmatch(path)
        if match and ID.fullmatch(match[2]):
            plugin = match[1], match[2]
            touched[plugin] = touched.get(plugin, True) and bool(CARD.fullmatch(match[3]))
        elif match:
            bad_names.append(f"{match[1]}/{match[2]}")
        elif path.startswith(PROTECTED):
            protected.append(path)
        elif submission:
            submissions.append(submission[1])
        elif is_core(path):
            core.append(path)
        else:
            other.append(path)
    plugins = []
    for tree, name in sorted(touched):
        folder = f"{tree}/{name}"
        how = "removed" if folder not in after else "changed" if folder in before else "added"
        plugins.append(Touched(tree, name, how))
    return Changes(
        plugins=tuple(plugins),
        core=tuple(core),
        protected=tuple(protected),
        other=tuple(other),
        bad_names=tuple(dict.fromkeys(bad_names)),
        cards=tuple(item.folder for item in plugins if item.how == "changed" and touched[item.tree, item.name]),
        submissions=tuple(dict.fromkeys(submissions)),
    )


def _folders(repo: Path, commit: str) -> set[str]:
    """The folders of all plugins in a commit, asked for at once: there may be thousands."""
    return set(git(repo, "ls-tree", "-d", "-z", "--name-only", commit, *(f"{tree}/" for tree in TREES)).split("\0"))


def _unreadable(repo: Path, entries: Sequence[TreeEntry]) -> Iterator[tuple[str, str]]:
    """Files that nobody can review, each with the reason; only their removal is welcome."""
    if len(entries) > MOST_FILES:
        yield f"{len(entries)} files", f"more than anybody reviews; at most {MOST_FILES} are read"
        return
    for entry in entries:
        if entry.mode not in REGULAR:
            yield _shown(entry.path), "a link or a submodule, which hides its content"
        elif entry.mode != GONE and (reason := odd_path(entry.path)):
            yield _shown(entry.path), reason
    yield from _odd_contents(repo, [entry for entry in entries if entry.mode in REGULAR and entry.mode != GONE])


def odd_path(path: str) -> str:
    """Why a file cannot be reviewed, by its name alone; "" if it can."""
    if path.lower().endswith(COMPILED):
        return "compiled code, which nobody can review"
    if Path(path).name in STEERING and path.startswith(TREES):
        return "a file that tells git what to hide or to filter"
    # A name that is not UTF-8 has backslashes here.
    plain = path.isascii() and path.isprintable() and "\\" not in path
    if PLUGIN.fullmatch(path) and not (plain and all(part == part.strip() for part in path.split("/"))):
        return "a name that may look like another; use printable ASCII, no backslash, no space at either end"
    return ""


def _shown(path: str) -> str:
    """A path in which every character can be seen."""
    return "".join(c if c.isascii() and c.isprintable() else c.encode("unicode_escape").decode() for c in path)


def _odd_contents(repo: Path, entries: Sequence[TreeEntry]) -> Iterator[tuple[str, str]]:
    """Sizes are asked for first: one small packed file under many names can be more than memory holds."""
    paths: dict[str, list[str]] = {}
    for entry in entries:
        paths.setdefault(entry.blob, []).append(entry.path)
    names = "".join(f"{blob}\n" for blob in paths).encode()
    answers = git_bytes(repo, "cat-file", "--batch-check=%(objectsize)", stdin=names).split()
    sizes = dict(zip(paths, map(int, answers), strict=True))
    for blob, size in sizes.items():
        for path in paths[blob]:
            data = PLUGIN.fullmatch(path) and not path.endswith(CODE)  # of sources a reviewer is told more below
            most, cure = (LARGEST_DATA, PUBLISH) if data else (LARGEST_FILE, "")
            if size > most:
                yield _shown(path), f"{size / 1e6:.1f} MB; at most {most / 1e6:g} MB{cure}"
    whole = sum(size * len(paths[blob]) for blob, size in sizes.items())
    if whole > LARGEST_SUM:
        yield f"{len(entries)} files", f"{whole / 1e6:.0f} MB together; at most {LARGEST_SUM / 1e6:g} MB"
        return
    for blob, content in blobs(repo, [blob for blob, size in sizes.items() if size <= LARGEST_FILE]):
        for path in paths[blob]:
            reason = "" if odd_path(path) else deceptive(path, content)
            if reason:
                yield _shown(path), reason


def suite_files(registry: Path) -> list[Path]:
    """The files of frozen suites; those of every task of a dataset are made by the catalogue, and have none."""
    return sorted((registry / "suites").glob("*.toml"))


def frozen_suites(registry: Path) -> list[Suite]:
    return [read_suite(path) for path in suite_files(registry)]


def deceptive(path: str, content: bytes) -> str:
    """Why a file cannot be reviewed by reading it; "" if it can, or if it is data."""
    code = path.endswith(CODE)
    if code and len(content) > LARGEST_SOURCE:
        return f"source of {len(content)} bytes; at most {LARGEST_SOURCE}: put data into files of data"
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return "source that is not UTF-8" if code else ""
    if not code and "\0" in text:
        return ""  # not text
    # Spreadsheets write a byte-order mark, and some of them end lines with carriage returns alone.
    seen = text if code else text.removeprefix("\ufeff")
    seen = seen.replace("\r\n", "\n").replace("\r", "\n") if path.endswith(".csv") else seen
    for pattern, what in ((HIDDEN, "an invisible character"), (BREAKS, "a control character")):
        match = pattern.search(seen)
        if match:
            return f"{what}, U+{ord(match[0]):04X}, in line {seen.count(chr(10), 0, match.start()) + 1}"
    if path.endswith(".svg") and (part := _active_part(content)):
        return f"not a plain drawing: {part}"
    if not path.endswith((".py", ".pyi")):
        return ""
    coding = CODING.search(b"\n".join(content.split(b"\n", 2)[:2]))
    if coding and coding[1].lower().replace(b"_", b"-") not in (b"utf-8", b"utf8", b"ascii", b"us-ascii"):
        return f"declares the encoding {coding[1].decode()}, and reviewers see another text than Python"
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > LONGEST_LINE:
            return f"line {number} has {len(line)} characters, and nobody reads to its end"
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            name = token.string
            # Python takes such letters for the plain ones: a name that looks unlike `eval` may be it.
            if token.type == tokenize.NAME and not name.isascii() and unicodedata.normalize("NFKC", name).isascii():
                return f"the name {name!r} in line {token.start[0]}, which Python reads as another"
    except (tokenize.TokenError, SyntaxError):
        return ""  # no Python, from here on
    return ""


def _active_part(drawing: bytes) -> str:
    """What an SVG does besides drawing, or could load; "" if it only draws."""
    if declared := DECLARED.search(drawing.decode()):
        return declared[0]
    try:
        # As bytes: what it shows depends on the encoding that it declares. There are no entities left to expand.
        elements = ElementTree.fromstring(drawing).iter()  # noqa: S314
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        return f"no XML: {error}"
    for element in elements:
        if NOTES.fullmatch(element.tag):
            continue
        if not SHAPES.fullmatch(element.tag):
            return f"<{element.tag.rpartition('}')[2]}>"
        for name, value in element.items():
            key = name.rpartition("}")[2]
            if key.startswith("on") or (key == "href" and not value.startswith("#")) or OUTSIDE.search(value):
                return f"{key}={value[:100]!r}"
        if element.tag.endswith("}style") and (len(element) or OUTSIDE.search(element.text or "")):
            return "a style that reaches outside, or has elements in it"
    return ""
