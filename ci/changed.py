"""Which plugins does a pull request touch? Counted from the merge base, so changes on main meanwhile are not its."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ci.deceptive import CODE, deceptive
from neuco_core._validate import ID
from neuco_core.errors import DataError
from neuco_core.files import LARGEST_DATA

TREES = ("neuco_tasks", "neuco_methods")
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# Cannot change scores or the registry; whatever is neither this nor a plugin counts as core.
HARMLESS = re.compile(r"(?:docs|tests|examples|benchmarks)/.+|[^/]+\.md|LICENSE", re.DOTALL)
# No reviewer can read what these do, and Python prefers them to a source file of the same name.
COMPILED = (".so", ".pyd", ".dll", ".dylib", ".pyc", ".pyo", ".pth", ".egg", ".whl")
REGULAR, GONE = ("100644", "100755", "000000"), "000000"
# Files with which git itself hides changes from a reviewer, or runs filters.
STEERING = (".gitattributes", ".gitmodules", ".lfsconfig", ".mailmap")
# Written by `publish` on main only.
PROTECTED = (
    *(f"registry/{name}/" for name in ("records", "results", "leaderboards", "withdrawn")),
    *(f"registry/{name}" for name in ("records.json", "pending.json", "embeddings.json", "suites/all-")),
)
LARGEST_FILE, LARGEST_SUM = 50_000_000, 500_000_000  # bytes of what a pull request adds or changes
MOST_FILES = 20_000
# Of a plugin: what tells about it and tests it.
CARD = re.compile(r"README\.md|test(_[^/]*)?\.py")
# Data by which main compares and verifies; no code that could judge anything.
REGISTRY_DATA = re.compile(r"registry/pins\.json|registry/suites/[^/]+\.toml")
# A submission to GEO-Bench: numbers that judge nobody.
SUBMISSION = re.compile(rf"registry/geobench/({ID.pattern})/(?:submission\.json|runs\.csv)")
PUBLISH = " in a plugin: publish it (`neuco data upload`, Hugging Face, a release) and declare its address and sha256"
PLUGIN = re.compile(rf"({'|'.join(TREES)})/([^/]+)/.+", re.DOTALL)


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

    base: str
    head: str
    plugins: tuple[Touched, ...] = ()
    core: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    bad_names: tuple[str, ...] = ()
    unreadable: tuple[tuple[str, str], ...] = ()  # path and reason
    cards: tuple[str, ...] = ()  # folders of plugins of which only the card or the tests changed
    submissions: tuple[str, ...] = ()

    @property
    def only_data(self) -> bool:
        """Whether all that counts as core are pins and suites."""
        return bool(self.core) and all(map(REGISTRY_DATA.fullmatch, self.core))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def is_core(path: str) -> bool:
    """Whether a file can change how plugins are judged: it is of no plugin, not written by `publish`, not harmless."""
    if HARMLESS.fullmatch(path):
        return Path(path).name in STEERING
    return not (PLUGIN.fullmatch(path) or SUBMISSION.fullmatch(path) or path.startswith(PROTECTED))


def git(repo: Path, *args: str) -> str:
    """Run git and return what it prints; paths are not quoted, whatever characters they have."""
    return git_bytes(repo, *args).decode("utf-8", "backslashreplace")


def git_bytes(repo: Path, *args: str, given: bytes | None = None) -> bytes:
    command, environment = _command(repo, *args)
    done = subprocess.run(command, capture_output=True, env=environment, input=given)
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip()
        raise DataError(f"git {args[0]} failed: {words}", where=repo)
    return done.stdout


def _command(repo: Path, *args: str) -> tuple[list[str], dict[str, str]]:
    # No replaced objects and no hooks: what git shows is what would be merged.
    safe = ("-c", "core.quotePath=false", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    return ["git", *safe, "-C", str(repo), *args], {**os.environ, "GIT_NO_REPLACE_OBJECTS": "1"}


def commit_of(repo: Path, name: str) -> str:
    """The commit of a branch, or a commit by its number. Never a tag: one named ``origin/main`` would hide changes."""
    if COMMIT.fullmatch(name):
        return name
    for place in ("refs/remotes/", "refs/heads/"):
        try:
            return git(repo, "rev-parse", "--verify", "--quiet", f"{place}{name}^{{commit}}").strip()
        except DataError:
            continue
    hint = "Run `git fetch origin main`, or name another branch with --since"
    raise DataError("no such branch", where=repo, expected="a branch, or a commit's whole number", got=name, hint=hint)


def changed(repo: Path, base: str, head: str = "HEAD") -> Changes:
    """What ``head`` changed since it left ``base``."""
    end = git(repo, "rev-parse", f"{head}^{{commit}}").strip()
    start = git(repo, "merge-base", commit_of(repo, base), end).strip()
    # Without rename detection a move is a deletion and an addition, which is what it is for a registry of names.
    fields = git(repo, "diff", "--no-renames", "--raw", "-z", "--abbrev=64", start, end).split("\0")
    words = [(fields[i].split(), fields[i + 1]) for i in range(0, len(fields) - 1, 2)]
    entries = [Entry(mode, blob, path) for (_, mode, _, blob, _), path in words]
    return _sort_out(repo, start, end, entries)


class Entry(NamedTuple):
    """A changed file: its mode and content after the change, and its path."""

    mode: str
    blob: str
    path: str


def _sort_out(repo: Path, start: str, end: str, entries: Sequence[Entry]) -> Changes:
    touched: set[tuple[str, str]] = set()
    core: list[str] = []
    other: list[str] = []
    protected, bad = [], []
    submissions: dict[str, None] = {}
    for _, _, path in entries:
        match = PLUGIN.fullmatch(path)
        if match and ID.fullmatch(match[2]):
            touched.add((match[1], match[2]))
        elif match:
            bad.append(f"{match[1]}/{match[2]}")
        elif path.startswith(PROTECTED):
            protected.append(path)
        elif submitted := SUBMISSION.fullmatch(path):
            submissions[submitted[1]] = None
        else:
            (core if is_core(path) else other).append(path)
    before, there = _folders(repo, start), _folders(repo, end)
    plugins = tuple(Touched(*item, _how("/".join(item), before, there)) for item in sorted(touched))
    names, unreadable = tuple(dict.fromkeys(bad)), tuple(_unreadable(repo, entries))
    cards = tuple(_cards(plugins, entries))
    rest = (tuple(protected), tuple(other), names, unreadable, cards, tuple(submissions))
    return Changes(start, end, plugins, tuple(core), *rest)


def _cards(plugins: Sequence[Touched], entries: Sequence[Entry]) -> Iterator[str]:
    parts = [entry.path.split("/", 2) for entry in entries]
    others = {"/".join(names[:2]) for names in parts if not CARD.fullmatch("".join(names[2:]))}
    yield from (plugin.folder for plugin in plugins if plugin.how == "changed" and plugin.folder not in others)


def _unreadable(repo: Path, entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """Files that nobody can review, each with the reason; only their removal is welcome."""
    added = [entry for entry in entries if entry.mode != GONE]
    if len(entries) > MOST_FILES:
        yield f"{len(entries)} files", f"more than anybody reviews; at most {MOST_FILES} are read"
        return
    for entry in added:
        if entry.mode not in REGULAR:
            yield _shown(entry.path), "a link or a submodule, which hides its content"
        elif reason := _odd_path(entry.path):
            yield _shown(entry.path), reason
    yield from _odd_contents(repo, [entry for entry in added if entry.mode in REGULAR])


def _odd_path(path: str) -> str:
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


def _odd_contents(repo: Path, entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """Sizes are asked for first: one small packed file under many names can be more than memory holds."""
    paths: dict[str, list[str]] = {}
    for entry in entries:
        paths.setdefault(entry.blob, []).append(entry.path)
    sizes = _sizes(repo, list(paths))
    for blob, size in sizes.items():
        for path in paths[blob]:
            data = PLUGIN.fullmatch(path) and not path.endswith(CODE)  # of sources a reviewer is told more below
            most, words = (LARGEST_DATA, PUBLISH) if data else (LARGEST_FILE, "")
            if size > most:
                yield _shown(path), f"{size / 1e6:.1f} MB; at most {most / 1e6:g} MB{words}"
    whole = sum(size * len(paths[blob]) for blob, size in sizes.items())
    if whole > LARGEST_SUM:
        yield f"{len(entries)} files", f"{whole / 1e6:.0f} MB together; at most {LARGEST_SUM / 1e6:g} MB"
        return
    for blob, content in blobs(repo, [blob for blob, size in sizes.items() if size <= LARGEST_FILE]):
        for path in paths[blob]:
            reason = "" if _odd_path(path) else deceptive(path, content)
            if reason:
                yield _shown(path), reason


def _sizes(repo: Path, names: Sequence[str]) -> dict[str, int]:
    asked = "".join(f"{name}\n" for name in names).encode()
    rows = git_bytes(repo, "cat-file", "--batch-check=%(objectsize)", given=asked).split()
    return dict(zip(names, map(int, rows), strict=True))


def blobs(repo: Path, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """The contents of objects as they are stored: no attribute, no filter and no line ending has a say.

    Each is read once, and one at a time, so that memory holds no more than the largest.
    """
    command, environment = _command(repo, "cat-file", "--batch")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        if process.stdin is None or process.stdout is None:  # never: both are asked for
            raise DataError("git cat-file has no pipes", where=repo)
        for name in dict.fromkeys(names):
            process.stdin.write(f"{name}\n".encode())
            process.stdin.flush()
            words = process.stdout.readline().split()
            if len(words) != 3:
                raise DataError("git has no such object", where=repo, got=name, hint="Fetch the whole history")
            yield name, process.stdout.read(int(words[2]))
            process.stdout.read(1)


def _how(folder: str, before: set[str], there: set[str]) -> str:
    return "removed" if folder not in there else "changed" if folder in before else "added"


def _folders(repo: Path, commit: str) -> set[str]:
    """The folders of all plugins in a commit, asked for at once: there may be thousands."""
    return set(git(repo, "ls-tree", "-d", "-z", "--name-only", commit, *(f"{tree}/" for tree in TREES)).split("\0"))


def check_out(repo: Path, commit: str, target: Path) -> Path:
    """The files of a commit, whatever the working tree is like: what is judged is what would be merged."""
    rows = git_bytes(repo, "ls-tree", "-r", "-z", commit).split(b"\0")[:-1]
    files = [(row.split()[2].decode(), os.fsdecode(row.partition(b"\t")[2])) for row in rows if row.startswith(b"100")]
    paths: dict[str, list[str]] = {}
    for blob, path in files:
        # git itself never makes such a path, and never checks one out.
        if not {"", ".", "..", ".git"}.isdisjoint(path.split("/")):
            raise DataError("a path that leads elsewhere", where=commit, got=path)
        paths.setdefault(blob, []).append(path)
    for blob, content in blobs(repo, list(paths)):
        for path in paths[blob]:
            place = target / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
    return target
