"""Which plugins does a pull request touch? Counted from the merge base, so that what main did meanwhile is not its."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from neuco_core._validate import ID
from neuco_core.errors import DataError

TREES = ("neuco_tasks", "neuco_methods")
# What every score depends on: a change here concerns all plugins.
CORE = (
    "neuco_core/",
    "ci/",
    "pyproject.toml",
    "constraints.txt",
    "Makefile",
    ".github/",
    ".ci/",
    "neuco_tasks/",
    "neuco_methods/",
)
# Written by `publish` on main only.
PROTECTED = ("registry/results/", "registry/leaderboards/", "registry/withdrawn/")


@dataclass(frozen=True, order=True)
class Touched:
    """A plugin that a pull request adds, changes or removes; a renamed one is one removed and one added."""

    tree: str
    name: str
    how: str

    @property
    def folder(self) -> str:
        return f"{self.tree}/{self.name}"


@dataclass(frozen=True)
class Changes:
    """All that a pull request touches."""

    base: str
    head: str
    plugins: tuple[Touched, ...] = ()
    core: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    bad_names: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def git(repo: Path, *args: str) -> str:
    """Run git and return what it prints; paths come as they are, whatever characters are in them."""
    command = ["git", "-c", "core.quotePath=false", "-C", str(repo), *args]
    done = subprocess.run(command, capture_output=True, text=True, errors="surrogateescape")
    if done.returncode:
        raise DataError(f"git {args[0]} failed: {done.stderr.strip()}", where=repo)
    return done.stdout


def changed(repo: Path, base: str, head: str = "HEAD") -> Changes:
    """What ``head`` changed since it left ``base``."""
    start = git(repo, "merge-base", base, head).strip()
    end = git(repo, "rev-parse", f"{head}^{{commit}}").strip()
    # Without rename detection a move is a deletion and an addition, which is what it is for a registry of names.
    fields = git(repo, "diff", "--no-renames", "--name-status", "-z", start, end).split("\0")
    pairs = [(fields[i][:1], fields[i + 1]) for i in range(0, len(fields) - 1, 2)]
    return _sort_out(repo, start, end, pairs)


def _sort_out(repo: Path, start: str, end: str, pairs: Iterable[tuple[str, str]]) -> Changes:
    touched: set[tuple[str, str]] = set()
    core, protected, other, bad = [], [], [], []
    for _, path in pairs:
        match = re.fullmatch(rf"({'|'.join(TREES)})/([^/]+)/.+", path, re.DOTALL)
        if match and ID.fullmatch(match[2]):
            touched.add((match[1], match[2]))
        elif match:
            bad.append(f"{match[1]}/{match[2]}")
        elif path.startswith(PROTECTED):
            protected.append(path)
        elif path.startswith(CORE):
            core.append(path)
        else:
            other.append(path)
    plugins = [Touched(tree, name, _how(repo, start, end, f"{tree}/{name}")) for tree, name in sorted(touched)]
    return Changes(start, end, tuple(plugins), tuple(core), tuple(protected), tuple(other), tuple(dict.fromkeys(bad)))


def _how(repo: Path, start: str, end: str, folder: str) -> str:
    before, after = _exists(repo, start, folder), _exists(repo, end, folder)
    return "changed" if before and after else "added" if after else "removed"


def _exists(repo: Path, commit: str, folder: str) -> bool:
    return bool(git(repo, "ls-tree", "-z", "--name-only", commit, folder + "/__init__.py"))
