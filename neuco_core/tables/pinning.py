"""``neuco data pin``: fetch a source that nobody has verified, check it, and record its sha256."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from neuco_core.errors import DataError
from neuco_core.fetch import cache
from neuco_core.fetch.fetch import fetch, fetch_unverified, file_name, find_pin, pins_file, verify, write_pin
from neuco_core.specs import Method, Remote, Task


@dataclass(frozen=True)
class PinReport:
    """What was found at a source. ``state`` is declared, pinned, unchanged or replaced; weights have no rows."""

    task: str
    state: str
    url: str
    sha256: str
    size: int
    rows: int | None = None
    dropped: int | None = None
    lowest: float | None = None
    highest: float | None = None
    file: str = ""


def pin_task(task: Task, *, replace: bool = False) -> PinReport:
    """Fetch, read and pin the labels of a task. A pin that disagrees is an error unless ``replace`` is set."""
    return _pin(task.id, task.source, replace, task)


def pin_weights(method: Method, *, replace: bool) -> list[PinReport]:
    """The same for the weights of a method, of which only hash and size are known."""
    return [_pin(f"{method.id}/{name}", remote, replace, None) for name, remote in method.weights.items()]


def _pin(name: str, source: Remote, replace: bool, task: Task | None) -> PinReport:
    if source.sha256 is not None:
        path = fetch(source)
        return _read(PinReport(name, "declared", source.url, source.sha256, path.stat().st_size), path, task)
    pinned, file = find_pin(source), str(pins_file())
    with cache.scratch() as folder:
        path = fetch_unverified(source, folder)
        if pinned is not None and not replace:
            verify(path, pinned, source.url)
        sha256 = cache.hash_file(path)
        if pinned is None:
            state = "pinned"
        elif sha256 == pinned.sha256:
            state = "unchanged"
        elif pinned.source == file:
            state = "replaced"
        else:
            # A second pin that says otherwise would only be a conflict, at every later fetch.
            hint = "Tell its maintainers that the file has changed, or work on a copy of the registry: NEUCO_REGISTRY"
            what = "this pin ships with neuco and cannot be replaced here"
            raise DataError(what, where=pinned.source, hint=hint)
        report = _read(PinReport(name, state, source.url, sha256, path.stat().st_size, file=file), path, task)
        if state != "unchanged":
            write_pin(report.url, report.sha256, report.size)
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
