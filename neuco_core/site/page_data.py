"""What the pages show besides the boards: what is said of methods and tasks, scores of splits, labels at hand."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from neuco_core.boards.build import TooManyCellsError
from neuco_core.boards.cells import Cells, by_protocol, day_of, from_records
from neuco_core.boards.facts import extra_cells, or_none
from neuco_core.boards.model import Board, BoardCell, BoardRow, ExtraCells
from neuco_core.boards.published import Published, list_published
from neuco_core.boards.store import Current, current
from neuco_core.cubes.pictures import Picture, pictures
from neuco_core.errors import NeucoError
from neuco_core.fetch.links import labels_here
from neuco_core.plugins.catalog import load_method, load_task
from neuco_core.records.model import Record
from neuco_core.specs import Content, Suite, Task
from neuco_core.tables.labels import load_labels

log = logging.getLogger(__name__)
LARGEST_CARD = 200_000
BINS = 24


@dataclass(frozen=True)
class About:
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
class PageData:
    """One board and all that its pages show.

    ``extra`` are values for empty cells, off until asked for. ``elsewhere`` are scores of the board's tasks under other
    protocols.
    """

    id: str
    title: str
    board: Board
    description: str = ""
    registry: Path | None = None
    cells: Cells | None = None
    methods: Mapping[str, About] = field(default_factory=dict)
    tasks: Mapping[str, About] = field(default_factory=dict)
    labels: Mapping[str, Histogram] = field(default_factory=dict)
    records: Mapping[tuple[str, str], Record] = field(default_factory=dict)
    pictures: Mapping[str, Sequence[Picture]] = field(default_factory=dict)
    extra: ExtraCells | None = None
    elsewhere: Sequence[Record] = ()

    @cached_property
    def table_rows(self) -> tuple[BoardRow, ...]:
        """The rows of the table; a copy of another method is named beside that one."""
        return tuple(row for row in self.board.shown if not row.same_as)

    @cached_property
    def protocols(self) -> Mapping[str, Cells]:
        """The cells of the board's tasks under each protocol on record, the board's own first."""
        about = self.board.suite
        if about is None or self.cells is None:
            return {}
        suite = Suite(id=self.id, tasks=about.tasks, protocol=about.protocol)
        return {**by_protocol(self.elsewhere, suite), about.protocol: self.cells}

    @property
    def updated(self) -> str:
        """The day of the newest record that counts."""
        return max(map(day_of, self.records.values()), default="")

    @property
    def estimated(self) -> Mapping[tuple[str, str], BoardCell]:
        return self.extra.cells if self.extra else {}

    @property
    def published(self) -> bool:
        return self.board.published is not None

    def method(self, method_id: str) -> About:
        return self.methods.get(method_id, About())

    def task(self, task_id: str) -> About:
        return self.tasks.get(task_id, About())

    def method_title(self, method_id: str) -> str:
        return self.method(method_id).title or method_id

    def task_title(self, task_id: str) -> str:
        return self.task(task_id).title or task_id

    def with_titles(self, sentence: str) -> str:
        """A sentence of the board, which names methods and tasks by their ids, for people."""
        titles = {row.method: self.method_title(row.method) for row in self.board.rows}
        titles |= {task.id: self.task_title(task.id) for task in self.board.tasks}
        return re.sub(r"[\w.-]*\w", lambda match: titles.get(match[0], match[0]), sentence)

    def splits(self, row: BoardRow, task: str) -> list[float]:
        if self.cells is None or self.board.score(row, task) is None:
            return []
        return [value for value in self.cells.cell(row.method, task).splits if value is not None]


def gather(registry: Path, names: Sequence[str] = ()) -> list[PageData]:
    """The boards of these suites; without names, of all suites, and the published ones."""
    now = current(registry)
    pages = []
    for suite in now.choose(names):
        try:
            pages.append(from_suite(now, suite))
        except TooManyCellsError as error:
            if names:
                raise
            log.warning("%s", error)
    if not names:
        pages += [from_published(item) for item in list_published(registry)]
    return [replace(page, registry=registry, extra=extra_cells(page.board)) for page in pages]


def from_suite(now: Current, suite: Suite) -> PageData:
    cells = from_records(now.records, suite, now.why_stale)
    methods, tasks = {}, {}
    for entry in cells.methods:
        if method := or_none(load_method, f"{entry.id}@{entry.version}"):
            settings = ", ".join(f"{key} = {value}" for key, value in method.params.items())
            made = "from files" if method.files else "computed by an encoder"
            methods[entry.id] = _about(method, Embeddings=made, Needs=", ".join(method.requires), Settings=settings)
    specs = {}
    for board_task in cells.tasks:
        if task := or_none(load_task, f"{board_task.id}@{board_task.version}"):
            specs[board_task.id] = task
            tasks[board_task.id] = _about(
                task,
                Dataset=task.dataset,
                Kind=task.kind,
                Metric=task.metric,
                Unit=task.unit,
                Control="yes: no method should do well here" if task.control else "",
                Labels="pinned by a checksum" if task.source.pinned else "not pinned yet",
            )
    # By method and task, the record that the cell was made of.
    of_suite = [r for r in now.records if r.protocol == suite.protocol and r.task in suite.tasks]
    records = {(r.method, r.task): r for r in of_suite if cells.cell(r.method, r.task).fingerprint == r.fingerprint}
    elsewhere = [
        r
        for r in now.records
        if r.ok and suite.tasks.get(r.task) == r.task_version and r.protocol != suite.protocol and not now.why_stale(r)
    ]
    return PageData(
        id=suite.id,
        title=suite.title or suite.id,
        description=suite.description,
        board=now.board(suite),
        cells=cells,
        methods=methods,
        tasks=tasks,
        labels={name: spread for name, task in specs.items() if (spread := label_histogram(task))},
        records=records,
        elsewhere=elsewhere,
        pictures={name: task_pictures(task) for name, task in specs.items()},
    )


def from_published(item: Published) -> PageData:
    return PageData(
        id=item.id,
        title=item.title,
        description=item.description,
        board=item.board(),
        methods={row.method: About(title=row.title, description=row.name) for row in item.rows},
    )


def _about(spec: Content, **facts: str) -> About:
    """What a spec says of itself, with the README.md of the plugin's directory if it has one of a sensible size."""
    card = ""
    path = Path(spec.origin.source) / "README.md" if spec.origin else None
    try:
        if path is not None and path.stat().st_size <= LARGEST_CARD:
            card = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        pass  # a plugin need not have a card
    stated = tuple((name, fact) for name, fact in facts.items() if fact)
    return About(spec.title, spec.description, spec.citation, spec.license, spec.tags, card, stated)


@cache
def task_pictures(task: Task) -> tuple[Picture, ...]:
    """A few samples, if labels and images are at hand; several suites may have the task, so they are kept."""
    try:
        return tuple(pictures(task)) if labels_here(task) else ()
    except (NeucoError, OSError):
        return ()


def label_histogram(task: Task) -> Histogram | None:
    try:
        if not labels_here(task):
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
