"""Which plugins does a pull request touch? Counted from the merge base, so changes on main meanwhile are not its."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from ci.git import blobs, commit_of, git, git_bytes
from neuco_core.contract.checks.review import (
    LARGEST_FILE,
    PLUGIN,
    STEERING,
    TREES,
    deceptive,
    odd_path,
    too_large,
)
from neuco_core.fields import ID
from neuco_core.plugins.catalog import read_suite
from neuco_core.specs import Suite

# Cannot change scores or the registry; whatever is neither this nor a plugin counts as core.
HARMLESS = re.compile(r"(?:docs|tests|examples|benchmarks)/.+|[^/]+\.md|LICENSE", re.DOTALL)
# But for pages with `:::`, which imports and runs what it names as the site is built.
RUNNING = ("docs/ref/api.md", "docs/ref/cli.md")
REGULAR, GONE = ("100644", "100755", "000000"), "000000"
# Written by `reconcile` on main only.
OWN = ("records", "results/", "leaderboards/", "withdrawn/", "catalog.json", "confirmed.json")
PROTECTED = tuple(f"registry/{name}" for name in OWN)
LARGEST_SUM = 500_000_000  # bytes of what a pull request adds or changes
MOST_FILES = 20_000
# Of a plugin: what tells about it and tests it.
CARD = re.compile(r"README\.md|test(_[^/]*)?\.py")
# Data by which main compares and verifies; no code that could judge anything.
REGISTRY_DATA = re.compile(r"registry/pins\.json|registry/suites/[^/]+\.toml")
# Numbers of an extension, as files of data that judge nobody: its checks look at each folder.
SUBMISSION = re.compile(rf"registry/(?!suites/|schema/|published/)([a-z]+/{ID.pattern})/[^/]+\.(?:json|csv)")


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
        return path in RUNNING or Path(path).name in STEERING
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
            if reason := too_large(path, size):
                yield _shown(path), reason
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
