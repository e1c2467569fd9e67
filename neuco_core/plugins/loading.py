"""Loading plugins: what each of them registers, or why it cannot be used.

Each is imported, checked and asked for its specs on its own, with a pluggy manager of its own: whatever one
does wrong is written down as a ``BrokenPlugin``, and no other plugin notices. A plugin's name is the namespace
of its ids (see ``hookspecs``); so the few plugins that can hold an id are known beforehand, and two of them
that both do are always noticed.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import isroutine
from pathlib import Path
from types import FunctionType, ModuleType

import pluggy

from neuco_core import hookspecs
from neuco_core.errors import DuplicateIdError, PluginError
from neuco_core.plugins.discovery import (
    BUILTIN,
    BUILTIN_NOUNS,
    IN_TREE,
    NOUNS,
    BrokenPlugin,
    Candidate,
    find_in_tree,
    find_installed,
    inside,
    installed_entry_points,
)
from neuco_core.specs import Spec


@dataclass(frozen=True)
class Plugin:
    """A plugin that was imported, with what it registers."""

    candidate: Candidate
    specs: tuple[tuple[str, Spec], ...]


class Plugins:
    """All plugins of this environment, or of the packages given; results are kept for the life of the object."""

    def __init__(
        self,
        packages: Sequence[str] = IN_TREE,
        builtin: Sequence[str] = BUILTIN,
        entry_points: importlib.metadata.EntryPoints | None = None,
    ) -> None:
        self._packages = packages
        self._builtin = builtin
        self._entry_points = entry_points
        self._loaded: dict[Candidate, Plugin | BrokenPlugin] = {}

    @cached_property
    def _found(self) -> tuple[tuple[Candidate, ...], tuple[BrokenPlugin, ...]]:
        entries, unread = (self._entry_points, []) if self._entry_points is not None else installed_entry_points()
        everything = [*find_in_tree(self._packages), *find_installed(entries), *unread]
        builtin = [Candidate((name,), name, BUILTIN_NOUNS, name, builtin=True) for name in self._builtin]
        candidates = [item for item in everything if isinstance(item, Candidate)]
        return (*builtin, *candidates), tuple(item for item in everything if isinstance(item, BrokenPlugin))

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        return self._found[0]

    def load(self, candidate: Candidate) -> Plugin | BrokenPlugin:
        """Import one plugin and collect its specs; never raises for what the plugin does wrong."""
        if candidate not in self._loaded:
            self._loaded[candidate] = _load(candidate)
        return self._loaded[candidate]

    def find(self, noun: str, spec_id: str) -> Spec | None:
        """The spec with this id; imports only the plugins that may hold it."""
        results = [self.load(item) for item in self.candidates if item.may_hold(noun, spec_id)]
        specs = [spec for item in results if isinstance(item, Plugin) for spec in _with_id(item, noun, spec_id)]
        if len(specs) > 1:
            raise duplicate(noun, specs)
        if specs:
            return specs[0]
        for item in results:
            if isinstance(item, BrokenPlugin):
                raise _cannot_load(noun, spec_id, item)
        return None

    def collect(self, noun: str) -> tuple[dict[str, Spec], list[BrokenPlugin]]:
        """All specs of a noun by id, and the broken plugins. An id that is registered twice counts as broken."""
        plugins, broken = self.survey()
        by_id: dict[str, list[Spec]] = {}
        for plugin in plugins:
            for kind, spec in plugin.specs:
                if kind == noun:
                    by_id.setdefault(spec.id, []).append(spec)
        for spec_id, specs in by_id.items():
            if len(specs) > 1:
                broken.append(BrokenPlugin(spec_id, _sources(specs), "duplicate", str(duplicate(noun, specs))))
        return {key: specs[0] for key, specs in sorted(by_id.items()) if len(specs) == 1}, broken

    def survey(self) -> tuple[list[Plugin], list[BrokenPlugin]]:
        """Every plugin that can be used, imported, and everything that cannot."""
        results = [self.load(candidate) for candidate in self.candidates]
        broken = [*self._found[1], *(item for item in results if isinstance(item, BrokenPlugin))]
        return [item for item in results if isinstance(item, Plugin)], broken


def duplicate(noun: str, specs: Sequence[Spec]) -> DuplicateIdError:
    return DuplicateIdError(
        f"{noun} {specs[0].id!r} is registered {len(specs)} times",
        where=_sources(specs),
        hint="Rename one of them or remove its plugin",
    )


def _cannot_load(noun: str, spec_id: str, broken: BrokenPlugin) -> PluginError:
    kind = DuplicateIdError if broken.stage == "duplicate" else PluginError
    failed = "failed to import" if broken.stage == "import" else "is broken"
    what = f"{noun} {spec_id!r} cannot be loaded: its plugin {broken.name!r} {failed}: {broken.error}"
    return kind(what, where=broken.file or broken.source, hint="Run `neuco plugins`")


def _sources(specs: Sequence[Spec]) -> str:
    return " and ".join(str(spec.origin) for spec in specs)


def _with_id(plugin: Plugin, noun: str, spec_id: str) -> list[Spec]:
    return [spec for kind, spec in plugin.specs if kind == noun and spec.id == spec_id]


def say(error: BaseException) -> str:
    """An error in one line, even if its own ``__str__`` fails."""
    try:
        return " ".join(f"{type(error).__name__}: {error}".split())
    except Exception:
        return f"{type(error).__name__}, without a message"


class _Misfit(Exception):
    """A plugin that imports well and registers something wrong; ``file`` says where."""

    def __init__(self, text: str, file: str, stage: str = "register") -> None:
        super().__init__(text)
        self.file = file
        self.stage = stage


def _load(candidate: Candidate) -> Plugin | BrokenPlugin:
    stage = "import"
    try:
        # What a plugin prints must not end up in the JSON that a program reads from us.
        with contextlib.redirect_stdout(sys.stderr):
            entry = candidate.entry_point
            module = entry.load() if entry else importlib.import_module(candidate.module)
            stage = "register"
            hooks = hooks_of(module)
            stage = "collect"
            specs = tuple(_collect(candidate, hooks))
    except _Misfit as error:
        return BrokenPlugin(candidate.name, str(candidate.origin()), error.stage, str(error), error.file)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also SystemExit, and what test tools raise to skip a module
        text = say(error)
        return BrokenPlugin(candidate.name, str(candidate.origin()), stage, text, _place(error, candidate))
    return Plugin(candidate, specs)


def hooks_of(module: ModuleType) -> dict[str, tuple[pluggy.HookCaller, str]]:
    """The hooks that a module implements, each with the place of its implementation."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(module)
    manager.check_pending()
    for name in vars(hookspecs):
        function = getattr(module, name, None)
        # pluggy passes over a function without the mark, and what it would register would be missed by nobody.
        if name.startswith("neuco_") and isroutine(function) and manager.parse_hookimpl_opts(module, name) is None:
            raise _Misfit(f"{name} is a hook without @hookimpl: add it", _code_place(function))
    callers = manager.get_hookcallers(module) or []
    if not callers:
        raise _Misfit("no function with @hookimpl, so nothing is registered", _file(module))
    return {caller.name: (caller, _code_place(caller.get_hookimpls()[0].function)) for caller in callers}


