"""The labels of all tasks of a dataset, compact and read once, to find the task that is most like another one.

Four bytes a label, at most ``MOST`` of one task, and no ids beside those of the dataset: a thousand tasks of 13,260
labels are 53 MB. So checking all tasks reads each file once more, and not once for every other task.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np

from neuco_core.errors import NeucoError
from neuco_core.plugins.catalog import Catalog
from neuco_core.plugins.loading import say
from neuco_core.specs import Task
from neuco_core.tables.labels import Labels

MOST = 20_000  # labels of one task that are kept; of more, the same ones of every task
FEWEST = 10  # samples that two tasks must share


class LabelPool:
    """All tasks of a dataset whose labels can be read; ``unread`` are the others, with the reasons."""

    def __init__(self, catalog: Catalog, dataset: str) -> None:
        self.unread: dict[str, str] = {}
        self._numbers: dict[str, int] = {}  # of the samples
        self._tasks = {task.id: self._columns(labels) for task, labels in read_labels(catalog, dataset, self.unread)}

    def nearest(self, labels: Labels, but: str) -> list[tuple[float, str]]:
        """All tasks but one, by the largest absolute correlation of their labels with these, the nearest first."""
        rows, values = self._columns(labels)
        alike = []
        for name, (others, their_values) in self._tasks.items():
            if name == but:  # versions of a task may share labels
                continue
            if np.array_equal(rows, others):
                alike.append((_correlation(values, their_values), name))
            else:
                _, ours, theirs = np.intersect1d(rows, others, assume_unique=True, return_indices=True)
                alike.append((_correlation(values[ours], their_values[theirs]), name))
        return sorted(alike, reverse=True)

    def _columns(self, labels: Labels) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the samples, ascending, and their labels as columns."""
        numbers = self._numbers
        rows = np.array([numbers.setdefault(sample, len(numbers)) for sample in labels.ids], dtype=np.int64)
        order = np.argsort(rows)
        if len(order) > MOST:  # by a hash of the number: whatever samples a task has, it keeps those that others keep
            order = np.sort(np.argsort(rows * 2654435761 % 2**32, kind="stable")[:MOST])
            order = order[np.argsort(rows[order])]
        values = _standard(labels.values.reshape(len(rows), -1))
        return rows[order], values[order].astype(np.float32)


def _correlation(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest absolute one of any two columns, over samples that both have."""
    if len(ours) < FEWEST:
        return 0.0
    return float(np.abs(_standard(ours).T @ _standard(theirs)).max())


def _standard(values: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and length 1; a constant one correlates with nothing, so it becomes 0."""
    values = values.astype(np.float64)
    centred = values - values.mean(axis=0)
    constant = np.ptp(values, axis=0) == 0
    return np.asarray(centred / np.where(constant, np.inf, np.linalg.norm(centred, axis=0)))


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
