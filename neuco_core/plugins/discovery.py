"""Finding plugins without importing them: directories of our own packages, and entry points of installed ones."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from neuco_core import specs
from neuco_core.fields import ID
from neuco_core.specs import Origin, Spec

# The nouns that plugins bring. Their hook is neuco_<plural> and their entry-point group neuco.<plural>.
NOUNS: dict[str, type[Spec]] = {
    "dataset": specs.Dataset,
    "task": specs.Task,
    "method": specs.Method,
    "metric": specs.Metric,
    "probe": specs.Probe,
    "splitter": specs.Splitter,
    "engine": specs.Engine,
    "board": specs.BoardKind,
    "command": specs.Command,
    "check": specs.Check,
    "panel": specs.Panel,
    "published": specs.PublishedSource,
    "cells": specs.CellSource,
    "column": specs.ColumnSource,
    "coder": specs.Coder,
}
PLURAL = {noun: noun if noun in ("published", "cells") else f"{noun}s" for noun in NOUNS}
HOOKS = {f"neuco_{plural}": noun for noun, plural in PLURAL.items()}
CONTENT = frozenset(("dataset", "task", "method"))
USES = frozenset(("command", "check", "panel", "published", "cells", "column"))
# Our own packages of plugins. Content brings no uses, so that a contributed task cannot judge or draw others;
# extensions bring no content, so that their names take no id from anybody's.
IN_TREE = {
    "neuco_tasks": frozenset(NOUNS) - USES,
    "neuco_methods": frozenset(NOUNS) - USES,
    "neuco_extensions": frozenset(NOUNS) - CONTENT,
}
BUILTIN = {
    "neuco_core.builtin": frozenset(("metric", "probe", "splitter", "engine", "board")),
    "neuco_core.contract.builtin": frozenset(("check",)),
}


@dataclass(frozen=True)
class BrokenPlugin:
    """A plugin, or something in a plugin's place, that cannot be used, and why."""

    name: str
    source: str
    stage: str
    error: str
    file: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.file or self.source}): {self.error}"


@dataclass(frozen=True)
class Candidate:
    """A plugin that is not imported yet; ``names`` are the namespaces of its ids.

    ``package`` is the metadata folder of the installed package, which tells packages apart even where their entry
    points are equal; it is "" for a directory.
    """

    names: tuple[str, ...]
    module: str
    nouns: frozenset[str]
    source: str
    builtin: bool = False
    package: str = ""
    entry_point: importlib.metadata.EntryPoint | None = None

    @property
    def name(self) -> str:
        return self.names[0]

    def origin(self) -> Origin:
        dist = self.entry_point.dist if self.entry_point else None
        if dist is None:
            return Origin(self.name, self.source)
        about = dist.metadata  # parsed anew at each access
        return Origin(self.name, self.source, about["Name"] or "unknown", about["Version"] or "unknown")


def alike(spec_id: str) -> str:
    """What ids that differ only in ``-`` and ``_`` share; they are one id, as in the names of files and variables."""
    return spec_id.replace("-", "_")


def heads(spec_id: str) -> list[str]:
    """The namespaces that an id lies in: ``soil`` and ``soil_ph`` of ``soil-ph``."""
    parts = alike(spec_id).split("_")
    return ["_".join(parts[:count]) for count in range(1, len(parts) + 1)]


def overlaps(candidates: Iterable[Candidate]) -> dict[Candidate, BrokenPlugin]:
    """Plugins that claim ids of another package's plugin; directories are one package, which keeps its names.

    Of two installed packages the one whose name lies inside the other's namespace is refused; with equal names, both.
    """
    by_name: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        for name in candidate.names:
            by_name.setdefault(alike(name), []).append(candidate)
    refused: dict[Candidate, BrokenPlugin] = {}
    for name, inner_plugins in by_name.items():
        outer_plugins = [item for head in heads(name) for item in by_name.get(head, ())]
        for outer, inner in product(outer_plugins, inner_plugins):
            if inner.package == outer.package or not inner.nouns & outer.nouns:
                continue
            loser = inner if inner.package else outer
            both = sorted((outer, inner), key=lambda item: (item.names, item.package))
            owners = " and ".join(f"plugin {item.name!r} of {item.origin()}" for item in both)
            text = f"{owners} claim the same ids: the plugin's name and all that begin with it; rename one of them"
            refused.setdefault(loser, BrokenPlugin(loser.name, str(loser.origin()), "duplicate", text))
    return refused


