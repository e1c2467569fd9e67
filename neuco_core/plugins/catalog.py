"""Look-up: from an id, a pattern or a selector to specs. The functions at the end are the public API."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TypeVar

from neuco_core import paths
from neuco_core.env import switched_on
from neuco_core.errors import PluginError, SpecError, UnknownIdError, UsageError
from neuco_core.plugins.discovery import NOUNS, BrokenPlugin
from neuco_core.plugins.loading import Plugins
from neuco_core.protocol import PROTOCOLS as PROTOCOLS  # noqa: PLC0414 - protocols are looked up here, too
from neuco_core.protocol import Protocol
from neuco_core.protocol import load_protocol as load_protocol  # noqa: PLC0414
from neuco_core.specs import KINDS, BoardKind, Content, Dataset, Method, Metric, Probe, Spec, Splitter, Suite, Task
from neuco_core.text import counted

S = TypeVar("S", bound=Spec)
NOUN_OF = {cls: noun for noun, cls in NOUNS.items()}
C = TypeVar("C", bound=Content)


class Catalog:
    """Everything that is registered: plugins' specs and the registry's suites."""

    def __init__(self, plugins: Plugins | None = None, registry: Path | None = None) -> None:
        self.plugins = plugins or Plugins()
        self._registry = registry

    def load(self, cls: type[S], spec_id: str) -> S:
        """The spec with this id; imports only the plugins that may hold it."""
        noun = NOUN_OF[cls]
        spec = self.plugins.find(noun, spec_id)
        if spec is None:
            raise UnknownIdError(noun, spec_id, self.all(cls), self._broken_hint(noun))
        if not isinstance(spec, cls):  # the plugin manager checks this; the type checker cannot know
            raise PluginError(f"{spec_id!r} is not a {noun}", where=spec.origin)
        return spec

    def all(self, cls: type[S]) -> dict[str, S]:
        """All specs of a noun by id. Broken plugins are left out; ``NEUCO_STRICT=1`` makes them an error."""
        noun = NOUN_OF[cls]
        specs, broken = self.plugins.collect(noun)
        if switched_on("NEUCO_STRICT") and broken:
            first = broken[0]
            raise PluginError(
                f"plugin {first.name!r} is broken, and NEUCO_STRICT is set: {first.error}",
                where=first.file or first.source,
                hint=f"Run `neuco doctor` for all {len(broken)}" if len(broken) > 1 else "Run `neuco doctor`",
            )
        return {key: spec for key, spec in specs.items() if isinstance(spec, cls)}

    def problems(self) -> list[BrokenPlugin]:
        """What is wrong with any plugin, each thing once."""
        return list(dict.fromkeys(item for noun in NOUNS for item in self.plugins.collect(noun)[1]))

    def tasks(
        self,
        *ids: str,
        kind: str | None = None,
        tag: str | Iterable[str] = (),
        dataset: str | None = None,
        suite: str | None = None,
    ) -> list[Task]:
        """Tasks by id or pattern (any of them), kind, tag (all of them), dataset and suite; all must hold."""
        if kind is not None and kind not in KINDS:
            raise UsageError("no such kind", expected="one of " + ", ".join(KINDS), got=repr(kind))
        if dataset is not None:
            self.load(Dataset, dataset)
        tasks = self.suite_tasks(self.suite(suite)) if suite is not None else list(self.all(Task).values())
        chosen = _select(tasks, "task", ids, tag, self.all(Task), self._broken_hint("task"))
        return [task for task in chosen if kind in (None, task.kind) and dataset in (None, task.dataset)]

    def methods(self, *ids: str, tag: str | Iterable[str] = ()) -> list[Method]:
        """Methods by id or pattern (any of them) and tag (all of them)."""
        methods = self.all(Method)
        return _select(methods.values(), "method", ids, tag, methods, self._broken_hint("method"))

    def suites(self) -> dict[str, Suite]:
        """All suites by id; a bad file is an error: callers that need every suite must not silently miss one."""
        suites, bad = self.survey_suites()
        for error in bad.values():
            raise error
        return suites

    def survey_suites(self) -> tuple[dict[str, Suite], dict[str, SpecError]]:
        """The suites by id, and what is wrong with the other files, by the id that each would have."""
        suites: dict[str, Suite] = {}
        bad: dict[str, SpecError] = {}
        files: dict[str, Path] = {}
        for layer in reversed(paths.layers(self._registry or paths.registry_dir())):
            files |= {path.stem: path for path in (layer / "suites").glob("*.toml")}
        for path in (files[stem] for stem in sorted(files)):
            try:
                suites[path.stem] = read_suite(path)
            except SpecError as error:
                bad[path.stem] = error
        return suites, bad

    def suite(self, suite_id: str) -> Suite:
        suites, bad = self.survey_suites()
        if suite_id in bad:
            raise bad[suite_id]
        if suite_id not in suites:
            raise UnknownIdError("suite", suite_id, suites)
        return suites[suite_id]

    def suite_tasks(self, suite: Suite) -> list[Task]:
        """The tasks of a suite, which must all be there in the version that the suite names."""
        tasks = [self.load(Task, task_id) for task_id in suite.tasks]
        for task in tasks:
            if task.version != suite.tasks[task.id]:
                raise PluginError(
                    f"suite {suite.id!r} compares another version of task {task.id!r}",
                    where=task.origin,
                    expected=f"version {suite.tasks[task.id]}",
                    got=task.version,
                    hint="A suite is frozen: make a new suite, or install the version that it names",
                )
        return tasks

    def _broken_hint(self, noun: str) -> str:
        count = len(self.plugins.collect(noun)[1])
        return f"({counted(count, 'broken plugin')} could not be searched: run `neuco plugins`)" if count else ""


def _select(
    specs: Iterable[C], noun: str, ids: Iterable[str], tags: str | Iterable[str], known: Mapping[str, C], hint: str
) -> list[C]:
    """Those that match any of the patterns, if there are any, and have all the tags."""
    wanted = {tags} if isinstance(tags, str) else set(tags)
    patterns = tuple(ids)
    for pattern in patterns:
        if not any(fnmatchcase(spec_id, pattern) for spec_id in known):
            raise UnknownIdError(noun, pattern, known, hint)
    all_tags = {tag for spec in known.values() for tag in spec.tags}
    for tag in sorted(wanted - all_tags):
        raise UnknownIdError("tag", tag, all_tags, f"Tags of {noun}s: {', '.join(sorted(all_tags)) or 'none'}")
    matching = [spec for spec in specs if not patterns or any(fnmatchcase(spec.id, pattern) for pattern in patterns)]
    return [spec for spec in matching if wanted <= set(spec.tags)]


def read_suite(path: Path) -> Suite:
    """Read one suite file; its name must be the suite's id."""
    try:
        suite = Suite(**tomllib.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, OSError, SpecError) as error:
        raise SpecError(f"not a suite: {error}", where=path, hint="See docs/plugins.md") from error
    if path.stem != suite.id:
        raise SpecError("a suite's id is its file's name", where=path, expected=repr(path.stem), got=repr(suite.id))
    return suite


