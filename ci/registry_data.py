"""Pins and suites in a pull request: are they true, and what will they cause after the merge?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ci.boxes import PluginData
from ci.report import WAITING
from neuco_core.contract.contract import Finding
from neuco_core.errors import NeucoError
from neuco_core.fetch.fetch import fetch, is_local
from neuco_core.fetch.pins import Pin, read_pins
from neuco_core.fetch.transfer import TransientError
from neuco_core.plugins.catalog import read_suite
from neuco_core.specs import Remote, Suite, Task
from neuco_core.text import counted

PINS = Path("registry") / "pins.json"
FROZEN = "A suite is frozen: raise its version, or make a new suite"


def check_pins(base: Path, head: Path, plugins: Sequence[PluginData]) -> Iterator[Finding]:
    """Each new pin must belong to a task of main's ``plugins``, and be that of the file at its address."""
    try:
        old, new = read_pins(base / PINS), read_pins(head / PINS)
    except NeucoError as error:
        yield Finding("pins", PINS.name, "failed", str(error).replace(str(head), "."), "Use `neuco data pin TASK`")
        return
    # Only what is on the network: reading a file of a package would import that package, here, outside any sandbox.
    tasks = [task for plugin in plugins for task in plugin.tasks if not is_local(task.source.url)]
    for url in sorted(old.keys() | new.keys()):
        if _hash(old.get(url)) != _hash(new.get(url)):
            yield from _pin(url, old.get(url), new.get(url), [task for task in tasks if url == task.source.url])


def _hash(pin: Pin | None) -> str:
    return pin.sha256 if pin else ""


def _pin(url: str, old: Pin | None, new: Pin | None, tasks: Sequence[Task]) -> Iterator[Finding]:
    if not tasks:
        words = f"{url}: no task has this source"
        yield Finding("pins", PINS.name, "warning" if new is None else "failed", words, "Use `neuco data pin TASK`")
        return
    names = ", ".join(task.id for task in tasks)
    if new is None:
        words = f"{names}: loses its pin; after the merge its labels cannot be read, and nothing is scored on it"
        yield Finding("pins", names, "warning", words)
        return
    try:
        fetch(Remote(url, sha256=new.sha256, size=new.size))
    except TransientError as error:
        yield Finding(WAITING, names, "skipped", f"the pin of {names} could not be verified: {error}", "Run this again")
    except NeucoError as error:
        yield Finding("pins", names, "failed", f"{names}: {error}", "Use `neuco data pin TASK`")
    else:
        verified = f"{names}: verified, sha256 {new.sha256}"
        if old is None:
            yield Finding("pins", names, "ok", f"{verified}; after the merge it can and will be scored")
        else:
            words = f"{verified}; it replaces {old.sha256}, so after the merge every record of {names} is outdated"
            yield Finding("pins", names, "warning", words, "If the labels changed, raise the task's version")


def changed_suites(base: Path, head: Path, paths: Sequence[str], plugins: Sequence[PluginData]) -> Iterator[Finding]:
    """What boards will compare that they did not, and the other way round."""
    methods = len({method.id for plugin in plugins for method in plugin.methods})
    for path in paths:
        before, after = _suite(base / path), _suite(head / path)
        if after is not None:
            yield from _changes(before, after, methods)
        elif before is not None and not (head / path).exists():
            words = f"suite {before.id!r} goes: its board is made no more, and its records are compared by nobody"
            yield Finding("suites", before.id, "warning", words)


def _suite(path: Path) -> Suite | None:
    try:
        return read_suite(path) if path.is_file() else None
    except NeucoError:
        return None  # `check_suites` says what is wrong with it


def _changes(before: Suite | None, after: Suite, methods: int) -> Iterator[Finding]:
    tasks = dict(before.tasks) if before else {}
    gone = sorted(tasks.keys() - after.tasks.keys())
    came = [task for task, version in after.tasks.items() if tasks.get(task) != version]
    changes = [f"{', '.join(map(repr, gone))} {'is' if len(gone) == 1 else 'are'} compared no more"] if gone else []
    for field in ("protocol", "kind", "options"):
        if before and getattr(before, field) != getattr(after, field):
            changes.append(f"{field} {_shown(before, field)} becomes {_shown(after, field)}")
            came = list(after.tasks)
    if came:
        cells = counted(methods * len(came), "cell")
        changes.append(f"{counted(len(came), 'task')} by {counted(methods, 'method')} are to be scored: {cells}")
    if not changes:
        yield Finding("suites", after.id, "ok", "only words about the suite change")
    elif before and before.version == after.version:
        yield Finding("suites", after.id, "failed", f"it changes under its old version: {'; '.join(changes)}", FROZEN)
    else:
        words = f"after the merge: {'; '.join(changes)}; until then its board stays as it is"
        yield Finding("suites", after.id, "warning", words)


def _shown(suite: Suite, field: str) -> str:
    value = getattr(suite, field)
    return repr(value if isinstance(value, str) else dict(value))