def extended(package_path: Iterable[str], package: str) -> list[str]:
    """The folders of an in-tree package: its own, and those of its name on the Python path that are not packages.

    One with an ``__init__.py`` is another installation of neuco, whose plugins would all be there twice. This runs at
    import, which must not fail: ``os.path`` says no of what may not be looked at, where ``Path`` raises.
    """
    named_so = [os.path.join(entry or ".", package) for entry in sys.path]  # noqa: PTH118
    added = [path for path in named_so if os.path.isdir(path) and not os.path.exists(f"{path}/__init__.py")]  # noqa: PTH110, PTH112
    folders: dict[Path, str] = {}
    for folder in (*package_path, *added):  # of one folder under two names, the first: ours before what the path adds
        folders.setdefault(Path(folder).resolve(), folder)
    return list(folders.values())


def find_in_tree(packages: Iterable[str]) -> Iterator[Candidate | BrokenPlugin]:
    for package in packages:
        if importlib.util.find_spec(package) is None:  # the core does without any of them
            continue
        first: dict[str, Path] = {}
        for folder in importlib.import_module(package).__path__:
            try:
                paths = sorted(Path(folder).iterdir())
            except OSError as error:
                yield BrokenPlugin(package, folder, "find", f"the folder cannot be read: {error.strerror}", folder)
                continue
            for path in paths:
                if path.name in ("__init__.py", "__pycache__", "py.typed") or path.name.startswith("."):
                    continue
                reason = ""
                try:
                    if not path.is_dir():
                        reason = "a plugin is a directory; this is a file"
                    elif path.name.startswith("_"):
                        reason = "names that start with '_' are not loaded; rename the directory to register it"
                    elif not (path / "__init__.py").is_file():
                        reason = "no __init__.py, so nothing can be registered"
                    elif not ID.fullmatch(path.name):
                        reason = "the directory's name must be an id: a-z, 0-9, _ and -"
                    elif first.setdefault(path.name, path) != path:
                        reason = f"hidden by the plugin of the same name in {first[path.name]}; rename one of them"
                except OSError as error:
                    reason = f"cannot be read: {error.strerror}"
                if reason:
                    yield BrokenPlugin(path.name, str(path), "find", reason, str(path))
                else:
                    nouns = IN_TREE.get(package, frozenset(NOUNS))
                    yield Candidate((path.name,), f"{package}.{path.name}", nouns, str(path))


def find_installed(entry_points: Any = None) -> Iterator[Candidate | BrokenPlugin]:
    """One candidate per distribution and module, whatever the number of its entry points (default: all installed)."""
    if entry_points is None:  # Any: in the type stubs the class still depends on the Python version
        try:
            entry_points = importlib.metadata.entry_points()
        except Exception:  # a malformed file of any package spoils the quick way: each is asked on its own
            by_name: dict[str, Iterable[importlib.metadata.EntryPoint]] = {}
            for dist in importlib.metadata.distributions():
                try:
                    by_name.setdefault(dist.name, dist.entry_points)  # of two, the first on the path, as for an import
                except Exception as error:
                    folder = Path(getattr(dist, "_path", str(dist)))
                    text = f"its entry points cannot be read; reinstall it: {type(error).__name__}: {error}"
                    yield BrokenPlugin(folder.stem, str(folder), "find", text, str(folder / "entry_points.txt"))
            entry_points = importlib.metadata.EntryPoints(item for items in by_name.values() for item in items)
    by_module: dict[tuple[str, str], list[tuple[str, importlib.metadata.EntryPoint]]] = {}
    for noun in NOUNS:
        for entry in entry_points.select(group=f"neuco.{PLURAL[noun]}"):
            # The metadata folder tells distributions apart without parsing their metadata, which costs more than all
            # the rest.
            home = getattr(entry.dist, "_path", None) or id(entry.dist)
            by_module.setdefault((str(home), entry.value), []).append((noun, entry))
    for (package, value), entries in sorted(by_module.items()):
        names = tuple(dict.fromkeys(entry.name for _, entry in entries))
        bad = [name for name in names if not ID.fullmatch(name)]
        if bad:
            yield BrokenPlugin(bad[0], f"{package}: {value}", "find", "the entry point's name must be an id")
            continue
        nouns = frozenset(noun for noun, _ in entries)
        yield Candidate(names, value, nouns, value, package=package, entry_point=entries[0][1])
