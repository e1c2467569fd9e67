"""Loading plugins: what each of them registers, or why it cannot be used.

Each is imported, checked and asked for its specs on its own: whatever one does wrong is written down as a
``BrokenPlugin``, and no other plugin notices. A plugin's name is the namespace of its ids (see ``hookspecs``); so the
few plugins that can hold an id are known beforehand, and two of them that both do are always noticed.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from operator import attrgetter
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from neuco_core import hookspecs
from neuco_core.errors import DuplicateIdError, PluginError
from neuco_core.plugins.discovery import (
    BUILTIN,
    HOOKS,
    IN_TREE,
    NOUNS,
    PLURAL,
    BrokenPlugin,
    Candidate,
    alike,
    find_in_tree,
    find_installed,
    heads,
    overlaps,
)
from neuco_core.plugins.running import Interrupted, compiled_apart, plugin_code, run_from_source
from neuco_core.specs import Origin, Spec

MOST_SPECS = 10_000  # of one plugin


@dataclass(frozen=True)
class Plugin:
    """A plugin that was imported, with what it registers."""

    candidate: Candidate
    specs: tuple[tuple[str, Spec], ...]


class Plugins:
    """All plugins of this environment, or of the packages given; results are kept for the life of the object."""

    def __init__(
        self,
        packages: Iterable[str] = IN_TREE,
        builtin: Iterable[str] = BUILTIN,
        entry_points: importlib.metadata.EntryPoints | None = None,
        without: Collection[str] = (),
    ) -> None:
        """``without`` are modules of plugins that are left out."""
        everything = [*find_in_tree(packages), *find_installed(entry_points)]
        self._unusable = [item for item in everything if isinstance(item, BrokenPlugin)]
        others = [item for item in everything if isinstance(item, Candidate) and item.module not in without]
        ours = [Candidate((name,), name, BUILTIN[name], name, builtin=True) for name in builtin]
        self.candidates = (*ours, *others)
        # Overlaps are decided before any import, so that no order of loading matters.
        self._loaded: dict[Candidate, Plugin | BrokenPlugin] = {**overlaps(others)}
        self._answers: dict[tuple[str, str], tuple[list[Spec], list[BrokenPlugin]]] = {}
        # By the names that their ids begin with; neuco's own have any.
        self._by_namespace: dict[str, list[Candidate]] = {}
        for candidate in self.candidates:
            for name in ("",) if candidate.builtin else candidate.names:
                self._by_namespace.setdefault(alike(name), []).append(candidate)
        run_from_source(item.module for item in others)

    def load(self, candidate: Candidate) -> Plugin | BrokenPlugin:
        """Import one plugin and collect its specs; never raises for what the plugin does wrong."""
        loaded = self._loaded.get(candidate)
        if loaded is not None:
            return loaded
        stage, origin = "import", candidate.origin()
        try:
            with plugin_code(), compiled_apart():
                entry = candidate.entry_point
                module = entry.load() if entry else importlib.import_module(candidate.module)
                stage = "collect"
                loaded = Plugin(candidate, tuple(_collect(candidate, origin, module)))
        except _Misfit as error:
            loaded = BrokenPlugin(candidate.name, str(origin), error.stage, str(error), error.file)
        except Interrupted as error:
            doing = "imported" if stage == "import" else "asked what it registers"
            raise Interrupted(f"while plugin {candidate.name!r} ({origin}) was being {doing}") from error
        except BaseException as error:  # also SystemExit, KeyboardInterrupt, and what test tools raise to skip a module
            loaded = BrokenPlugin(candidate.name, str(origin), stage, say(error), _line_of(error, candidate))
        self._loaded[candidate] = loaded
        return loaded

    def find(self, noun: str, ref: str, *, any_spelling: bool = False) -> Spec | None:
        """The spec with this id, in its newest version or, as ``id@2``, in that one.

        Imports only the plugins that may hold it. In ``any_spelling``: whoever has it so, the id is taken.
        """
        spec_id, at, version = ref.partition("@")
        specs, broken = self._alike(noun, spec_id)
        specs = [spec for spec in specs if any_spelling or spec.id == spec_id]
        specs = [spec for spec in specs if not at or version == str(spec.version)]
        if not specs and broken:
            first = broken[0]
            kind = DuplicateIdError if first.stage == "duplicate" else PluginError
            failed = "failed to import" if first.stage == "import" else "is broken"
            what = f"{noun} {spec_id!r} cannot be loaded: its plugin {first.name!r} {failed}: {first.error}"
            raise kind(what, where=first.file or first.source, hint="Run `neuco plugins`")
        return max(specs, key=attrgetter("version"), default=None)

    def versions(self, noun: str, ref: str) -> list[str]:
        """All versions of an id, as ``id@1``, ``id@2``."""
        specs, _ = self._alike(noun, ref.partition("@")[0])
        return [f"{spec.id}@{spec.version}" for spec in sorted(specs, key=attrgetter("version"))]

    def _alike(self, noun: str, spec_id: str) -> tuple[list[Spec], list[BrokenPlugin]]:
        """All versions of an id in any spelling, and the broken plugins that may hold it; looked up once."""
        asked = noun, alike(spec_id)
        if asked not in self._answers:
            # By the namespaces that the id lies in: no look-up walks over all plugins.
            holders = [item for head in ("", *heads(spec_id)) for item in self._by_namespace.get(head, ())]
            results = [self.load(holder) for holder in dict.fromkeys(holders) if noun in holder.nouns]
            # In any spelling: of two that differ only in - and _, neither may be taken.
            registered = [pair for item in results if isinstance(item, Plugin) for pair in item.specs]
            specs, taken = ours_first(noun, [spec for kind, spec in registered if (kind, alike(spec.id)) == asked])
            if len(specs) > 1 and (error := dispute(noun, specs)) is not None:
                raise error
            self._answers[asked] = specs, [*(item for item in results if isinstance(item, BrokenPlugin)), *taken]
        return self._answers[asked]

    def collect(self, noun: str) -> tuple[dict[str, Spec], list[BrokenPlugin]]:
        """The newest spec of each id, and the broken plugins; an id that is registered twice counts as broken."""
        plugins, broken = self.survey(noun)
        by_id: dict[str, list[Spec]] = {}
        for kind, spec in (pair for plugin in plugins for pair in plugin.specs):
            if kind == noun:
                by_id.setdefault(alike(spec.id), []).append(spec)
        newest = []
        for all_specs in by_id.values():
            specs, taken = ours_first(noun, all_specs)
            broken += taken
            if len(specs) > 1 and (error := dispute(noun, specs)) is not None:
                broken.append(BrokenPlugin(specs[0].id, str(error.where), "duplicate", str(error)))
            else:
                newest.append(max(specs, key=attrgetter("version")))
        return {spec.id: spec for spec in sorted(newest, key=attrgetter("id"))}, broken

    def survey(self, noun: str | None = None) -> tuple[list[Plugin], list[BrokenPlugin]]:
        """Every plugin that can be used, imported, and everything that cannot; or only those that may bring a noun."""
        results = [self.load(candidate) for candidate in self.candidates if noun is None or noun in candidate.nouns]
        broken = [*self._unusable, *(item for item in results if isinstance(item, BrokenPlugin))]
        return [item for item in results if isinstance(item, Plugin)], broken


def ours_first(noun: str, specs: list[Spec]) -> tuple[list[Spec], list[BrokenPlugin]]:
    """The specs of an id without those of others, if neuco has it itself: protocols and records name it."""
    ours = [spec for spec in specs if spec.origin and spec.origin.plugin in BUILTIN]
    if len(ours) in (0, len(specs)):
        return specs, []
    text = f"{noun} {ours[0].id!r} comes with neuco, whose own is used: choose another id"
    others = [spec.origin for spec in specs if spec.origin and spec.origin.plugin not in BUILTIN]
    return ours, [BrokenPlugin(origin.plugin, str(origin), "duplicate", text) for origin in others]


def dispute(noun: str, specs: Sequence[Spec]) -> DuplicateIdError | None:
    """The error if an id is registered twice: versions of it may stand side by side, but only in one plugin."""
    homes = {(spec.id, spec.origin) for spec in specs}
    if len(homes) <= 1 and len({spec.version for spec in specs}) == len(specs):
        return None
    ids = sorted({spec.id for spec in specs})
    differ = f"{noun}s {' and '.join(map(repr, ids))} differ only in - and _, which are one id"
    return DuplicateIdError(
        differ if len(ids) > 1 else f"{noun} {ids[0]!r} is registered {len(specs)} times",
        where=" and ".join(str(spec.origin) for spec in specs),
        hint="Rename one of them or remove its plugin",
    )


def say(error: BaseException) -> str:
    """An error in one line, even if its own ``__str__`` fails."""
    try:
        with plugin_code():
            return " ".join(f"{type(error).__name__}: {error}".split())
    except Interrupted:
        raise
    except BaseException:
        return f"{type(error).__name__}, without a message"


class _Misfit(Exception):
    """A plugin that imports well and registers something wrong; ``file`` says where."""

    def __init__(self, text: str, file: str, stage: str = "register") -> None:
        super().__init__(text)
        self.file = file
        self.stage = stage


def _hooks_of(module: Any) -> dict[str, tuple[Callable[[], object], str]]:
    """The hooks that a module implements, by their names: each a function, and the line where it stands."""
    hooks: dict[str, tuple[Callable[[], object], str]] = {}
    for name in dir(module):
        function = getattr(module, name, None)
        marked = hasattr(function, "implements_hook")
        if not isinstance(function, FunctionType | MethodType) or not (marked or name in HOOKS):
            continue
        line = f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"
        if not marked:  # what it would register would be missed by nobody
            raise _Misfit(f"{name} is a hook without @hookimpl: add it", line)
        if name not in HOOKS:  # misspelled, or a hook that is kept under a second name
            cure = f"hooks are {', '.join(HOOKS)}; mark none under another name"
            raise _Misfit(f"{name} is marked with @hookimpl and is no hook; {cure}", line)
        if arguments := signature(function).parameters:
            raise _Misfit(f"{name} is called without arguments; it has {', '.join(arguments)}", line)
        hooks[name] = function, line
    if not hooks:
        file = str(getattr(module, "__file__", None) or module)
        raise _Misfit("no function with @hookimpl, so nothing is registered", file)
    return hooks


def _collect(candidate: Candidate, origin: Origin, module: Any) -> Iterator[tuple[str, Spec]]:
    seen: set[tuple[str, str, int]] = set()
    for name, (function, line) in _hooks_of(module).items():
        noun = HOOKS[name]
        kind = NOUNS[noun]
        if noun not in candidate.nouns:
            if candidate.entry_point is None:
                raise _Misfit(f"implements {name}, which a plugin in this folder may not; see hookspecs", line)
            raise _Misfit(f"implements {name} without an entry point in the group neuco.{PLURAL[noun]}", line)
        registered = function()
        if isinstance(registered, Spec) or not isinstance(registered, Iterable):
            raise _Misfit(f"{name} must yield specs, not {type(registered).__name__}", line)
        for spec in registered:
            # A subclass could leave out the checks that every spec goes through when it is made.
            if type(spec) is not kind:
                raise _Misfit(f"{name} must yield {kind.__name__}, not {type(spec).__name__}", line)
            if not candidate.builtin and set(heads(spec.id)).isdisjoint(map(alike, candidate.names)):
                names = " or ".join(map(repr, candidate.names))
                rule = "an id is the plugin's name, or starts with it and '_'"
                raise _Misfit(f"{noun} {spec.id!r} is outside the plugin {names}: {rule}", line)
            if len(seen) == MOST_SPECS:
                raise _Misfit(f"registers more than {MOST_SPECS} specs: does {name} ever end?", line)
            if (noun, spec.id, spec.version) in seen:
                raise _Misfit(f"{noun} {spec.id!r} is registered twice by {line}", line, "duplicate")
            seen.add((noun, spec.id, spec.version))
            yield noun, replace(spec, origin=origin)


def _line_of(error: BaseException, candidate: Candidate) -> str:
    """The last line of the plugin's own that the error went through."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    # Once the backport `importlib_metadata` is imported, it is what finds entry points and loads them.
    loader = sys.modules[type(candidate.entry_point).__module__]
    files = [hookspecs.__file__, importlib.__file__, getattr(loader, "__file__", None)]
    machinery = (*(f"{Path(file).parent}{os.sep}" for file in files if file), "<frozen")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(machinery)]
    if not frames:
        return candidate.source
    folder = Path(frames[0].filename).parent
    last = [frame for frame in frames if folder in Path(frame.filename).parents][-1]
    return f"{last.filename}:{last.lineno}"
