"""What the site shows besides the boards: words about methods and tasks, scores of splits, labels that are at hand."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from neuco_core.boards.build import TooManyCellsError
from neuco_core.boards.cells import Cells, from_records
from neuco_core.boards.extra import extra_cells
from neuco_core.boards.facts import or_none
from neuco_core.boards.from_registry import Current, current
from neuco_core.boards.model import Board, BoardCell, ExtraCells
from neuco_core.boards.published import Published, list_published
from neuco_core.boards.replay import Past, Version, read_past
from neuco_core.errors import NeucoError

if TYPE_CHECKING:
    from neuco_core.cubes.pictures import Picture
    from neuco_core.records.model import Record
    from neuco_core.specs import Content, Method, Suite, Task

DAY = re.compile(r"\d{4}-\d{2}-\d{2}T")
log = logging.getLogger(__name__)
LARGEST_CARD = 200_000
BINS = 24


@dataclass(frozen=True)
class Words:
    """What is said about a method or a task. All of it is strangers' text."""

    title: str = ""
    description: str = ""
    citation: str = ""
    license: str = ""
    tags: tuple[str, ...] = ()
    card: str = ""
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Histogram:
    """How the labels of a task are spread: over bins between ``edges``, or over ``classes``."""

    counts: tuple[int, ...]
    edges: tuple[float, ...]
    unit: str = ""
    total: int = 0
    classes: tuple[str, ...] = ()


@dataclass(frozen=True)
class BoardSource:
    """One board and all that its pages show; ``past`` are dated versions, by the phase of a challenge."""

    id: str
    title: str
    board: Board
    description: str = ""
    registry: Path | None = None
    cells: Cells | None = None
    methods: Mapping[str, Words] = field(default_factory=dict)
    tasks: Mapping[str, Words] = field(default_factory=dict)
    labels: Mapping[str, Histogram] = field(default_factory=dict)
    history: Sequence[Version] = ()
    past: Mapping[str, Sequence[Version]] = field(default_factory=dict)
    past_source: str = ""
    records: Mapping[tuple[str, str], Record] = field(default_factory=dict)
    pictures: Mapping[str, Sequence[Picture]] = field(default_factory=dict)
    extra: ExtraCells | None = None  # for empty cells, off until asked for

    @property
    def updated(self) -> str:
        """The day of the newest record that counts."""
        times = [str(record.provenance.get("time", "")) for record in self.records.values()]
        return max((time[:10] for time in times if DAY.match(time)), default="")

    @property
    def estimated(self) -> Mapping[tuple[str, str], BoardCell]:
        return self.extra.cells if self.extra else {}

    @property
    def estimated_said(self) -> str:
        return self.extra.about if self.extra else ""

    @property
    def published(self) -> bool:
        return self.board.published is not None

    def method(self, name: str) -> Words:
        return self.methods.get(name, Words())

    def task(self, name: str) -> Words:
        return self.tasks.get(name, Words())

    def method_title(self, name: str) -> str:
        return self.method(name).title or name

    def task_title(self, name: str) -> str:
        return self.task(name).title or name


def gather(registry: Path, names: Sequence[str] = ()) -> list[BoardSource]:
    """The boards of these suites; without names, of all suites, and the published ones."""
    now = current(registry)
    sources = []
    for suite in now.choose(names):
        try:
            sources.append(from_suite(now, suite, registry))
        except TooManyCellsError as error:
            if names:
                raise
            log.warning("%s", error)
    if not names:
        sources += [from_published(item, read_past(registry, item.id)) for item in list_published(registry)]
    return [replace(source, registry=registry, extra=extra_cells(source.board)) for source in sources]


