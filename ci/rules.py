"""Rules for a pull request as a whole: what it touches, which ids it takes or loses, pins, suites, submissions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoints
from pathlib import Path

from msgspec.structs import replace

from ci.changed import Changes, Touched, suite_files
from ci.describe import ids_by_plugin
from ci.plugin_sandbox import PINS, PluginData
from ci.report import WAITING
from neuco_core.boards.cells import Cell
from neuco_core.boards.published import Published
from neuco_core.contract.checks.task import lacking_version
from neuco_core.contract.contract import Finding, Status, run_check
from neuco_core.errors import DataError, NeucoError
from neuco_core.fetch import cache
from neuco_core.fetch.fetch import Pin, fetch_unverified, is_local, read_pins, unrevised, verify
from neuco_core.fetch.transfer import TransientError
from neuco_core.plugins.catalog import Catalog, read_suite
from neuco_core.plugins.loading import Plugins
from neuco_core.records.model import Record
from neuco_core.specs import Check, PublishedSource, Remote, Suite, Task, resolve
from neuco_core.text import counted, join_names

SHOWN = 20  # of each kind; nobody reads more
MOST_PLUGINS = 100  # of one pull request; each is run in several sandboxes
PLAIN = "Add the files themselves, as plain source or as data"
ASK = "If it is not yours, ask whose it is"
FROZEN = "A suite is frozen: raise its version, or make a new suite"


def general(changes: Changes) -> Iterator[Finding]:
    """Findings that need no more than the list of what is touched."""
    refused = [
        *((path, "name", "the directory's name is not an id", "Use a-z, 0-9, _ and -") for path in changes.bad_names),
        *((path, "protected", "only main writes records and boards", "Remove it") for path in changes.protected),
        *((path, "unreadable", reason, PLAIN) for path, reason in changes.unreadable),
    ]
    for path, check, detail, cure in refused[:SHOWN]:
        yield Finding(check, path, "failed", detail, cure)
    if len(refused) > SHOWN:
        yield Finding(refused[SHOWN][1], f"{len(refused) - SHOWN} more", "failed", "refused for reasons like these")
    if len(changes.plugins) > MOST_PLUGINS:
        detail = f"{len(changes.plugins)} plugins are touched, at most {MOST_PLUGINS} are judged at once: none was run"
        yield Finding("plugins", "pull request", "failed", detail, "Make several pull requests")
    names = ", ".join(changes.core[:5]) + (" …" if len(changes.core) > 5 else "")
    if changes.core and changes.plugins:
        detail = f"{len(changes.core)} core files beside plugins: {names}"
        cure = "Make two pull requests: code that scores is reviewed on its own"
        yield Finding("core", "core", "failed", detail, cure)
    elif changes.only_data:
        yield Finding("core", "registry", "ok", f"{names}: no code changes; a maintainer decides what is compared")
    elif changes.core:
        detail = f"{len(changes.core)} core files ({names}): `make test` tests them, with the tests of all plugins; "
        yield Finding("core", "core", "ok", detail + "a maintainer reads every line")
    elif not (changes.plugins or changes.submissions or changes.bad_names or changes.protected):
        detail = "the pull request changes no file"
        if changes.other:
            detail = f"only {counted(len(changes.other), 'file')} outside plugins changed: there is nothing to score"
        status: Status = "ok" if changes.other else "failed"
        yield Finding("nothing", "pull request", status, detail, "" if changes.other else "Add something")


def compare_ids(before: Sequence[PluginData], after: Sequence[PluginData]) -> Iterator[Finding]:
    """Ids that are registered twice, or by nobody any more, or by somebody else: records hang on them."""
    old, new = (ids_by_plugin((item.touched.folder, item.rows) for item in plugins) for plugins in (before, after))
    # One that cannot be imported has a finding of its own.
    described = {plugin.touched.folder for plugin in after if not plugin.problem}
    for (noun, _), homes in new.items():
        if len(homes) > 1:
            name, home = homes[0]
            more = (f" and {'' if other == name else f'as {other!r} '}by {folder}" for other, folder in homes[1:])
            detail = f"{noun} {name!r} is registered by {home}{''.join(more)}"
            yield Finding("ids", name, "failed", detail, "Choose another id; - and _ make no difference")
    for (noun, key), homes in old.items():
        (name, home), now = homes[0], new.get((noun, key), ())
        if (name, home) in now:
            continue
        if now and home not in [folder for _, folder in now]:
            detail = f"{noun} {name!r} moves from {home} to {now[0][1]}"
            yield Finding("ids", name, "failed", detail, "An id stays where it is: its records belong to that plugin")
        elif home in described:
            fate = f"is {now[0][0]!r} now" if now else "is registered by nobody now"
            detail = f"{noun} {name!r} was registered by {home} and {fate}"
            yield Finding("ids", name, "failed", detail, "Keep it; only a whole plugin can be removed")


def removed(
    touched: Touched, plugins: Sequence[PluginData], suites: Sequence[Suite], records: Sequence[Record]
) -> Iterator[Finding]:
    """A plugin may go, unless a frozen suite, a task of another plugin or its baseline needs what it registers.

    Git cannot prove who owns it, so losses are reported, and what a suite compares waits for a maintainer.
    """
    gone = next((plugin for plugin in plugins if plugin.touched.folder == touched.folder), None)
    if gone is None:
        yield Finding("removed", touched.name, "warning", "it registers nothing on main, so nothing is lost")
        return
    tasks, methods, datasets = (gone.ids(noun) for noun in ("task", "method", "dataset"))
    needed = [
        f"suite {suite.id!r} compares its task {task!r}" for suite in suites for task in suite.tasks if task in tasks
    ]
    for task in (task for plugin in plugins if plugin is not gone for task in plugin.tasks):
        if task.dataset in datasets:
            needed.append(f"task {task.id!r} has labels of its dataset {task.dataset!r}")
        if task.baseline and task.baseline.method in methods:
            needed.append(f"the baseline of task {task.id!r} is its method {task.baseline.method!r}")
    for reason in needed[:SHOWN]:
        yield Finding("removed", touched.name, "failed", reason, "Change what needs it first")
    lost = [record for record in records if record.method in methods or record.task in tasks]
    partners = sorted({record.task if record.method in methods else record.method for record in lost})
    names = [f"{row['noun']} {row['spec']['id']!r}" for row in gone.rows]
    fate = f", and {counted(len(lost), 'record')} ({join_names(partners)}) with it" if lost else "; it has no records"
    detail = f"{join_names(names)} {'goes' if len(names) == 1 else 'go'}{fate}"
    yield Finding("removed", touched.name, "warning", detail, ASK)
    for suite in suites:
        compared = [item for item in lost if item.task in suite.tasks and item.protocol == suite.protocol]
        withdraw = sorted({record.method for record in compared if record.method in methods})
        if withdraw:
            detail = (
                f"suite {suite.id!r} compares {counted(len(compared), 'record')} of it: a maintainer withdraws them"
            )
            order = f"after the merge, with `python -m ci reconcile --push --withdraw {' '.join(withdraw)}`"
            yield Finding(WAITING, touched.name, "skipped", f"{detail} {order}")


def check_suites(registry: Path, plugins: Sequence[PluginData]) -> Iterator[Finding]:
    """Suites of the pull request: each must be readable and name tasks that are there, in their version."""
    versions: dict[str, set[int]] = {}
    for registered in (task for plugin in plugins for task in plugin.tasks):
        versions.setdefault(registered.id, set()).add(registered.version)
    for path in suite_files(registry):
        try:
            suite = read_suite(path)
        except NeucoError as error:
            yield Finding("suites", path.stem, "failed", str(error), "Repair the file")
            continue
        for task in suite.tasks:
            if lacks := lacking_version(suite, task, versions.get(task, ())):
                cure = "Keep the version registered beside the new one; a suite is frozen, so make a new suite for that"
                yield Finding("suites", path.stem, "failed", lacks, cure)


def check_pins(base: Path, head: Path, plugins: Sequence[PluginData]) -> Iterator[Finding]:
    """Each new pin must belong to a task of main's ``plugins``, and be that of the file at its address."""
    try:
        old, new = read_pins(base / PINS), read_pins(head / PINS)
    except NeucoError as error:
        yield Finding("pins", "pins.json", "failed", str(error).replace(str(head), "."), "Use `neuco data pin TASK`")
        return
    # Only what is on the network: reading a file of a package would import that package, here, outside any sandbox.
    tasks = [task for plugin in plugins for task in plugin.tasks if not is_local(task.source.url)]
    for url in sorted(old.keys() | new.keys()):
        before, after = ((pin.sha256, pin.size, pin.url) if (pin := pins.get(url)) else None for pins in (old, new))
        if before != after:
            yield from _pin(url, old.get(url), new.get(url), [task for task in tasks if url == task.source.url])