@cache
def catalog() -> Catalog:
    """The catalog of this process."""
    return Catalog()


def _loader(cls: type[S]) -> Callable[[str], S]:
    def load(spec_id: str) -> S:
        return catalog().load(cls, spec_id)

    noun = NOUN_OF[cls]
    load.__name__ = load.__qualname__ = f"load_{noun}"
    load.__doc__ = f"The {noun} with this id; imports only the plugins that may hold it."
    return load


load_task = _loader(Task)
load_method = _loader(Method)
load_dataset = _loader(Dataset)
load_metric = _loader(Metric)
load_probe = _loader(Probe)
load_splitter = _loader(Splitter)
load_board = _loader(BoardKind)


def load_suite(suite_id: str) -> Suite:
    """The suite with this id."""
    return catalog().suite(suite_id)


def list_tasks(
    *ids: str,
    kind: str | None = None,
    tag: str | Iterable[str] = (),
    dataset: str | None = None,
    suite: str | None = None,
) -> list[Task]:
    """Tasks by id or pattern (any of them), kind, tag (all of them), dataset and suite; all must hold."""
    return catalog().tasks(*ids, kind=kind, tag=tag, dataset=dataset, suite=suite)


def list_methods(*ids: str, tag: str | Iterable[str] = ()) -> list[Method]:
    """Methods by id or pattern (any of them) and tag (all of them)."""
    return catalog().methods(*ids, tag=tag)


def list_datasets() -> list[Dataset]:
    """All datasets."""
    return list(catalog().all(Dataset).values())


def list_suites() -> list[Suite]:
    """All suites of the registry."""
    return list(catalog().suites().values())


def list_protocols() -> list[Protocol]:
    """All named protocols; variants are made with ``Protocol.with_``."""
    return list(PROTOCOLS.values())
