"""Findings about a pull request as a whole, from the list of what it touches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ci.changed import Changes, Touched
from neuco_core.contract.contract import Finding, Status
from neuco_core.plugins.catalog import list_datasets, list_suites, list_tasks
from neuco_core.plugins.discovery import inside
from neuco_core.specs import Dataset, Task

SHOWN = 20  # of each kind; nobody reads more


def general(changes: Changes) -> Iterator[Finding]:
    """Findings that belong to no single plugin."""
    yield from _each(changes.bad_names, "name", "the directory's name is not an id", "Use a-z, 0-9, _ and -")
    yield from _each(changes.protected, "protected", "only main writes records and boards", "Remove it")
    reason = "a link, a submodule or compiled code, which nobody can review"
    yield from _each(changes.unreadable, "unreadable", reason, "Add the files themselves, as source or as data")
    yield from (_removed(item) for item in changes.plugins if item.how == "removed")
    if changes.core:
        yield _core(changes)
    elif not (changes.plugins or changes.bad_names or changes.protected):
        words = f"no plugin is touched, {len(changes.other)} other files are: nothing to score"
        status: Status = "ok" if changes.other else "failed"
        yield Finding("nothing", "pull request", status, words, "" if changes.other else "Add something")


def _each(paths: Sequence[str], check: str, detail: str, cure: str) -> Iterator[Finding]:
    for path in paths[:SHOWN]:
        yield Finding(check, path, "failed", detail, cure)
    if len(paths) > SHOWN:
        yield Finding(check, f"{len(paths) - SHOWN} more", "failed", detail, cure)


def _core(changes: Changes) -> Finding:
    names = ", ".join(changes.core[:5]) + (" …" if len(changes.core) > 5 else "")
    if not changes.plugins:
        words = f"{len(changes.core)} core files ({names}): the tests of all plugins are run with them here, "
        return Finding("core", "core", "ok", words + "all others by `make test`; a maintainer reads every line")
    text = f"{len(changes.core)} core files beside plugins: {names}"
    return Finding("core", "core", "failed", text, "Make two pull requests: code that scores is reviewed on its own")


def _removed(item: Touched) -> Finding:
    """A plugin may go, unless a frozen suite, a task of another plugin or its baseline needs what it registers."""
    reason = next(_needed(item), "")
    if reason:
        return Finding("removed", item.name, "failed", reason, "Change what needs it first")
    return Finding("removed", item.name, "ok", "its records will be withdrawn; nothing else changes")


def _needed(item: Touched) -> Iterator[str]:
    if item.tree == "neuco_tasks":
        for suite in list_suites():
            yield from (
                f"suite {suite.id!r} compares its task {task!r}" for task in suite.tasks if inside(task, item.name)
            )
    datasets = {spec.id for spec in _of(item, list_datasets())}
    for task in list_tasks():
        if task in _of(item, [task]):
            continue
        if task.dataset in datasets:
            yield f"task {task.id!r} has labels of its dataset {task.dataset!r}"
        if item.tree == "neuco_methods" and task.baseline and inside(task.baseline.method, item.name):
            yield f"the baseline of task {task.id!r} is its method {task.baseline.method!r}"


def _of(item: Touched, specs: Iterable[Dataset | Task]) -> list[Dataset | Task]:
    """Those that the plugin registers."""
    return [spec for spec in specs if spec.origin and Path(spec.origin.source).parts[-2:] == (item.tree, item.name)]