def _pin(url: str, old: Pin | None, new: Pin | None, tasks: Sequence[Task]) -> Iterator[Finding]:
    if not tasks:
        detail = f"{url}: no task has this source"
        yield Finding("pins", "pins.json", "warning" if new is None else "failed", detail, "Use `neuco data pin TASK`")
        return
    names = ", ".join(task.id for task in tasks)
    if new is None:
        detail = f"{names}: loses its pin; after the merge its labels cannot be read, and nothing is scored on it"
        yield Finding("pins", names, "warning", detail)
        return
    address = new.url or url
    try:
        if unrevised(address) != unrevised(url):
            raise DataError("the commit of a pin is of another file", where=address, expected=url)
        with cache.scratch() as folder:  # not `fetch`: what the cache has says nothing of the address
            path, _ = fetch_unverified(Remote(address, size=new.size), folder)
            verify(path, Pin(new.sha256, new.size), address)
    except TransientError as error:
        yield Finding(WAITING, names, "skipped", f"the pin of {names} could not be verified: {error}", "Run this again")
    except NeucoError as error:
        yield Finding("pins", names, "failed", f"{names}: {error}", "Use `neuco data pin TASK`")
    else:
        verified = f"{names}: verified, sha256 {new.sha256}"
        if old is None:
            yield Finding("pins", names, "ok", f"{verified}; after the merge it can and will be scored")
        elif old.sha256 == new.sha256:
            yield Finding("pins", names, "ok", f"{verified}; only its size or its commit changes")
        else:
            detail = f"{verified}; it replaces {old.sha256}, so after the merge every record of {names} is outdated"
            yield Finding("pins", names, "warning", detail, "If the labels changed, raise the task's version")


