"""Look-up: from an id, a pattern or a selector to specs. The functions at the end are the public API."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar, cast

from neuco_core.env import layers, registry_dir, switched_on
from neuco_core.errors import (
    DataError,
    NeucoError,
    NotApplicableError,
    PluginError,
    SpecError,
    UnknownIdError,
    UsageError,
)
from neuco_core.files import read_limited
from neuco_core.plugins.discovery import NOUNS, BrokenPlugin
from neuco_core.plugins.loading import Plugins
from neuco_core.protocol import DEFAULT_PROTOCOL, Protocol
from neuco_core.protocol import PROTOCOLS as PROTOCOLS  # noqa: PLC0414 - protocols are looked up here, too
from neuco_core.protocol import load_protocol as load_protocol  # noqa: PLC0414
from neuco_core.specs import (
    KINDS,
    BoardKind,
    Content,
    Dataset,
    Method,
    Metric,
    Origin,
    Probe,
    Spec,
    Splitter,
    Suite,
    Task,
    exact,
    resolve,
)
from neuco_core.text import counted

S = TypeVar("S", bound=Spec)
LARGEST_SUITE = 1_000_000  # bytes
PATTERN = "*?["
LIVING = "all-"  # what the ids of living suites begin with; no file may have such a name
NOUN_OF = {cls: noun for noun, cls in NOUNS.items()}
C = TypeVar("C", bound=Content)


class Catalog:
    """Everything that is registered: plugins' specs and the registry's suites."""

    def __init__(self, plugins: Plugins | None = None, registry: Path | None = None) -> None:
        self.plugins = plugins or Plugins()
        self._registry = registry

    def load(self, cls: type[S], spec_id: str) -> S:
        """The newest spec with this id, or of ``id@2`` that version; imports only the plugins that may hold it."""
        noun = NOUN_OF[cls]
        if not isinstance(spec_id, str):
            raise UsageError(f"a {noun} is named by its id", expected="text", got=type(spec_id).__name__)
        spec = self.plugins.find(noun, spec_id)
        if spec is None:
            versions = self.plugins.versions(noun, spec_id) if "@" in spec_id else ()
            raise UnknownIdError(noun, spec_id, versions or self.all(cls), self._broken_hint(noun))
        return cast("S", spec)  # the plugin manager has checked it

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
        pool = self.suite_tasks(self.suite(suite)) if suite is not None else None
        chosen = self.select(Task, ids, tag, pool)
        return [task for task in chosen if kind in (None, task.kind) and dataset in (None, task.dataset)]

    def select(
        self, cls: type[C], ids: Iterable[str], tags: str | Iterable[str], pool: Iterable[C] | None = None
    ) -> list[C]:
        """Those that match any of the ids and patterns, if there are any, and have all the tags.

        Ids alone import only the plugins that may hold them.
        """
        noun, refs = NOUN_OF[cls], tuple(ids)
        if wrong := [ref for ref in refs if not isinstance(ref, str)]:
            raise UsageError(f"{noun}s are named by ids", expected="text", got=type(wrong[0]).__name__)
        patterns = [ref for ref in refs if not set(PATTERN).isdisjoint(ref)]
        asked_tags = {tags} if isinstance(tags, str) else set(tags)
        everything = patterns or asked_tags or (pool is None and not refs)
        newest = self.all(cls) if everything else {}
        for pattern in patterns:
            if not any(fnmatchcase(spec_id, pattern) for spec_id in newest):
                raise UnknownIdError(noun, pattern, newest, self._broken_hint(noun))
        named = sorted((self.load(cls, ref) for ref in refs if ref not in patterns), key=attrgetter("label"))
        specs = {spec.label: spec for spec in (pool if pool is not None else [*newest.values(), *named])}
        all_tags = {tag for spec in (*newest.values(), *specs.values()) for tag in spec.tags}
        for tag in sorted(asked_tags - all_tags):
            raise UnknownIdError("tag", tag, all_tags, f"Tags of {noun}s: {', '.join(sorted(all_tags)) or 'none'}")
        chosen = []
        for spec in specs.values():
            fits = any(fnmatchcase(spec.id, ref) or ref == exact(spec.label) for ref in refs)
            if (fits or not refs) and asked_tags <= set(spec.tags):
                chosen.append(spec)
        return chosen

    def suites(self) -> dict[str, Suite]:
        """All suites by id; a bad file is an error: callers that need every suite must not silently miss one."""
        suites, bad = self.survey_suites()
        for error in bad.values():
            raise error
        return suites

    def survey_suites(self, *, living: bool = True) -> tuple[dict[str, Suite], dict[str, SpecError]]:
        """The suites by id, and what is wrong with the files of others, by the id that each would have.

        Living suites, for which every plugin is asked, come last: what a frozen one compares is what people look for.
        """
        suites: dict[str, Suite] = {}
        bad: dict[str, SpecError] = {}
        files: dict[str, Path] = {}
        for layer in reversed(layers(self._registry or registry_dir())):
            files |= {path.stem: path for path in (layer / "suites").glob("*.toml")}
        for stem in sorted(files):
            try:
                suites[stem] = read_suite(files[stem])
            except SpecError as error:
                bad[stem] = error
        return suites | (self._living_suites() if living else {}), bad

    def _living_suites(self) -> dict[str, Suite]:
        """For each dataset a suite of all its tasks in their newest versions, without controls: it follows the tasks.

        A frozen suite compares what it froze, and a task that was merged today is in none.
        """
        datasets = self.all(Dataset)
        tasks: dict[str, dict[str, int]] = {}
        for task in self.all(Task).values():
            if not task.control:
                tasks.setdefault(task.dataset, {})[task.id] = task.version
        suites = {}
        for name in sorted(tasks):
            dataset = datasets.get(name) or Dataset(id=name)
            suites[LIVING + name] = Suite(
                id=LIVING + name,
                title=f"Every task of {dataset.title or name}",
                description="All registered tasks of the dataset, also those that no frozen suite compares yet",
                protocol=dataset.protocol or DEFAULT_PROTOCOL,
                options={"coverage": "most"},
                tasks=dict(sorted(tasks[name].items())),
                living=True,
                origin=Origin(LIVING + name, f"the tasks of {name}"),
            )
        return suites

    def suite(self, suite_id: str) -> Suite:
        suites, bad = self.survey_suites(living=False)
        if not isinstance(suite_id, str):
            raise UsageError("a suite is named by its id", expected="text", got=type(suite_id).__name__)
        if suite_id in bad:
            raise bad[suite_id]
        if suite_id not in suites:
            suites |= self._living_suites()
        if suite_id not in suites:
            raise UnknownIdError("suite", suite_id, suites)
        return suites[suite_id]

    def suite_tasks(self, suite: Suite) -> list[Task]:
        """The tasks of a suite, which must all be there in the version that the suite names."""
        tasks = []
        for task_id, version in suite.tasks.items():
            try:
                newest = self.load(Task, task_id)
            except UnknownIdError as error:
                error.where = suite.origin
                raise
            task = self.plugins.find("task", f"{task_id}@{version}")
            if not isinstance(task, Task):
                raise PluginError(
                    f"task {task_id!r} ({newest.origin}) is not the version that the suite compares",
                    where=suite.origin,
                    expected=f"version {version}",
                    got=newest.version,
                    hint="A suite is frozen: make a new suite, or register the version that it names beside the newest",
                )
            tasks.append(task)
        return tasks

    def suite_warnings(self) -> list[str]:
        """What is wrong with suites, each cause once: a bad file, or a task that lacks the version that is named."""
        suites, bad = self.survey_suites()
        problems: dict[str, NeucoError] = dict(bad)
        for suite in suites.values():
            try:
                self.suite_tasks(suite)
            except NeucoError as error:
                problems[suite.id] = error
        by_cause: dict[str, list[str]] = {}
        for suite_id, problem in problems.items():
            by_cause.setdefault(problem.what, []).append(suite_id)
        return [
            f"suite{'s' if len(ids) > 1 else ''} {', '.join(map(repr, ids))} cannot be used: {problems[ids[0]]}"
            for ids in by_cause.values()
        ]

    def _broken_hint(self, noun: str) -> str:
        count = len(self.plugins.collect(noun)[1])
        return f"({counted(count, 'broken plugin')} could not be searched: run `neuco plugins`)" if count else ""


def read_suite(path: Path) -> Suite:
    """Read one suite file; its name must be the suite's id."""
    try:
        suite = Suite(**tomllib.loads(read_limited(path, LARGEST_SUITE).decode()))
    except (ValueError, TypeError, OSError, RecursionError, MemoryError, NeucoError) as error:
        # One bad file must harm no other suite, so it has one kind of error, however it is bad.
        reason = error.what if isinstance(error, DataError) else error
        raise SpecError(f"not a suite: {reason}", where=path, hint="See docs/howto/package.md") from error
    if path.stem != suite.id:
        raise SpecError("a suite's id is its file's name", where=path, expected=repr(path.stem), got=repr(suite.id))
    if suite.living or suite.id.startswith(LIVING):
        hint = f"Suites named {LIVING}DATASET are made of the registered tasks"
        raise SpecError("a living suite has no file", where=path, hint=f"{hint}: name yours otherwise")
    return replace(suite, origin=Origin(suite.id, str(path)))


