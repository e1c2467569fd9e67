"""Pins: fetch a source that nobody has verified, show what is in it, and record its sha256 once somebody says yes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neuco_core.errors import DataError, UsageError
from neuco_core.fetch import cache
from neuco_core.fetch.fetch import Pin, fetch, fetch_unverified, file_name, find_pin, pins_file, verify, write_pins
from neuco_core.plugins.catalog import list_tasks
from neuco_core.specs import Method, Remote, Task


@dataclass(frozen=True)
class PinReport:
    """What was found at a source. ``state`` is declared, unchanged, new or changed; weights have no rows.

    ``seen`` is the address with the commit that its branch stood for.
    """

    task: str
    state: str
    url: str
    seen: str
    sha256: str
    size: int
    rows: int | None = None
    dropped: int | None = None
    lowest: float | None = None
    highest: float | None = None

    @property
    def open(self) -> bool:
        """Whether it would be pinned."""
        return self.state in ("new", "changed")


def pin_labels(*tasks: str, suite: str | None = None, replace: bool = False) -> list[PinReport]:
    """Download the labels of tasks, or of a suite, and trust them: from then on only these bytes are accepted.

    The reports say what was found; compare it with what the owner of the data says before you rely on it. ``replace``
    accepts a file that differs from its pin.
    """
    if not tasks and not suite:
        raise UsageError("no task given", hint='Give ids of tasks, or suite="…"; `neuco tasks` lists them')
    reports = [inspect_labels(task, replace=replace) for task in list_tasks(*tasks, suite=suite)]
    accept(reports)
    return reports


def inspect_labels(task: Task, *, replace: bool = False) -> PinReport:
    """Fetch and read the labels of a task. A pin that disagrees is an error unless ``replace`` is set."""
    return _inspect(task.id, task.source, replace, task)


def inspect_weights(method: Method, *, replace: bool) -> list[PinReport]:
    """The same for the weights of a method, of which only hash and size are known."""
    return [_inspect(f"{method.id}/{name}", remote, replace, None) for name, remote in method.weights.items()]


def accept(reports: Sequence[PinReport]) -> Path | None:
    """Pin what is new or changed, all of it or nothing; the file of the pins, if there was anything to pin."""
    pins = {r.url: Pin(r.sha256, r.size, r.seen if r.seen != r.url else "") for r in reports if r.open}
    if not pins:
        return None
    write_pins(pins)
    return pins_file()


def _inspect(name: str, source: Remote, replace: bool, task: Task | None) -> PinReport:
    if source.sha256 is not None:
        path = fetch(source)
        report = PinReport(name, "declared", source.url, source.url, source.sha256, path.stat().st_size)
        return _read(report, path, task)
    pinned = find_pin(source)
    with cache.scratch() as folder:
        path, seen = fetch_unverified(source, folder)
        if pinned is not None and not replace:
            verify(path, pinned, source.url)
        sha256 = cache.hash_file(path)
        state = "new" if pinned is None else "unchanged" if sha256 == pinned.sha256 else "changed"
        if state == "changed" and pinned is not None and pinned.source != str(pins_file()):
            # A second pin that says otherwise would only be a conflict, at every later fetch.
            hint = "Tell its maintainers that the file has changed, or work on a copy of the registry: NEUCO_REGISTRY"
            what = "this pin ships with neuco and cannot be replaced here"
            raise DataError(what, where=pinned.source, hint=hint)
        report = _read(PinReport(name, state, source.url, seen, sha256, path.stat().st_size), path, task)
        if path.parent == folder:
            cache.store(path, cache.entry(report.sha256, file_name(report.url)))
    return report


def _read(report: PinReport, path: Path, task: Task | None) -> PinReport:
    """With what is in the file, read as the task would: a file that cannot be read must not be pinned."""
    if task is None:
        return report
    source = Remote(path.as_uri(), sha256=report.sha256, size=report.size)
    labels = dataclasses.replace(task, source=source).labels()
    return dataclasses.replace(
        report,
        rows=len(labels),
        dropped=sum(labels.dropped.values()),
        lowest=float(labels.values.min()),
        highest=float(labels.values.max()),
    )