def changed_suites(base: Path, head: Path, paths: Sequence[str], plugins: Sequence[PluginData]) -> Iterator[Finding]:
    """What boards will compare that they did not, and the other way round."""
    methods = len({method.id for plugin in plugins for method in plugin.methods})
    for path in paths:
        try:
            before, after = (read_suite(tree / path) if (tree / path).is_file() else None for tree in (base, head))
        except NeucoError:
            continue  # `check_suites` says what is wrong with it
        if after is not None:
            yield _changes(before, after, methods)
        elif before is not None:
            detail = f"suite {before.id!r} goes: its board is made no more, and its records are compared by nobody"
            yield Finding("suites", before.id, "warning", detail)


def _changes(before: Suite | None, after: Suite, methods: int) -> Finding:
    tasks = dict(before.tasks) if before else {}
    gone = sorted(tasks.keys() - after.tasks.keys())
    came = [task for task, version in after.tasks.items() if tasks.get(task) != version]
    changes = [f"{', '.join(map(repr, gone))} {'is' if len(gone) == 1 else 'are'} compared no more"] if gone else []
    for field in ("protocol", "kind", "options") if before else ():
        old, new = (getattr(suite, field) for suite in (before, after))
        if old != new:
            changes.append(f"{field} {old!r} becomes {new!r}")
            came = list(after.tasks)
    if came:
        cells = counted(methods * len(came), "cell")
        changes.append(f"{counted(len(came), 'task')} by {counted(methods, 'method')} are to be scored: {cells}")
    if not changes:
        return Finding("suites", after.id, "ok", "only words about the suite change")
    detail = "; ".join(changes)
    if before and before.version == after.version:
        return Finding("suites", after.id, "failed", f"it changes under its old version: {detail}", FROZEN)
    return Finding("suites", after.id, "warning", f"after the merge: {detail}; until then its board stays as it is")


