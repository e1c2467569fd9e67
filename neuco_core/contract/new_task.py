"""``neuco new task``: profile and package labels, measure a baseline, write the plugin."""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from neuco_core.contract import scaffold
from neuco_core.contract.baselines import NO_HEADROOM, measure_baseline
from neuco_core.contract.match import Matcher
from neuco_core.contract.scaffold import Words
from neuco_core.errors import NeucoError, UsageError
from neuco_core.plugins.catalog import list_tasks, load_method, task_protocol
from neuco_core.protocol import Protocol
from neuco_core.specs import Baseline, Remote, Task
from neuco_core.text import counted, join_names

if TYPE_CHECKING:
    from neuco_core.tables.embeddings import Embeddings
    from neuco_core.tables.labels import Labels
    from neuco_core.tables.package import Package

METHODS = ("averaging", "band_statistics")
GUESS = "random"
SOURCE = "measured by `neuco new task`"


@dataclass(frozen=True)
class NewTask:
    """What was made, and what was guessed for it."""

    path: Path
    task: Task
    package: Package
    baseline: Baseline
    dataset_from: str
    notes: tuple[str, ...]


def new_task(
    words: Words,
    labels: str,
    *,
    unit: str = "",
    kind: str | None = None,
    metric: str = "",
    dataset: str | None = None,
    columns: Sequence[str] = (),
    id_column: str = "id",
    group_column: str | None = None,
    split_column: str | None = None,
    into: Path | None = None,
    as_package: bool = False,
) -> NewTask:
    """Write a plugin for a file of labels, or for labels at an address."""
    from neuco_core.fetch.fetch import fetch_unverified
    from neuco_core.tables.package import package_labels

    place = scaffold.choose_place(words.name, "neuco_tasks", into, as_package)
    with tempfile.TemporaryDirectory() as scratch, scaffold.building(place) as folder:
        remote = labels.startswith(scaffold.ENDINGS)
        source = fetch_unverified(Remote(labels), Path(scratch)) if remote else Path(labels)
        file, found = folder / "labels.csv", Matcher(dataset, renames=not remote)
        package = package_labels(
            source,
            out=file,
            kind=kind,
            task=words.name,
            columns=columns or ("label",),
            id_column=id_column,
            group_column=group_column,
            split_column=split_column,
            tasks=list_tasks(),
            match=found,
        )
        if remote and (id_column != "id" or package.columns != tuple(columns or ("label",))):
            hint = "Package them first (`neuco data package`), and publish that file"
            raise UsageError("labels at an address are read as they are", where=labels, hint=hint)
        if package.kind == "regression" and not unit:
            raise UsageError("a regression needs the unit of its labels", hint="Give --unit, or --unit 1 for a share")
        here = _here(source if remote else file)
        task = Task(
            id=words.name,
            dataset=found.dataset,
            kind=package.kind,
            metric=metric,
            unit=unit,
            source=here,
            columns=package.columns,
            # A packaged file has names of its own for them.
            group_column=group_column if remote or not group_column else "group",
            split_column=split_column if remote or not split_column else "split",
            splitter="group" if group_column and not split_column else "",
        )
        notes = tuple(_odd(task.labels()))
        # Measured on the file here: the address inside the plugin is not valid before the plugin is in its place.
        baseline = _baseline(task, task_protocol(task))
        address = labels if remote else place.address(file.name)
        task = replace(task, source=replace(here, url=address), baseline=baseline)
        if remote:
            _shorten(file.rename(folder / "sample.csv"))
        _write(folder, words, task, package)
        if as_package:
            scaffold.write_package(folder, words, ["task"], place.package)
    return NewTask(place.target, task, package, baseline, found.how, (*found.notes, *notes))


def _odd(labels: Labels) -> Iterator[str]:
    """What is allowed, and probably not meant."""
    import numpy as np

    if labels.kind == "classification":
        counts = np.bincount(labels.values.astype(np.int64))
        alone = [labels.classes[place] for place in np.flatnonzero(counts == 1)]
        if alone:
            yield f"classes of one sample, which cannot be learned and judged: {join_names(alone)}"
    if labels.groups is None:
        return
    groups, members = np.unique(labels.groups, return_inverse=True)
    if len(groups) == len(labels):
        yield "each group has one sample: splits are as random as without groups"
    if labels.split is not None:
        sides = [set(members[labels.split == part]) for part in ("train", "test")]
        if both := sides[0] & sides[1]:
            yield f"{len(both)} of {counted(len(groups), 'group')} are on both sides of the fixed split"


