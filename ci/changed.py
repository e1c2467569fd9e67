"""Which plugins does a pull request touch? Counted from the merge base, so changes on main meanwhile are not its."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from neuco_core._validate import ID
from neuco_core.errors import DataError

TREES = ("neuco_tasks", "neuco_methods")
# Cannot change scores or the registry; whatever is neither this nor a plugin counts as core.
HARMLESS = re.compile(r"(?:docs|tests|examples|benchmarks)/.+|[^/]+\.md|LICENSE", re.DOTALL)
# No reviewer can read what these do, and Python prefers them to a source file of the same name.
COMPILED = (".so", ".pyd", ".dll", ".dylib", ".pyc", ".pyo", ".pth", ".egg", ".whl")
REGULAR = ("100644", "100755", "000000")
# Written by `publish` on main only.
PROTECTED = ("registry/results/", "registry/leaderboards/", "registry/withdrawn/")


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
    bad_names: tuple[str, ...] = field(default=())
    unreadable: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def git(repo: Path, *args: str, **variables: str) -> str:
    """Run git and return what it prints; paths are not quoted, whatever characters they have."""
    command = ["git", "-c", "core.quotePath=false", "-C", str(repo), *args]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, capture_output=True, text=True, errors="backslashreplace", env=environment)
    if done.returncode:
        raise DataError(f"git {args[0]} failed: {done.stderr.strip()}", where=repo)
    return done.stdout


def changed(repo: Path, base: str, head: str = "HEAD") -> Changes:
    """What ``head`` changed since it left ``base``."""
    start = git(repo, "merge-base", base, head).strip()
    end = git(repo, "rev-parse", f"{head}^{{commit}}").strip()
    # Without rename detection a move is a deletion and an addition, which is what it is for a registry of names.
    fields = git(repo, "diff", "--no-renames", "--raw", "-z", start, end).split("\0")
    pairs = [(fields[i].split()[1], fields[i + 1]) for i in range(0, len(fields) - 1, 2)]
    return _sort_out(repo, start, end, pairs)


def _sort_out(repo: Path, start: str, end: str, pairs: Iterable[tuple[str, str]]) -> Changes:
    """``pairs`` are modes after the change, and paths."""
    touched: set[tuple[str, str]] = set()
    core, protected, other, bad, unreadable = [], [], [], [], []
    for mode, path in pairs:
        # A link can lead anywhere, and a submodule hides its content; only their removal is welcome.
        if mode not in REGULAR or (mode != "000000" and path.lower().endswith(COMPILED)):
            unreadable.append(path)
        match = re.fullmatch(rf"({'|'.join(TREES)})/([^/]+)/.+", path, re.DOTALL)
        if match and ID.fullmatch(match[2]):
            touched.add((match[1], match[2]))
        elif match:
            bad.append(f"{match[1]}/{match[2]}")
        elif path.startswith(PROTECTED):
            protected.append(path)
        elif HARMLESS.fullmatch(path):
            other.append(path)
        else:
            core.append(path)
    plugins = tuple(Touched(tree, name, _how(repo, start, end, f"{tree}/{name}")) for tree, name in sorted(touched))
    names = tuple(dict.fromkeys(bad))
    return Changes(start, end, plugins, tuple(core), tuple(protected), tuple(other), names, tuple(unreadable))


def _how(repo: Path, start: str, end: str, folder: str) -> str:
    before, after = _exists(repo, start, folder), _exists(repo, end, folder)
    return "changed" if before and after else "added" if after else "removed"


def _exists(repo: Path, commit: str, folder: str) -> bool:
    return bool(git(repo, "ls-tree", "-z", "--name-only", commit, folder + "/__init__.py"))


def check_out(repo: Path, commit: str, target: Path) -> Path:
    """The files of a commit, whatever the working tree is like: what is judged is what would be merged."""
    target.mkdir(parents=True)
    index = {"GIT_INDEX_FILE": str(target.with_name(target.name + ".index"))}
    git(repo, "read-tree", commit, **index)
    git(repo, "checkout-index", "--all", f"--prefix={target}/", **index)
    return target
