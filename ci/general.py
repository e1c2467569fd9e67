"""Findings about a pull request as a whole: what it touches, which ids it takes, loses or moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from ci.boxes import PluginData
from ci.changed import Changes, Touched
from ci.report import WAITING
from neuco_core.contract.contract import Finding, Status
from neuco_core.contract.scaffold import CAVEATS
from neuco_core.errors import NeucoError
from neuco_core.plugins.catalog import read_suite
from neuco_core.plugins.discovery import alike
from neuco_core.records.model import Record
from neuco_core.specs import Suite
from neuco_core.text import counted, join_names

SHOWN = 20  # of each kind; nobody reads more
MOST_PLUGINS = 100  # of one pull request; each is run in several sandboxes
# By noun and id in any spelling: the ids as they are written, each with the folder of its plugin.
Ids = Mapping[tuple[str, str], Sequence[tuple[str, str]]]


def general(changes: Changes) -> Iterator[Finding]:
    """Findings that need no more than the list of what is touched."""
    yield from _each(changes.bad_names, "name", "the directory's name is not an id", "Use a-z, 0-9, _ and -")
    yield from _each(changes.protected, "protected", "only main writes records and boards", "Remove it")
    for path, reason in changes.unreadable[:SHOWN]:
        yield Finding("unreadable", path, "failed", reason, "Add the files themselves, as plain source or as data")
    if len(changes.unreadable) > SHOWN:
        yield Finding("unreadable", f"{len(changes.unreadable) - SHOWN} more", "failed", "nobody can review them")
    if len(changes.plugins) > MOST_PLUGINS:
        words = f"{len(changes.plugins)} plugins are touched, at most {MOST_PLUGINS} are judged at once: none was run"
        yield Finding("plugins", "pull request", "failed", words, "Make several pull requests")
    if changes.core:
        yield _core(changes)
    elif not (changes.plugins or changes.submissions or changes.bad_names or changes.protected):
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
    if changes.only_data and not changes.plugins:
        return Finding("core", "registry", "ok", f"{names}: no code changes; a maintainer decides what is compared")
    if not changes.plugins:
        words = f"{len(changes.core)} core files ({names}): the tests of all plugins are run with them here, "
        return Finding("core", "core", "ok", words + "all others by `make test`; a maintainer reads every line")
    text = f"{len(changes.core)} core files beside plugins: {names}"
    return Finding("core", "core", "failed", text, "Make two pull requests: code that scores is reviewed on its own")


def compare_ids(before: Sequence[PluginData], after: Sequence[PluginData]) -> Iterator[Finding]:
    """Ids that are registered twice, or by nobody any more, or by somebody else: records hang on them."""
    old, new = _by_id(before), _by_id(after)
    there = {plugin.touched.folder for plugin in after}
    for (noun, _), homes in new.items():
        if len(homes) > 1:
            name, home = homes[0]
            more = (f" and {'' if other == name else f'as {other!r} '}by {folder}" for other, folder in homes[1:])
            words = f"{noun} {name!r} is registered by {home}{''.join(more)}"
            yield Finding("ids", name, "failed", words, "Choose another id; - and _ make no difference")
    for (noun, key), homes in old.items():
        (name, home), now = homes[0], new.get((noun, key), ())
        if (name, home) in now:
            continue
        if now and home not in [folder for _, folder in now]:
            words = f"{noun} {name!r} moves from {home} to {now[0][1]}"
            yield Finding("ids", name, "failed", words, "An id stays where it is: its records belong to that plugin")
        elif home in there and not _broken(after, home):
            fate = f"is {now[0][0]!r} now" if now else "is registered by nobody now"
            words = f"{noun} {name!r} was registered by {home} and {fate}"
            yield Finding("ids", name, "failed", words, "Keep it; only a whole plugin can be removed")


def _by_id(plugins: Sequence[PluginData]) -> Ids:
    homes: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
    for plugin in plugins:
        for row in plugin.rows:
            name = row["spec"]["id"]
            # Several versions of an id may stand side by side.
            homes.setdefault((row["noun"], alike(name)), {})[name, plugin.touched.folder] = None
    return {key: list(own) for key, own in homes.items()}


def _broken(plugins: Sequence[PluginData], folder: str) -> bool:
    """One that cannot be imported has a finding of its own."""
    return any(plugin.touched.folder == folder and plugin.problem for plugin in plugins)


def removed(
    touched: Touched, plugins: Sequence[PluginData], suites: Sequence[Suite], records: Sequence[Record]
) -> Iterator[Finding]:
    """A plugin may go, unless a frozen suite, a task of another plugin or its baseline needs what it registers.

    Whose it is git cannot tell for certain, so what is lost is said aloud, and what a suite compares waits for a
    maintainer.
    """
    gone = next((plugin for plugin in plugins if plugin.touched.folder == touched.folder), None)
    if gone is None:
        yield Finding("removed", touched.name, "warning", "it registers nothing on main, so nothing is lost")
        return
    others = [plugin for plugin in plugins if plugin is not gone]
    for reason in islice(_needed(gone, others, suites), SHOWN):
        yield Finding("removed", touched.name, "failed", reason, "Change what needs it first")
    tasks, methods = gone.ids("task"), gone.ids("method")
    lost = [record for record in records if record.method in methods or record.task in tasks]
    partners = sorted({record.task if record.method in methods else record.method for record in lost})
    names = [f"{row['noun']} {row['spec']['id']!r}" for row in gone.rows]
    fate = f", and {counted(len(lost), 'record')} ({join_names(partners)}) with it" if lost else "; it has no records"
    words = f"{join_names(names)} {'goes' if len(names) == 1 else 'go'}{fate}"
    yield Finding("removed", touched.name, "warning", words, "If it is not yours, ask whose it is")
    for suite in suites:
        compared = [item for item in lost if item.task in suite.tasks and item.protocol == suite.protocol]
        withdraw = sorted({record.method for record in compared if record.method in methods})
        if withdraw:
            words = f"suite {suite.id!r} compares {counted(len(compared), 'record')} of it: a maintainer withdraws them"
            order = f"after the merge, with `python -m ci publish --push --withdraw {' '.join(withdraw)}`"
            yield Finding(WAITING, touched.name, "skipped", f"{words} {order}")


def unwritten(plugin: PluginData) -> Iterator[Finding]:
    """Sentences of the card that `neuco new` wrote and nobody replaced: a card that says nothing is none."""
    path = plugin.folder / "README.md"
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    for asked in CAVEATS.values():
        if asked in text:
            cure = f"Write it into {plugin.touched.folder}/README.md, also if there is little to beware of"
            yield Finding("card", plugin.touched.name, "failed", f"the card still asks: {asked}", cure)


def _needed(gone: PluginData, others: Sequence[PluginData], suites: Sequence[Suite]) -> Iterator[str]:
    tasks, methods, datasets = (gone.ids(noun) for noun in ("task", "method", "dataset"))
    for suite in (suite for suite in suites if not suite.living):
        yield from (f"suite {suite.id!r} compares its task {task!r}" for task in suite.tasks if task in tasks)
    for task in (task for plugin in others for task in plugin.tasks):
        if task.dataset in datasets:
            yield f"task {task.id!r} has labels of its dataset {task.dataset!r}"
        if task.baseline and task.baseline.method in methods:
            yield f"the baseline of task {task.id!r} is its method {task.baseline.method!r}"


def check_suites(registry: Path, plugins: Sequence[PluginData]) -> Iterator[Finding]:
    """Suites of the pull request: each must be readable and name tasks that are there, in their version."""
    versions: dict[str, set[int]] = {}
    for own in (task for plugin in plugins for task in plugin.tasks):
        versions.setdefault(own.id, set()).add(own.version)
    for path in sorted((registry / "suites").glob("*.toml")):
        try:
            suite = read_suite(path)
        except NeucoError as error:
            yield Finding("suites", path.stem, "failed", str(error), "Repair the file")
            continue
        if suite.living:  # publishing writes it anew
            continue
        for task, version in suite.tasks.items():
            if version not in versions.get(task, ()):
                there = (
                    f"version {join_names(sorted(map(str, versions[task])))}" if task in versions else "no such task"
                )
                words = f"it compares version {version} of task {task!r}; there is {there}"
                cure = "Keep the version registered beside the new one; a suite is frozen, so make a new suite for that"
                yield Finding("suites", path.stem, "failed", words, cure)