@cache
def catalog() -> Catalog:
    """The catalog of this process."""
    return Catalog()


def name_of(noun: str, label: str) -> str:
    """The name that a user gives to have this version: the id alone is the newest."""
    versions = catalog().plugins.versions(noun, label)
    return exact(label) if versions and versions[-1] != exact(label) else label.partition("@")[0]


def load_task(task_id: str) -> Task:
    """Load a task; imports only the plugins that may hold it.

    Args:
        task_id: its id, such as ``olinda_sea_level`` for the newest version or ``olinda_sea_level@1`` for that one.

    Raises:
        UnknownIdError: nothing is registered under that id; the message names similar ones.
    """
    return catalog().load(Task, task_id)


def load_method(method_id: str) -> Method:
    """Load a method; imports only the plugins that may hold it.

    Args:
        method_id: its id, such as ``mosaiks`` for the newest version or ``mosaiks@1`` for that one.

    Raises:
        UnknownIdError: nothing is registered under that id; the message names similar ones.
    """
    return catalog().load(Method, method_id)


def load_dataset(dataset_id: str) -> Dataset:
    """Load a dataset; imports only the plugins that may hold it.

    Args:
        dataset_id: its id, such as ``olinda`` for the newest version or ``olinda@1`` for that one.

    Raises:
        UnknownIdError: nothing is registered under that id; the message names similar ones.
    """
    return catalog().load(Dataset, dataset_id)