def check_submissions(base: Path, head: Path, names: Sequence[str]) -> Iterator[Finding]:
    """Findings on each folder of numbers that an extension keeps in the registry, and where its rows would stand.

    They are data, so they are read here: by the checks of main's extensions, and no plugin of anybody is imported.
    """
    if not names:
        return
    extensions = Catalog(Plugins(("neuco_extensions",), entry_points=EntryPoints(())))
    checks = list(extensions.all(Check).values())
    failed = False
    for name in names:
        folder = head / "registry" / name
        if (base / "registry" / name).is_dir():
            fate = "changes" if folder.is_dir() else "goes"
            detail = f"registry/{name} is on main and {fate}: a maintainer asks whose it is"
            yield Finding(WAITING, folder.name, "skipped", detail, "Say in the pull request why")
        if not folder.is_dir():
            cure = "Say in the pull request why"
            yield Finding("submission-removed", folder.name, "warning", "it goes: its rows leave the board", cure)
            continue
        subjects = (resolve(item.find)(str(folder)) for item in checks if item.find is not None)
        subject = next((subject for subject in subjects if subject is not None), None)
        if subject is None:
            detail = f"no check of an extension knows registry/{name}: a maintainer reads it"
            yield Finding(WAITING, folder.name, "skipped", detail)
            continue
        for finding in (run_check(item, subject) for item in checks if item.noun == subject.noun):
            failed = failed or finding.status == "failed"
            yield replace(finding, detail=finding.detail.replace(str(head), "."))
    if not failed:
        sources = [resolve(source.boards) for source in extensions.all(PublishedSource).values()]
        before, after = ([item for boards in sources for item in boards(tree / "registry")] for tree in (base, head))
        yield from _altered(before, after)
        yield from _standing(before, after)


def _altered(before: Sequence[Published], after: Sequence[Published]) -> Iterator[Finding]:
    """Rows of published boards that are on main and are other now, or gone, with the largest change of a score."""
    rows = {(board.id, row.method): row for board in after for row in board.rows}
    for board in before:
        altered, gone = [], []
        changes: list[tuple[float, str]] = []
        for row in board.rows:
            now = rows.get((board.id, row.method))
            if now is None:
                gone.append(row.method)
            elif now != row:
                altered.append(row.method)
                for t, task in enumerate(board.tasks):
                    old, new = row.cell(t), now.cell(t)
                    if old != new:
                        texts = (f"{_mean(cell):.4f}" if cell else "none" for cell in (old, new))
                        changes.append((abs(_mean(old) - _mean(new)), f"{row.method} on {task}: {' → '.join(texts)}"))
        if gone:
            yield Finding("submission-changed", board.id, "warning", f"{join_names(gone)}: gone from the board", ASK)
        if altered:
            what = "other words, no score"
            if changes:
                what = f"{counted(len(changes), 'score')} changed, most of all {max(changes)[1]}"
            yield Finding("submission-changed", board.id, "warning", f"{join_names(altered)}: {what}", ASK)


def _mean(cell: Cell | None) -> float:
    return cell.mean or 0.0 if cell else 0.0


def _standing(before: Sequence[Published], after: Sequence[Published]) -> Iterator[Finding]:
    """The rows of published boards that are new or other than they were, each with its rank."""
    old = {(item.id, row.method): row for item in before for row in item.rows}
    for published in after:
        rows = [row.method for row in published.rows if old.get((published.id, row.method)) != row]
        if not rows:
            continue
        try:
            board = published.board()
        except NeucoError as error:
            yield Finding("submission-place", published.id, "failed", str(error))
            continue
        for row in (row for row in board.rows if row.method in rows):
            lacks = join_names(list(row.lacks))
            rank = f"rank {row.rank} of {len(board.ranked)}" if row.rank else f"not ranked, lacks {lacks}"
            detail = f"{row.method}: {rank}; nothing here was run: the numbers are the submitter's"
            yield Finding("submission-place", published.id, "ok", detail)
