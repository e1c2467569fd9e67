"""``neuco new task``: profile and package labels, measure a baseline, write the plugin."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from neuco_core.contract import scaffold
from neuco_core.contract.builtin import SAMPLES
from neuco_core.contract.metric_scale import NO_HEADROOM, measure_baseline
from neuco_core.contract.scaffold import ADDRESSES, PluginRequest
from neuco_core.cubes.images import without_suffix
from neuco_core.errors import DataError, NeucoError, UsageError
from neuco_core.fetch.fetch import fetch_unverified
from neuco_core.plugins.catalog import list_datasets, list_tasks, load_dataset, load_method, task_protocol
from neuco_core.specs import Baseline, Dataset, Remote, Task
from neuco_core.tables.csv import first_double
from neuco_core.tables.embeddings import make_embeddings
from neuco_core.tables.labels import Labels, content_hash
from neuco_core.tables.package import package_labels
from neuco_core.text import counted, join_names

METHODS = ("averaging", "band_statistics")
GUESS = "random"
SOURCE = "measured by `neuco new task`"
MAKE_ONE = "make one of your images first: `neuco new dataset NAME --images FOLDER`"
MOST_STRAYS = 0.05  # of the labels; more are a mistake in their ids
SAMPLE = 21  # lines of labels at an address that a plugin shows: the header and 20 rows


@dataclass(frozen=True, kw_only=True)
class TaskRequest(PluginRequest):
    """``labels`` is a file or an address."""

    labels: str
    unit: str = ""
    kind: str | None = None
    metric: str = ""
    dataset: str | None = None
    columns: tuple[str, ...] = ("label",)
    id_column: str = "id"
    group_column: str | None = None
    split_column: str | None = None
    noun: ClassVar[str] = "task"
    tree: ClassVar[str] = "neuco_tasks"
    must_cite: ClassVar[bool] = True


def new_task(request: TaskRequest) -> tuple[Path, list[str]]:
    """Write a plugin for a file of labels, or for labels at an address: where it is, and what was found and guessed."""
    remote = request.labels.startswith(ADDRESSES)
    scaffold.refuse_http(request.labels)
    with scaffold.building(request) as plugin:
        source = fetch_unverified(Remote(request.labels), plugin.scratch)[0] if remote else Path(request.labels)
        file, match = plugin.folder / "labels.csv", IdMatcher(request.dataset, renames=not remote)
        package = package_labels(
            source,
            out=file,
            kind=request.kind,
            task=request.name,
            columns=request.columns,
            id_column=request.id_column,
            group_column=request.group_column,
            split_column=request.split_column,
            tasks=list_tasks(),
            match=match,
        )
        if remote and (request.id_column != "id" or package.columns != request.columns):
            hint = "Package them first (`neuco data package`), and publish that file"
            raise UsageError("labels at an address are read as they are", where=request.labels, hint=hint)
        if package.kind == "regression" and not request.unit:
            raise UsageError("a regression needs the unit of its labels", hint="Give --unit, or --unit 1 for a share")
        here = source if remote else file
        group, split = request.group_column, request.split_column
        if not remote:  # a packaged file has names of its own for them
            group, split = group and "group", split and "split"
        task = Task(
            id=request.name,
            dataset=match.dataset,
            kind=package.kind,
            metric=request.metric,
            unit=request.unit,
            source=scaffold.remote_of(here.absolute().as_uri(), here),
            columns=package.columns,
            group_column=group,
            split_column=split,
            splitter="group" if group and not split else "",
        )
        labels = task.labels()
        # Measured on the file here: the address inside the plugin is not valid before the plugin is in its place.
        baseline = _baseline(task, labels)
        address = request.labels if remote else plugin.address(file.name)
        task = replace(task, source=replace(task.source, url=address), baseline=baseline)
        if remote:
            lines = file.read_text(encoding="utf-8").splitlines(keepends=True)[:SAMPLE]
            (plugin.folder / "sample.csv").write_text("".join(lines), encoding="utf-8")
            file.unlink()
        source_text = f"`{Path(address).name}`" + (f" at {address}" if remote else "")
        plugin.write(task=task, labels=package, source_text=source_text)
    lines = [f"{plugin.target}: {package.rows} labels"]
    lines += [f"  dropped   {counted(n, 'row')}: {reason.replace('_', ' ')}" for reason, n in package.dropped.items()]
    kind_from = "given" if package.kind_from == "given" else f"from {package.kind_from}"
    lines.append(f"  kind      {package.kind} ({kind_from}), metric {task.metric}")
    if package.columns != ("label",):
        lines.append(f"  columns   {join_names(package.columns)}")
    if task.splitter:
        lines.append(f"  splits    {task.splitter}, in the place of random ones")
    lines.append(f"  dataset   {task.dataset} ({match.how})")
    lines += [f"            {note}" for note in (*match.notes, *_odd(labels))]
    reached = f"{baseline.score} (tolerance {baseline.tolerance})"
    lines.append(f"  baseline  {baseline.method} reaches {reached} under {baseline.protocol}")
    if baseline.source.endswith(NO_HEADROOM):
        lines.append(f"            {NO_HEADROOM}: it proves nothing about the labels")
    warnings = list(match.warnings)
    if len(labels) < SAMPLES:
        warnings.append(f"{len(labels)} labels are too few: `neuco check` asks for at least {SAMPLES}")
    lines += [f"  warning:  {warning}" for warning in warnings]
    return plugin.target, lines


class IdMatcher:
    """Called with labels, it finds their ``dataset`` and gives them its ids.

    ``how``, ``notes`` and ``warnings`` are for people. ``renames`` allows to take suffixes off:
    not of a file that stays where it is.
    """

    def __init__(self, dataset: str | None, *, renames: bool = True) -> None:
        self.named = load_dataset(dataset) if dataset else None
        self.renames = renames
        self.dataset, self.how = "", ""
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def __call__(self, labels: Labels) -> Labels:
        image_ids, ids = self._match(labels)
        if not image_ids:
            self.notes.append(f"no images of {self.dataset} are on this machine: ids were not compared")
            return labels
        if ids != labels.ids:
            if double := first_double(ids):
                first, second = (labels.ids[row] for row in double)
                raise DataError(f"two labels are of {ids[double[0]]!r}", got=f"{first}, {second}")
            changed = sum(before != after for before, after in zip(labels.ids, ids, strict=True))
            self.notes.append(f"the suffix of {changed} ids was taken off: {labels.ids[0]!r} is {ids[0]!r}")
            sha256 = content_hash(ids, labels.values, labels.groups, labels.split)
            labels = replace(labels, ids=ids, sha256=sha256)
        strays = [name for name in ids if name not in image_ids]
        if len(strays) == len(ids):
            expected, got = f"ids such as {min(image_ids)!r}", f"{ids[0]!r}"
            raise DataError(f"no label is of a sample of {self.dataset}", expected=expected, got=got)
        if strays:
            what = f"{len(ids) - len(strays)} of {len(ids)} labels have an image in {self.dataset}"
            told = self.warnings if len(strays) > MOST_STRAYS * len(ids) else self.notes
            told.append(f"{what}; the others are never scored: {strays[0]!r}, …")
        return labels

    def _match(self, labels: Labels) -> tuple[frozenset[str], tuple[str, ...]]:
        """The ids of the dataset's images, and those of the labels, with or without suffixes, whichever fits better.

        Without a name, it is the dataset that has them all.
        """
        spellings = [labels.ids, tuple(map(without_suffix, labels.ids))] if self.renames else [labels.ids]
        nearest, most, stray = None, 0, ""
        for dataset in (self.named,) if self.named else list_datasets():
            image_ids = _ids(dataset)
            ids = max(spellings, key=lambda ids: len(image_ids.intersection(ids)))
            count = len(image_ids.intersection(ids))
            if self.named or count == len(ids):
                self.dataset, self.how = dataset.id, "given" if self.named else "guessed: it has all the ids"
                return image_ids, ids
            if count > most:
                nearest, most = dataset, count
                stray = next(name for name, plain in zip(labels.ids, ids, strict=True) if plain not in image_ids)
        if nearest is None:
            got = f"ids such as {labels.ids[0]!r}"
            raise UsageError("no dataset here has these ids", got=got, hint=f"Give --dataset ID, or {MAKE_ONE}")
        got = f"{most} of {len(labels)} are in {nearest.id}, and {stray!r} is not"
        hint = f"Give --dataset {nearest.id}, or {MAKE_ONE}"
        raise UsageError("no dataset here has all these ids", got=got, hint=hint)


def _ids(dataset: Dataset) -> frozenset[str]:
    try:
        return frozenset(dataset.cubes().ids()) if dataset.cubes else frozenset()
    except NeucoError:
        return frozenset()  # not on this machine


def _odd(labels: Labels) -> Iterator[str]:
    """What is allowed, and probably not meant."""
    if labels.kind == "classification":
        counts = np.bincount(labels.values.astype(np.int64))
        alone = [labels.classes[number] for number in np.flatnonzero(counts == 1)]
        if alone:
            yield f"classes of one sample, which cannot be learned and judged: {join_names(alone)}"
    if labels.groups is None:
        return
    groups, members = np.unique(labels.groups, return_inverse=True)
    if len(groups) == len(labels):
        yield "each group has one sample: splits are as random as without groups"
    if labels.split is not None:
        train, test = (set(members[labels.split == part]) for part in ("train", "test"))
        if both := train & test:
            yield f"{len(both)} of {counted(len(groups), 'group')} are on both sides of the fixed split"


def _baseline(task: Task, labels: Labels) -> Baseline:
    """The score of the first simple method that shuffled labels do not reach; of the first one, if there is none.

    Of methods that can be run on the dataset; of random embeddings if none can.
    """
    protocol = task_protocol(task)
    baselines: list[Baseline] = []
    for method in (*METHODS, GUESS):
        if method == GUESS:
            if baselines:
                break
            values = np.random.default_rng(0).standard_normal((len(labels), 64)).astype("float32")
            embeddings = make_embeddings(labels.ids, values)
        else:
            try:
                embeddings = load_method(method).embeddings(task.dataset)
            except NeucoError:
                continue
        measured = measure_baseline(embeddings, labels, protocol, task.metric)
        if not (math.isfinite(measured.score) and math.isfinite(measured.reach)):
            hint = "Look at the file: almost all labels may be equal"
            raise UsageError("no score is defined for these labels", hint=hint)
        headroom = measured.headroom and method != GUESS
        baseline = Baseline(
            method=method,
            score=round(measured.score, measured.decimals + 1),
            tolerance=measured.tolerance,
            protocol=protocol.name,
            source=SOURCE if headroom else f"{SOURCE}; {NO_HEADROOM}",
        )
        if headroom:
            return baseline
        baselines.append(baseline)
    return baselines[0]
