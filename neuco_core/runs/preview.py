"""A look: methods with other parameters, or on a few samples only, as files made for one run and never recorded.

A record is of a registered method as it is registered, on all samples. With other parameters it would be another
method, and on some samples another score, so neither may take a record's place.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from neuco_core.encode.encoding import BATCH
from neuco_core.encode.requirements import full_params
from neuco_core.encode.run import EncodeOptions, encode_dataset, method_embeddings
from neuco_core.errors import NeucoError
from neuco_core.plugins.catalog import load_dataset
from neuco_core.protocol import Protocol
from neuco_core.runs.files import EmbeddingsFile, file_method, method_id
from neuco_core.runs.plan import Plan, PlannedCell, Planner
from neuco_core.runs.worker import shared_labels
from neuco_core.specs import Method, Task
from neuco_core.tables.embeddings import Embeddings, read_embeddings, write_embeddings
from neuco_core.text import counted


@dataclass(frozen=True)
class Preview:
    """How a run departs from what records are of. ``limit`` is how many samples of each task are taken."""

    params: Mapping[str, Any] = field(default_factory=dict)
    limit: int | None = None
    batch_size: int = BATCH
    fresh: bool = False

    def __str__(self) -> str:
        changed = ", ".join(f"{name}={value}" for name, value in self.params.items())
        few = f"{counted(self.limit, 'sample')} of each task" if self.limit is not None else ""
        return " and ".join(filter(None, (changed, few)))

    def to_json(self) -> dict[str, Any]:
        return {"params": dict(self.params), "limit": self.limit}

    def name(self, stem: str) -> str:
        """What the scores are called: never the method's own id."""
        parts = [stem, *(f"{name}-{value}" for name, value in self.params.items())]
        if self.limit is not None:
            parts.append("quick")
        return method_id(Path(re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower())))


def plan_preview(
    preview: Preview,
    methods: Sequence[Method],
    files: Sequence[EmbeddingsFile],
    chosen: Sequence[tuple[Protocol, list[Task]]],
    shared: str,
) -> list[Plan]:
    """Make the embeddings, and plan a cell for each of them and each task; what has none says why."""
    for method in methods if preview.params else ():
        full_params(method, preview.params)  # refused if one of the methods lacks them, before anything is encoded
    cells_of = _PreviewCells(preview, [task for _, tasks in chosen for task in tasks], shared)
    sources: list[Method | EmbeddingsFile] = [*methods, *files]
    plans = []
    for protocol, tasks in chosen:
        planner = Planner(protocol, {})
        ordered = sorted(tasks, key=lambda task: (task.dataset, task.label))
        cells = [cells_of.cell(planner, source, task) for source in sources for task in ordered]
        plans.append(Plan(protocol, tuple(cells)))
    return plans


class _PreviewCells:
    """What the plans of one look share: which samples, and embeddings that are made once for each dataset."""

    def __init__(self, preview: Preview, tasks: Sequence[Task], shared: str) -> None:
        self.preview, self.tasks, self.shared = preview, tasks, shared
        self._made: dict[tuple[str, str], EmbeddingsFile | NeucoError] = {}
        self._samples: dict[str, frozenset[str]] = {}

    def cell(self, planner: Planner, source: Method | EmbeddingsFile, task: Task) -> PlannedCell:
        """A method, or a file that was given; with a limit, on some samples."""
        if isinstance(source, EmbeddingsFile):
            key, stem = (str(source.path), task.dataset), source.method.id
            planned = planner.file_cell(source, task)
            if self.preview.limit is None:
                return planned
        else:
            key, stem = (source.label, task.dataset), source.id
            alias = Method(id=self.preview.name(stem), title=source.title, files=source.files, encoder=source.encoder)
            # Also what was not made is a file's: it leaves no record.
            planned = replace(planner.cell(source, task), method=alias, file=EmbeddingsFile(Path(), alias))
        if not planned.to_run:
            return planned
        if key not in self._made:
            try:
                embeddings, name = self._embeddings(source, task.dataset), self.preview.name(stem)
                path = Path(self.shared, f"{name}.{task.dataset}.npz")
                write_embeddings(embeddings, path)
                self._made[key] = EmbeddingsFile(path, file_method(path, name, [task.dataset]))
            except NeucoError as error:
                self._made[key] = error
        made = self._made[key]
        if isinstance(made, NeucoError):
            return replace(planned, state="failed", reason=str(made))
        return planner.file_cell(made, task)

    def _embeddings(self, source: Method | EmbeddingsFile, dataset: str) -> Embeddings:
        limit, params = self.preview.limit, self.preview.params
        if isinstance(source, EmbeddingsFile):
            return read_embeddings(source.path, strict=source.strict).only(self._ids(dataset))
        options = EncodeOptions(batch_size=self.preview.batch_size, cached=not self.preview.fresh)
        if limit is not None and not source.files:
            return encode_dataset(source, load_dataset(dataset), params, options, only=self._ids(dataset))
        embeddings = method_embeddings(source, dataset, params, options)
        return embeddings if limit is None else embeddings.only(self._ids(dataset))

    def _ids(self, dataset: str) -> frozenset[str]:
        """The samples: of each task as many as the limit says, in the same order for all tasks."""
        if dataset not in self._samples:
            labelled = []
            for task in self.tasks:
                if task.dataset == dataset:
                    with suppress(NeucoError):  # labels that cannot be had: the plan says so
                        labelled.append(shared_labels(task, self.shared).ids)
            self._samples[dataset] = frozenset(
                name for ids in labelled for name in shuffled(ids)[: self.preview.limit or None]
            )
        return self._samples[dataset]


def shuffled(ids: Iterable[str]) -> list[str]:
    """As good as random, and always the same: all methods are looked at on the same samples."""
    return sorted(ids, key=lambda name: hashlib.sha256(name.encode()).digest())
