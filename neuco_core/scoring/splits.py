"""From embeddings and labels to joined samples, and ways to split these into a training and a test part, k times."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from neuco_core.errors import DataError, ScoreError
from neuco_core.plugins.catalog import catalog
from neuco_core.protocol import Protocol
from neuco_core.specs import Splitter, Task, resolve
from neuco_core.tables.embeddings import Embeddings
from neuco_core.tables.labels import Labels
from neuco_core.tables.positions import positions_of
from neuco_core.text import join_names
from neuco_core.versions import versioned

Splits = list[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Samples:
    """The joined samples in the order of the label file.

    ``x`` is float32, (n, dim). ``y`` is float64: (n, outputs) for a regression, (n, labels) of 0 and 1 for a
    multilabel task, (n, 1) with the class numbers 0, 1, … for a classification; ``classes`` holds the labels that the
    numbers stand for. ``labels`` are those that were joined.
    """

    task: str
    kind: str
    x: np.ndarray
    y: np.ndarray
    labels: Labels
    classes: tuple[float, ...]
    counts: dict[str, int]
    center: float
    spread: float


def join(
    embeddings: Embeddings,
    labels: Labels,
    protocol: Protocol,
    over: Collection[str] | None = None,
    *,
    allow_constant: bool = False,
) -> Samples:
    """Join on the ids; the scalar mean and std for standardising are those of the ids ``over``, or of all rows.

    All rows, because NeuCo-Bench standardises before it looks at a task: a task scored alone sees the same inputs
    as in a run over all tasks, and other tasks that come and go change nothing.
    """
    if embeddings.values.ndim != 2 or len(embeddings.ids) != len(embeddings.values):
        raise DataError("embeddings must have one row per id", got=f"{embeddings.values.shape}")
    for ids, what in ((labels.ids, f"the labels of {labels.task}"), (embeddings.ids, "the embeddings")):
        row_of = {name: row for row, name in enumerate(ids)}
        if len(row_of) != len(ids):
            twice = next(name for row, name in enumerate(ids) if row_of[name] != row)
            raise DataError(f"{what} have the id {twice!r} more than once")
    kept = np.array([i for i, name in enumerate(labels.ids) if name in row_of], dtype=np.int64)
    if not kept.size:
        example = f"{labels.ids[:1]} and {embeddings.ids[:1]}"
        raise DataError("labels and embeddings share no id", where=labels.task, got=f"ids such as {example}")
    rows = np.array([row_of[labels.ids[i]] for i in kept], dtype=np.int64)
    values, width = embeddings.values, embeddings.values.shape[1]
    dim = width if protocol.embedding_dim is None else protocol.embedding_dim
    if width > dim:
        raise DataError("too many embedding dimensions", expected=f"at most {dim}", got=width)
    x = aligned((len(rows), dim))
    if width == dim and values.dtype == x.dtype:
        np.take(values, rows, axis=0, out=x, mode="clip")  # the rows are there; other modes make a copy first
    else:
        x[:, :width], x[:, width:] = values[rows], 0
    center, spread = embeddings.moments(over, x.shape[1])
    y, classes = _targets(labels, kept, allow_constant)
    counts = {
        "used": len(kept),
        "labels": len(labels.ids),
        "embeddings": len(embeddings.ids),
        "labels_without_embedding": len(labels.ids) - len(kept),
        "embeddings_without_label": len(embeddings.ids) - len(kept),
        "dropped_labels": sum(labels.dropped.values()),
        "replaced_values": sum(embeddings.replaced.values()),
    }
    return Samples(
        task=labels.task,
        kind=labels.kind,
        x=x,
        y=y,
        labels=labels.only(embeddings.ids),
        classes=classes,
        counts=counts,
        center=center,
        spread=spread,
    )


def aligned(shape: tuple[int, ...]) -> np.ndarray:
    """An empty array of float32 that begins where a line of the processor's cache begins.

    Reads of whole lines from an array that does not take the linear probe a fifth longer (``benchmarks/probe.py``).
    """
    line, size = 64, math.prod(shape)
    room = np.empty(size + line // 4, np.float32)
    first = -room.ctypes.data % line // 4
    return room[first : first + size].reshape(shape)


def _targets(labels: Labels, kept: np.ndarray, allow_constant: bool) -> tuple[np.ndarray, tuple[float, ...]]:
    values = np.asarray(labels.values, np.float64)
    values = values.reshape(len(values), -1)[kept]
    if not np.isfinite(values).all():
        raise DataError("labels that are not finite", where=labels.task)
    if labels.kind != "classification":
        flat = np.flatnonzero(values.min(axis=0) == values.max(axis=0))
        if flat.size and not allow_constant:
            hint = "Nothing can be learned from them; check the label file and the join"
            of = f" of column {labels.columns[flat[0]]!r}" if len(labels.columns) > 1 else ""
            same = f"the {len(kept)} joined labels{of} are all {values[0, flat[0]]:g}"
            raise DataError(same, where=labels.task, hint=hint)
        return values, ()
    if values.shape[1] != 1:
        raise ScoreError("a classification with several labels per sample", where=labels.task, expected="one label")
    classes, numbers = np.unique(values[:, 0], return_inverse=True)
    if len(classes) < 2 and allow_constant and classes[0] in (0, 1):
        return values, (0.0, 1.0)
    if len(classes) < 2:
        raise DataError(
            f"the {len(kept)} joined labels are all {classes[0]:g}", where=labels.task, expected="two classes"
        )
    return numbers.reshape(-1, 1).astype(np.float64), tuple(map(float, classes))


def splitter_of(labels: Labels, protocol: Protocol) -> Splitter:
    """The task's own splitter, or the protocol's."""
    return catalog().load(Splitter, protocol.splitter_for(labels.splitter))


def splits_of(labels: Labels, protocol: Protocol) -> Splits:
    """The splits of labelled samples, with what their splitter needs to know of them."""
    splitter = splitter_of(labels, protocol)
    parts = labels.split if splitter.needs_split else labels.groups
    if parts is None and (splitter.needs_groups or splitter.needs_split):
        noun, column = ("a split", "split_column") if splitter.needs_split else ("groups", "group_column")
        hint = f"Use a protocol with another splitter, or name the task's {column}"
        raise ScoreError(f"splitter {splitter.id!r} needs {noun}", where=labels.task, hint=hint)
    params = {name: protocol.params.get(name, default) for name, default in splitter.params.items()}
    given = [len(labels), replace(protocol, params=params), parts]
    if splitter.needs_positions:
        given.append(positions_of(labels))
    splits: Splits = resolve(splitter.function)(*given)
    return splits


@versioned(1)
def shuffle(n: int, protocol: Protocol, groups: np.ndarray | None = None) -> Splits:
    """k random permutations of the samples; the first ceil(test_size · n) of each are its test part."""
    test = tested_count(n, protocol, "samples")
    random = np.random.RandomState(protocol.seed)
    orders = [random.permutation(n) for _ in range(protocol.k)]
    return [(order[test:], order[:test]) for order in orders]


# 2: the sizes of a record are means over its splits, no longer those of the first; 3: samples near a tested group;
# 4: ridge no longer learns from samples in neither part, which only this splitter leaves
@versioned(4)
def group(n: int, protocol: Protocol, groups: np.ndarray | None = None) -> Splits:
    """The same, over whole groups: no group has samples in both parts, and the parts' sizes vary with the groups.

    A sample whose group is written ``a|b|c`` is of ``a``, and so near to ``b`` and ``c`` that it is in neither part
    while one of these is tested and ``a`` is not.
    """
    if groups is None:
        raise ScoreError("splits by group need groups", hint="The task names none; use a protocol with shuffle splits")
    near = [str(name).split("|") for name in groups]
    names, member = np.unique([own for own, *_ in near], return_inverse=True)
    test = tested_count(len(names), protocol, "groups")
    random = np.random.RandomState(protocol.seed)
    sample = np.repeat(np.arange(n), [len(each) for each in near])
    named = np.array([name for each in near for name in each])
    splits: Splits = []
    for _ in range(protocol.k):
        order, chosen = random.permutation(n), random.permutation(len(names))[:test]
        inside = np.isin(member, chosen)
        outside = np.ones(n, dtype=bool)
        outside[sample[np.isin(named, names[chosen])]] = False
        splits.append((order[outside[order]], order[inside[order]]))
    return splits


@versioned(1)
def each_group(n: int, protocol: Protocol, groups: np.ndarray) -> Splits:
    """Each group is tested once; samples that are near to it, as ``group`` has it, are left out of training."""
    near = [str(name).split("|") for name in groups]
    order = np.random.RandomState(protocol.seed).permutation(n)
    splits: Splits = []
    for name in sorted({own for own, *_ in near}):
        inside, outside = np.array([(name == each[0], name not in each) for each in near])[order].T
        splits.append((order[outside], order[inside]))
    return splits


@versioned(1)
def fixed(n: int, protocol: Protocol, split: np.ndarray | None = None) -> Splits:
    """The one split that the task names: ``split`` says ``train`` or ``test`` of each sample."""
    if split is None:
        raise ScoreError("a fixed split needs a split column", hint="The task names none; use another splitter")
    order = np.random.RandomState(protocol.seed).permutation(n)  # so that a share of the training part is a random one
    test = np.asarray(split)[order] == "test"
    return [(order[~test], order[test])]


def tested_count(n: int, protocol: Protocol, what: str) -> int:
    test = math.ceil(protocol.test_size * n)
    if n < 2 or test >= n:
        expected = f"enough for a test part of {protocol.test_size:g} and a training part"
        raise ScoreError(f"too few {what}", expected=expected, got=n)
    return test


def cut_groups(scored: Iterable[tuple[Task, Protocol]]) -> Iterator[str]:
    """That splits cut through the groups which tasks name: a sentence for each protocol, with a board that has none."""
    cut: dict[str, dict[str, Protocol]] = {}
    names: dict[str, set[str]] = {}
    for task, protocol in scored:
        splitter = catalog().load(Splitter, protocol.splitter_for(task.splitter))
        keeps_apart = splitter.needs_groups or splitter.needs_split or splitter.needs_positions
        if task.group_column and not keeps_apart:
            cut.setdefault(protocol.name, {})[task.label] = protocol
            names.setdefault(protocol.name, set()).add(task.id)
    for name, tasks in cut.items():
        whole = next(iter(tasks.values())).with_(splitter="group").name
        suites, _ = catalog().survey_suites(living=False)
        boards = [s.id for s in suites.values() if s.protocol == whole and names[name] <= s.tasks.keys()]
        see = f"; see the board {boards[0]}" if boards else ""
        yield (
            f"the splits of {name} cut through the groups of {join_names([*tasks], 1)}: scores may be too high, and "
            f"intervals too sure; {whole} keeps groups whole{see}"
        )