def _collect(candidate: Candidate, hooks: dict[str, tuple[pluggy.HookCaller, str]]) -> Iterator[tuple[str, Spec]]:
    seen: set[tuple[str, str]] = set()
    for hook, (caller, place) in hooks.items():
        noun = hook.removeprefix("neuco_").removesuffix("s")
        if noun not in NOUNS:  # commands are collected by the command line
            continue
        if noun not in candidate.nouns:
            raise _Misfit(f"implements {hook} without an entry point in the group neuco.{noun}s", place)
        for spec in _yielded(hook, caller(), place):
            _check(candidate, noun, spec, place)
            if (noun, spec.id) in seen:
                raise _Misfit(f"{noun} {spec.id!r} is registered twice by {place}", place, "duplicate")
            seen.add((noun, spec.id))
            yield noun, spec.stamped(candidate.origin())


def _yielded(hook: str, results: list[object], place: str) -> Iterator[Spec]:
    for result in results:
        if isinstance(result, Spec) or not isinstance(result, Iterable):
            raise _Misfit(f"{hook} must yield specs, not {type(result).__name__}", place)
        yield from result


def _check(candidate: Candidate, noun: str, spec: object, place: str) -> None:
    wanted = NOUNS[noun]
    # A subclass could leave out the checks that every spec goes through when it is made.
    if type(spec) is not wanted:
        raise _Misfit(f"neuco_{noun}s must yield {wanted.__name__}, not {type(spec).__name__}", place)
    if not candidate.builtin and not any(inside(spec.id, name) for name in candidate.names):
        names = " or ".join(repr(name) for name in candidate.names)
        text = (
            f"{noun} {spec.id!r} is outside the plugin {names}: an id is the plugin's name, or starts with it and '_'"
        )
        raise _Misfit(text, place)


def _place(error: BaseException, candidate: Candidate) -> str:
    """The last line of the plugin's own that the error went through."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    machinery = (*(str(Path(str(m.__file__)).parent) for m in (hookspecs, pluggy, importlib)), "<frozen")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(machinery)]
    if not frames:
        return candidate.source
    folder = Path(frames[0].filename).parent
    last = [frame for frame in frames if folder in Path(frame.filename).parents][-1]
    return f"{last.filename}:{last.lineno}"


def _file(module: ModuleType) -> str:
    return str(getattr(module, "__file__", None) or module)


def _code_place(function: object) -> str:
    code = function.__code__ if isinstance(function, FunctionType) else None
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)