def _shorten(path: Path) -> None:
    """The header and 20 rows."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)[:21]
    path.write_text("".join(lines), encoding="utf-8")


def _here(path: Path) -> Remote:
    return Remote(path.absolute().as_uri(), hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size)


def _baseline(task: Task, protocol: Protocol) -> Baseline:
    """The score of the first simple method that shuffled labels do not reach; of the first one, if there is none."""
    labels = task.labels()
    found: list[Baseline] = []
    for method, embeddings in _embeddings(task, labels):
        measured = measure_baseline(embeddings, labels, protocol, task.metric)
        if not (math.isfinite(measured.score) and math.isfinite(measured.reach)):
            hint = "Look at the file: almost all labels may be equal"
            raise UsageError("no score is defined for these labels", hint=hint)
        headroom = measured.headroom and method != GUESS
        own = Baseline(
            method=method,
            score=round(measured.score, measured.decimals + 1),
            tolerance=measured.tolerance,
            protocol=protocol.name,
            source=SOURCE if headroom else f"{SOURCE}; {NO_HEADROOM}",
        )
        if headroom:
            return own
        found.append(own)
    return found[0]


def _embeddings(task: Task, labels: Labels) -> Iterator[tuple[str, Embeddings]]:
    """Those of simple methods that can be run on the dataset; random ones if none can."""
    runs = False
    for name in METHODS:
        try:
            embeddings = load_method(name).embeddings(task.dataset)
        except NeucoError:
            continue
        runs = True
        yield name, embeddings
    if runs:
        return
    import numpy as np

    from neuco_core.tables.embeddings import make_embeddings

    values = np.random.default_rng(0).standard_normal((len(labels), 64)).astype("float32")
    yield GUESS, make_embeddings(labels.ids, values)


def _write(folder: Path, words: Words, task: Task, package: Package) -> None:
    inside = task.source.url.startswith("pkg:")
    fields: dict[str, object] = {
        **words.fields(),
        "caveats": words.caveats or scaffold.CAVEATS["task"],
        "dataset": task.dataset,
        "kind": task.kind,
        "kind_words": task.kind.capitalize() + (f", {task.unit}" if task.unit else ""),
        "unit_literal": scaffold.literal(task.unit),
        "url": task.source.url,
        "sha256": task.source.sha256,
        "size": task.source.size,
        "source_words": f"`{Path(task.source.url).name}`" + ("" if inside else f" at {task.source.url}"),
        "rows": package.rows,
        "lowest": repr(package.lowest),
        "highest": repr(package.highest),
        "metric": task.metric,
        "options": "".join(f"        {line},\n" for line in _options(task)),
        "split_words": _split_words(task),
        **{
            f"baseline_{key}": getattr(task.baseline, key)
            for key in ("method", "score", "tolerance", "protocol", "source")
        },
    }
    (folder / "__init__.py").write_text(scaffold.fill("task_init.py", fields), encoding="utf-8")
    (folder / "README.md").write_text(scaffold.fill("task_card.md", fields), encoding="utf-8")
    (folder / "test.py").write_text(scaffold.fill("task_test.py", fields), encoding="utf-8")


def _options(task: Task) -> Iterator[str]:
    """The fields that not every task has."""
    if task.columns != ("label",):
        yield f"columns={scaffold.names_literal(task.columns, 8)}"
    for name in ("group_column", "split_column", "splitter"):
        if getattr(task, name) and (name, task.splitter) != ("splitter", "fixed"):
            yield f"{name}={scaffold.literal(getattr(task, name))}"


def _split_words(task: Task) -> str:
    if task.splitter == "fixed":
        return "Its split into a training and a test part is fixed."
    return "Groups are never on both sides of a split." if task.splitter == "group" else ""
