"""Loading plugins: what each of them registers, or why it cannot be used.

Each is imported, checked and asked for its specs on its own, with a pluggy manager of its own: whatever one
does wrong is written down as a ``BrokenPlugin``, and no other plugin notices. A plugin's name is the namespace
of its ids (see ``hookspecs``); so the few plugins that can hold an id are known beforehand, and two of them
that both do are always noticed.
"""

from __future__ import annotations

import importlib
import importlib.metadata
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
    IN_TREE,
    NOUNS,
    PLURAL,
    BrokenPlugin,
    Candidate,
    alike,
    find_in_tree,
    find_installed,
    inside,
    installed_entry_points,
    overlaps,
)
from neuco_core.plugins.guard import Interrupted, plugin_code
from neuco_core.plugins.source import compiled_apart, run_from_source
from neuco_core.specs import Spec

MOST_SPECS = 10_000  # of one plugin
HOOKS = {f"neuco_{plural}": noun for noun, plural in PLURAL.items()}


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
    ) -> None:
        self._packages = packages
        self._builtin = builtin
        self._entry_points = entry_points
        self._loaded: dict[Candidate, Plugin | BrokenPlugin] = {}
        self._answers: dict[tuple[str, str], tuple[list[Spec], list[BrokenPlugin]]] = {}

    @cached_property
    def _discovered(self) -> tuple[tuple[Candidate, ...], tuple[BrokenPlugin, ...]]:
        entries, unread = (self._entry_points, []) if self._entry_points is not None else installed_entry_points()
        everything = [*find_in_tree(self._packages), *find_installed(entries), *unread]
        builtin = [Candidate((name,), name, BUILTIN[name], name, builtin=True) for name in self._builtin]
        candidates = [item for item in everything if isinstance(item, Candidate)]
        self._loaded.update(overlaps(candidates))  # decided before any import, so that no order of loading matters
        run_from_source(item.module for item in candidates)
        return (*builtin, *candidates), tuple(item for item in everything if isinstance(item, BrokenPlugin))

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        return self._discovered[0]

    def load(self, candidate: Candidate) -> Plugin | BrokenPlugin:
        """Import one plugin and collect its specs; never raises for what the plugin does wrong."""
        if candidate not in self._loaded:
            self._loaded[candidate] = _load(candidate)
        return self._loaded[candidate]

    def find(self, noun: str, ref: str) -> Spec | None:
        """The spec with this id, in its newest version or, as ``id@2``, in that one.

        Imports only the plugins that may hold it.
        """
        spec_id, at, version = ref.partition("@")
        specs, broken = self._alike(noun, spec_id)
        specs = [spec for spec in specs if spec.id == spec_id and (not at or version == str(_version(spec)))]
        if not specs and broken:
            raise _cannot_load(noun, spec_id, broken[0])
        return max(specs, key=_version, default=None)

    def find_alike(self, noun: str, spec_id: str) -> Spec | None:
        """A spec with this id in any spelling: whoever it is, the id is taken."""
        specs, broken = self._alike(noun, spec_id)
        if not specs and broken:
            raise _cannot_load(noun, spec_id, broken[0])
        return max(specs, key=_version, default=None)

    def versions(self, noun: str, ref: str) -> list[str]:
        """All versions of an id, as ``id@1``, ``id@2``."""
        specs, _ = self._alike(noun, ref.partition("@")[0])
        return [f"{spec.id}@{_version(spec)}" for spec in sorted(specs, key=_version)]

    def _alike(self, noun: str, spec_id: str) -> tuple[list[Spec], list[BrokenPlugin]]:
        """All versions of an id in any spelling, and the broken plugins that may hold it; looked up once."""
        place = noun, alike(spec_id)
        if place not in self._answers:
            results = [self.load(item) for item in self._holders(*place)]
            # In any spelling: of two that differ only in - and _, neither may be taken.
            registered = [pair for item in results if isinstance(item, Plugin) for pair in item.specs]
            specs = [spec for kind, spec in registered if kind == noun and alike(spec.id) == alike(spec_id)]
            if _disputed(specs):
                raise duplicate(noun, specs)
            self._answers[place] = specs, [item for item in results if isinstance(item, BrokenPlugin)]
        return self._answers[place]

    def _holders(self, noun: str, spec_id: str) -> list[Candidate]:
        """The plugins that may hold an id, by the namespaces that it lies in: no look-up walks over all of them."""
        words = alike(spec_id).split("_")
        heads = ["", *("_".join(words[:count]) for count in range(1, len(words) + 1))]
        places = {place: item for head in heads for place, item in self._namespaces.get(head, ())}
        return [places[place] for place in sorted(places) if noun in places[place].nouns]

    @cached_property
    def _namespaces(self) -> dict[str, list[tuple[int, Candidate]]]:
        """Plugins with their places among all, by the names that their ids begin with; neuco's own have any."""
        by_name: dict[str, list[tuple[int, Candidate]]] = {}
        for place, candidate in enumerate(self.candidates):
            for name in ("",) if candidate.builtin else candidate.names:
                by_name.setdefault(alike(name), []).append((place, candidate))
        return by_name

    def collect(self, noun: str) -> tuple[dict[str, Spec], list[BrokenPlugin]]:
        """The newest spec of each id, and the broken plugins. An id that is registered twice counts as broken.

        Plugins that cannot bring this noun are not even imported.
        """
        plugins, broken = self.survey(noun)
        by_id: dict[str, list[Spec]] = {}
        for plugin in plugins:
            for kind, spec in plugin.specs:
                if kind == noun:
                    by_id.setdefault(alike(spec.id), []).append(spec)
        for specs in by_id.values():
            if _disputed(specs):
                broken.append(BrokenPlugin(specs[0].id, _sources(specs), "duplicate", str(duplicate(noun, specs))))
        newest = (max(specs, key=_version) for specs in by_id.values() if not _disputed(specs))
        return {spec.id: spec for spec in sorted(newest, key=lambda spec: spec.id)}, broken

    def survey(self, noun: str | None = None) -> tuple[list[Plugin], list[BrokenPlugin]]:
        """Every plugin that can be used, imported, and everything that cannot; or only those that may bring a noun."""
        results = [self.load(candidate) for candidate in self.candidates if noun is None or noun in candidate.nouns]
        broken = [*self._discovered[1], *(item for item in results if isinstance(item, BrokenPlugin))]
        return [item for item in results if isinstance(item, Plugin)], broken