def from_suite(now: Current, suite: Suite, registry: Path) -> BoardSource:
    from neuco_core.plugins.catalog import load_method, load_task

    cells = from_records(now.records, suite, now.why_stale)
    methods = {
        method.id: spec for method in cells.methods if (spec := or_none(load_method, f"{method.id}@{method.version}"))
    }
    tasks = {task.id: spec for task in cells.tasks if (spec := or_none(load_task, f"{task.id}@{task.version}"))}
    return BoardSource(
        id=suite.id,
        title=suite.title or suite.id,
        description=suite.description,
        board=now.board(suite),
        cells=cells,
        methods={name: _method_words(method) for name, method in methods.items()},
        tasks={name: _task_words(task) for name, task in tasks.items()},
        labels={name: spread for name, task in tasks.items() if (spread := label_histogram(task))},
        records=_records(now, suite, cells),
        pictures={name: found for name, task in tasks.items() if (found := task_pictures(task))},
    )


def _records(now: Current, suite: Suite, cells: Cells) -> dict[tuple[str, str], Record]:
    """By method and task, the record that the cell was made of."""
    found = [r for r in now.records if r.protocol == suite.protocol and r.task in suite.tasks]
    return {(r.method, r.task): r for r in found if cells.cell(r.method, r.task).fingerprint == r.fingerprint}


def from_published(item: Published, past: Past | None = None) -> BoardSource:
    methods = {row.method: Words(title=row.title, description=row.name) for row in item.rows}
    return BoardSource(
        id=item.id,
        title=item.title,
        description=item.description,
        board=item.board(),
        methods=methods,
        past=past.versions() if past else {},
        past_source=past.source if past else "",
    )


def _method_words(method: Method) -> Words:
    made = "from files" if method.files else "computed by an encoder"
    params = ", ".join(f"{key} = {value}" for key, value in method.params.items())
    return _words(method, Embeddings=made, Needs=", ".join(method.requires), Settings=params)


def _task_words(task: Task) -> Words:
    control = "yes: no method should do well here" if task.control else ""
    labels = "pinned by a checksum" if task.source.pinned else "not pinned yet"
    facts = {"Kind": task.kind, "Metric": task.metric, "Unit": task.unit, "Control": control, "Labels": labels}
    return _words(task, Dataset=task.dataset, **facts)


def _words(spec: Content, **facts: str) -> Words:
    known = tuple((name, fact) for name, fact in facts.items() if fact)
    return Words(spec.title, spec.description, spec.citation, spec.license, spec.tags, _card(spec), known)


def _card(spec: Content) -> str:
    """The README.md of the plugin's directory, if it has one of a sensible size."""
    path = Path(spec.origin.source) / "README.md" if spec.origin else None
    try:
        if path is None or path.stat().st_size > LARGEST_CARD:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


@cache
def task_pictures(task: Task) -> tuple[Picture, ...]:
    """A few samples, if labels and images are at hand; several suites may have the task, so they are kept."""
    from neuco_core.cubes.pictures import pictures

    if not _at_hand(task):
        return ()
    try:
        return tuple(pictures(task))
    except (NeucoError, OSError):
        return ()


def _at_hand(task: Task) -> bool:
    """Whether the labels are in the package or linked: building a page fetches nothing."""
    from neuco_core.fetch.links import linked_file

    return task.source.url.startswith("pkg:") or linked_file(task.dataset, task.source) is not None


def label_histogram(task: Task) -> Histogram | None:
    """The spread of the labels, if they are at hand."""
    import numpy as np

    from neuco_core.tables.labels import load_labels

    try:
        if not _at_hand(task):
            return None
        labels = load_labels(task)
    except (NeucoError, OSError):
        return None
    if task.kind == "multilabel":
        return Histogram(tuple(labels.values.sum(axis=0).astype(int).tolist()), (), "", len(labels), labels.columns)
    values = labels.values.reshape(len(labels), -1)[:, 0]
    if task.kind == "classification":
        counts = np.bincount(values.astype(int))
        classes = labels.classes or tuple(map(str, range(len(counts))))
        return Histogram(tuple(counts.tolist()), (), task.unit, len(labels), classes)
    counts, edges = np.histogram(values, bins=BINS)
    return Histogram(tuple(counts.tolist()), tuple(edges.tolist()), task.unit, len(labels))