def load_metric(metric_id: str) -> Metric:
    return catalog().load(Metric, metric_id)


def load_board(kind_id: str) -> BoardKind:
    return catalog().load(BoardKind, kind_id)


def task_protocol(task: Task) -> Protocol:
    """How a task is scored unless somebody says otherwise: as its dataset says, so that baselines are comparable."""
    try:
        named = load_dataset(task.dataset).protocol
    except UnknownIdError:  # the cell will fail with this reason
        named = ""
    return load_protocol(named or DEFAULT_PROTOCOL)


def metric_under(protocol: Protocol, task: Task) -> str:
    """The id of the metric of a task under a protocol: the task's own, unless the probe predicts no labels."""
    try:
        return catalog().load(Probe, protocol.probe).metric or task.metric
    except NeucoError:  # the cell will fail with this reason
        return task.metric


def require_kind(protocol: Protocol, kind: str, task: str | None = None) -> Probe:
    """The probe of a protocol.

    Raises:
        NotApplicableError: it is not for this kind of task.
    """
    probe = catalog().load(Probe, protocol.probe)
    if kind not in probe.kinds:
        hint = "Choose a protocol whose probe is, such as --protocol ridge"
        what, expected = f"probe {probe.id!r} is not for {kind}", " or ".join(probe.kinds)
        raise NotApplicableError(what, where=task, expected=expected, hint=hint)
    return probe


