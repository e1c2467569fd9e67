"""``neuco data pin``: fetch a source that nobody has verified, check it, and record its sha256."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from neuco_core.errors import DataError
from neuco_core.fetch import cache
from neuco_core.fetch.fetch import fetch, fetch_unverified, file_name, verify
from neuco_core.fetch.pins import Pin, find_pin, pins_file, write_pin
from neuco_core.specs import Method, Remote, Task

if TYPE_CHECKING:
    from neuco_core.tables.labels import Labels


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
    return _pin(task.source, replace, partial(_report, task))


def pin_weights(method: Method, *, replace: bool) -> list[PinReport]:
    """The same for the weights of a method, of which only hash and size are known."""
    return [
        _pin(remote, replace, partial(_plain_report, f"{method.id}/{name}", remote))
        for name, remote in method.weights.items()
    ]


def _pin(source: Remote, replace: bool, look: Callable[[str, Path, str], PinReport]) -> PinReport:
    if source.sha256 is not None:
        return look("declared", fetch(source), "")
    known = find_pin(source)
    with cache.scratch() as folder:
        path = fetch_unverified(source, folder)
        if known is not None and not replace:
            verify(path, known, source.url)
        report = look(_state(known, path), path, str(pins_file()))
        if report.state != "unchanged":
            write_pin(report.url, report.sha256, report.size)
        if path.parent == folder:
            cache.store(path, cache.entry(report.sha256, file_name(report.url)))
    return report


def _plain_report(name: str, source: Remote, state: str, path: Path, file: str) -> PinReport:
    return PinReport(name, state, source.url, cache.hash_file(path), path.stat().st_size, file=file)


def _state(known: Pin | None, path: Path) -> str:
    if known is None:
        return "pinned"
    if cache.hash_file(path) == known.sha256:
        return "unchanged"
    if known.source != str(pins_file()):
        # A second pin that says otherwise would only be a conflict, at every later fetch.
        hint = "Tell its maintainers that the file has changed, or work on a copy of the registry: NEUCO_REGISTRY"
        raise DataError("this pin ships with neuco and cannot be replaced here", where=known.source, hint=hint)
    return "replaced"


def _report(task: Task, state: str, path: Path, file: str) -> PinReport:
    sha256, size = cache.hash_file(path), path.stat().st_size
    labels = _read(task, Remote(path.as_uri(), sha256=sha256, size=size))
    return PinReport(
        task=task.id,
        state=state,
        url=task.source.url,
        sha256=sha256,
        size=size,
        rows=len(labels.ids),
        dropped=sum(labels.dropped.values()),
        lowest=float(labels.values.min()),
        highest=float(labels.values.max()),
        file=file,
    )


def _read(task: Task, source: Remote) -> Labels:
    """Read the file as the task would: a file that cannot be read must not be pinned."""
    return dataclasses.replace(task, source=source).labels()
