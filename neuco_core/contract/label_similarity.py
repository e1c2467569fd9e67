"""The labels of all tasks of a dataset, compact and read once, to find the task that is most like another one.

Four bytes a label, at most ``MOST`` of one task, and no ids beside those of the dataset: a thousand tasks of 13,260
labels are 53 MB. So checking all tasks reads each file once more, and not once for every other task.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from neuco_core.errors import NeucoError
from neuco_core.plugins.catalog import Catalog
from neuco_core.plugins.loading import say
from neuco_core.specs import Task
from neuco_core.tables.labels import Labels

MOST = 20_000  # labels of one task that are kept; of more, the same ones of every task
FEWEST = 10  # samples that two tasks must share


class SampleBlock:
    """Tasks with labels of the very same samples: ``rows`` are the samples' numbers, ascending."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows
        self.tasks: list[str] = []
        self._columns: list[np.ndarray] = []

    def add(self, name: str, values: np.ndarray) -> None:
        self.tasks += [name] * values.shape[1]
        self._columns += [np.asarray(column, np.float32) for column in _standard(values).T]

    @cached_property
    def matrix(self) -> np.ndarray:
        """One row for each label column, of mean 0 and length 1."""
        matrix, self._columns = np.stack(self._columns), []
        return matrix

    @cached_property
    def names(self) -> np.ndarray:
        return np.array(self.tasks)

    def correlations(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The largest absolute correlation of each column here with any of the given ones, over common samples."""
        if np.array_equal(rows, self.rows):
            return _products(self.matrix, _standard(values).astype(np.float32))
        _, theirs, own = np.intersect1d(rows, self.rows, assume_unique=True, return_indices=True)
        if len(own) < FEWEST:
            return np.zeros(len(self.tasks))
        return _products(_standard(self.matrix[:, own].T).T, _standard(values[theirs]))


def _products(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The largest absolute product of each row with any column."""
    # Not by BLAS: its threads wait for each other longer than the sum takes, 7 ms instead of 0.3 for 1,000 × 500.
    return np.asarray(np.abs(np.einsum("ij,jk->ik", rows, columns)).max(axis=1))


def _standard(values: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and length 1; a constant one correlates with nothing, so it becomes 0."""
    centred = values - values.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    constant = np.ptp(values, axis=0) == 0
    return np.asarray(centred / np.where(constant, np.inf, length))


class LabelPool:
    """All tasks of a dataset whose labels can be read; ``unread`` are the others, with the reasons."""

    def __init__(self, catalog: Catalog, dataset: str) -> None:
        self.unread: dict[str, str] = {}
        self.tasks: set[str] = set()
        self._columns = 1  # the most of any task
        self._numbers: dict[str, int] = {}
        self._blocks: dict[bytes, SampleBlock] = {}
        for task, labels in read_labels(catalog, dataset, self.unread):
            rows, values = self._place(labels)
            self._columns = max(self._columns, values.shape[1])
            self._blocks.setdefault(rows.tobytes(), SampleBlock(rows)).add(task.id, values)
            self.tasks.add(task.id)

    def nearest(self, labels: Labels, but: str, most: int = 5) -> list[tuple[float, str]]:
        """The tasks with the largest absolute correlations with these labels, the nearest first; without one task."""
        rows, values = self._place(labels)
        largest: dict[str, float] = {}
        for block in self._blocks.values():
            # A task is there once for each column, and only the first few are looked at one by one.
            correlations = np.where(block.names == but, -1, block.correlations(rows, values))
            for place in np.argsort(-correlations)[: most * self._columns]:
                name = block.tasks[place]
                largest[name] = max(largest.get(name, -1.0), float(correlations[place]))
        largest.pop(but, None)  # versions of a task may share labels
        return sorted(((value, name) for name, value in largest.items()), reverse=True)[:most]

    def _place(self, labels: Labels) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the samples, ascending, and their labels as columns."""
        numbers = self._numbers
        rows = np.array([numbers.setdefault(sample, len(numbers)) for sample in labels.ids], dtype=np.int64)
        order = np.argsort(rows)
        if len(order) > MOST:  # by a hash of the number: whatever samples a task has, it keeps those that others keep
            order = np.sort(np.argsort(rows * 2654435761 % 2**32, kind="stable")[:MOST])
            order = order[np.argsort(rows[order])]
        values = np.asarray(labels.values, np.float64).reshape(len(rows), -1)
        return rows[order], values[order]


def read_labels(catalog: Catalog, dataset: str, unread: dict[str, str]) -> Iterator[tuple[Task, Labels]]:
    """The tasks of a dataset with their labels, one at a time; those that cannot be read go into ``unread``."""
    for task in catalog.all(Task).values():
        if task.dataset == dataset:
            try:
                labels = task.labels()
            except NeucoError as error:
                unread[task.id] = str(error)
            except (Exception, SystemExit) as error:  # a stranger's loader; that task's own checks say what is wrong
                unread[task.id] = say(error)
            else:
                yield task, labels


_pools: WeakKeyDictionary[Catalog, dict[str, LabelPool]] = WeakKeyDictionary()


def label_pool(catalog: Catalog, dataset: str) -> LabelPool:
    """The pool of a dataset, made once for all subjects that look at it."""
    pools = _pools.setdefault(catalog, {})
    if dataset not in pools:
        pools[dataset] = LabelPool(catalog, dataset)
    return pools[dataset]