def protocols_for(
    tasks: Sequence[Task], name: str | Protocol | None, suite: str | None, **changes: Any
) -> list[tuple[Protocol, list[Task]]]:
    """The tasks by how to score them: as named, or as the suite, or as their dataset says, changed by options."""
    groups: dict[str, tuple[Protocol, list[Task]]] = {}
    try:
        named: Protocol | None = None
        if name or suite:
            named = name if isinstance(name, Protocol) else load_protocol(name or catalog().suite(str(suite)).protocol)
        for task in tasks:
            protocol = named or task_protocol(task)
            new = {}
            for key, value in changes.items():
                if value is not None and value != getattr(protocol, key, protocol.params.get(key)):
                    new[key] = value
            if new:
                protocol = protocol.with_(**new)
            if protocol.name not in groups and protocol != PROTOCOLS.get(protocol.name):
                check_variant(protocol)
            groups.setdefault(protocol.name, (protocol, []))[1].append(task)
    except SpecError as error:  # a wrong value of a caller, not a broken plugin
        raise UsageError(str(error)) from error
    return [groups[key] for key in sorted(groups)]


def for_probe(protocol: Protocol) -> Protocol:
    """A protocol as its probe is given it: without the parameters of its splitter."""
    of_splitter = catalog().load(Splitter, protocol.splitter).params
    return replace(protocol, params={key: value for key, value in protocol.params.items() if key not in of_splitter})


def check_variant(protocol: Protocol) -> None:
    """Refuse a variant that no cell can be scored by: what it names does not exist, or its probe has no such parameter.

    A cell would fail with the same reason, and so would every other one.
    """
    base = PROTOCOLS.get(protocol.name.partition("+")[0])
    catalog().load(Splitter, protocol.splitter)
    probe = catalog().load(Probe, protocol.probe)
    if base is None or protocol.params != base.params:
        try:
            resolve(probe.factory)(for_probe(protocol))
        except UsageError:
            raise
        except Exception:  # a probe is anybody's code, and may lack a package: that is the cell's to say
            return


def load_suite(suite_id: str) -> Suite:
    """Load a suite.

    Args:
        suite_id: its id, or ``all-DATASET`` for all tasks of a dataset.

    Raises:
        UnknownIdError: there is no such suite; the message names similar ones.
    """
    return catalog().suite(suite_id)


def list_tasks(
    *ids: str,
    kind: str | None = None,
    tag: str | Iterable[str] = (),
    dataset: str | None = None,
    suite: str | None = None,
) -> list[Task]:
    """List tasks for which all conditions hold.

    Args:
        *ids: ids or patterns such as ``mini_*``; a task must match one of them.
        kind: ``regression``, ``classification`` or ``multilabel``.
        tag: a tag or several; a task must have all of them.
        dataset: the id of a dataset.
        suite: the id of a suite.
    """
    return catalog().tasks(*ids, kind=kind, tag=tag, dataset=dataset, suite=suite)


def list_methods(*ids: str, tag: str | Iterable[str] = ()) -> list[Method]:
    """List methods for which all conditions hold.

    Args:
        *ids: ids or patterns such as ``mosaiks*``; a method must match one of them.
        tag: a tag or several; a method must have all of them.
    """
    return catalog().select(Method, ids, tag)


def list_datasets() -> list[Dataset]:
    """All datasets."""
    return list(catalog().all(Dataset).values())


def list_suites() -> list[Suite]:
    """All suites of the registry."""
    return list(catalog().suites().values())


def list_protocols() -> list[Protocol]:
    """All named protocols; variants are made with ``Protocol.with_``."""
    return list(PROTOCOLS.values())