def _version(spec: Spec) -> int:
    """Only tasks, methods and datasets have versions; of anything else there is one."""
    return int(getattr(spec, "version", 1))


def _disputed(specs: Sequence[Spec]) -> bool:
    """Whether an id is registered twice: versions of it may stand side by side, but only in one plugin."""
    homes = {(spec.id, spec.origin) for spec in specs}
    return len(homes) > 1 or len({_version(spec) for spec in specs}) < len(specs)


def duplicate(noun: str, specs: Sequence[Spec]) -> DuplicateIdError:
    ids = sorted({spec.id for spec in specs})
    differ = f"{noun}s {' and '.join(map(repr, ids))} differ only in - and _, which are one id"
    return DuplicateIdError(
        differ if len(ids) > 1 else f"{noun} {ids[0]!r} is registered {len(specs)} times",
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


def _load(candidate: Candidate) -> Plugin | BrokenPlugin:
    stage = "import"
    try:
        with plugin_code(), compiled_apart():
            entry = candidate.entry_point
            module = entry.load() if entry else importlib.import_module(candidate.module)
            stage = "register"
            hooks = hooks_of(module)
            stage = "collect"
            specs = tuple(_collect(candidate, hooks))
    except _Misfit as error:
        return BrokenPlugin(candidate.name, str(candidate.origin()), error.stage, str(error), error.file)
    except Interrupted as error:
        doing = "imported" if stage == "import" else "asked what it registers"
        raise Interrupted(f"while plugin {candidate.name!r} ({candidate.origin()}) was being {doing}") from error
    except BaseException as error:  # also SystemExit, KeyboardInterrupt, and what test tools raise to skip a module
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
        file = str(getattr(module, "__file__", None) or module)
        raise _Misfit("no function with @hookimpl, so nothing is registered", file)
    return {caller.name: (caller, _code_place(caller.get_hookimpls()[0].function)) for caller in callers}


def _collect(candidate: Candidate, hooks: dict[str, tuple[pluggy.HookCaller, str]]) -> Iterator[tuple[str, Spec]]:
    seen: set[tuple[str, str, int]] = set()
    for hook, (caller, place) in hooks.items():
        noun = HOOKS[hook]
        if noun not in candidate.nouns:
            if candidate.entry_point is None:
                raise _Misfit(f"implements {hook}, which a plugin in this folder may not; see hookspecs", place)
            raise _Misfit(f"implements {hook} without an entry point in the group neuco.{PLURAL[noun]}", place)
        for spec in _yielded(hook, caller(), place):
            _check(candidate, noun, spec, place)
            if len(seen) == MOST_SPECS:
                raise _Misfit(f"registers more than {MOST_SPECS} specs: does {hook} ever end?", place)
            if (noun, spec.id, _version(spec)) in seen:
                raise _Misfit(f"{noun} {spec.id!r} is registered twice by {place}", place, "duplicate")
            seen.add((noun, spec.id, _version(spec)))
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
        raise _Misfit(f"neuco_{PLURAL[noun]} must yield {wanted.__name__}, not {type(spec).__name__}", place)
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


def _code_place(function: object) -> str:
    code = function.__code__ if isinstance(function, FunctionType) else None
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)
