"""How alike two results are before either is known: the same method, dataset, architecture, a similar size or date.

All kernels are generated from the facts of a table, so another table may bring others; one is made of its scores: two
tasks are alike if they order methods alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neuco_extensions.predict.factor import factorise
from neuco_extensions.predict.table import Facts, Table

RANK, RIDGE = 12, 1.0  # of the factorisation that fills holes
WIDTH = 0.7  # of a number, in standard deviations: how far apart two are that still say much about each other


@dataclass(frozen=True)
class Kernel:
    """A product of two parts: one over methods, one over tasks."""

    name: str
    methods: np.ndarray
    tasks: np.ndarray

    def between(self, first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """For cells, each given by the places of its method and task."""
        rows = self.methods[np.ix_(first[0], second[0])]
        return np.asarray(rows * self.tasks[np.ix_(first[1], second[1])])

    def at(self, cells: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        return np.asarray(self.methods[cells[0], cells[0]] * self.tasks[cells[1], cells[1]])


def kernels(table: Table, scores_too: bool) -> list[Kernel]:
    """Each grouping of methods alone and on each grouping of tasks; numbers of methods alone; likeness if asked for."""
    everywhere = np.ones((len(table.tasks),) * 2)
    found = []
    of_methods = {"method": np.eye(len(table.methods)), **groupings(table.methods, table.method_facts)}
    for name, methods in of_methods.items():
        found.append(Kernel(name, methods, everywhere))
        for other, tasks in groupings(table.tasks, table.task_facts).items():
            found.append(Kernel(f"{name} × {other}", methods, tasks))
    if scores_too:
        found.append(Kernel("method × likeness", of_methods["method"], likeness(table)))
    for name, numbers in scales(table.methods, table.method_facts).items():
        apart = (numbers[:, None] - numbers) / WIDTH
        found.append(Kernel(name, np.exp(-0.5 * apart**2), everywhere))
    return found


def likeness(table: Table) -> np.ndarray:
    """How alike tasks order methods: correlations of the table with its holes filled by a factorisation."""
    count = np.maximum(table.known.sum(0), 1)
    rest = np.where(table.known, table.values - np.nansum(table.values, 0) / count, 0.0)
    spread = np.sqrt((rest**2).sum(0) / np.maximum(count - 1, 1))
    filled = factorise(rest / np.where(spread > 0, spread, 1.0), table.known, RANK, RIDGE)
    filled = filled - filled.mean(1, keepdims=True)  # what a method brings everywhere says nothing of tasks
    filled = filled - filled.mean(0)
    size = np.sqrt((filled**2).sum(0)) + 1e-9
    return np.asarray(filled.T @ filled / np.outer(size, size))


def groupings(names: Sequence[str], facts: Facts) -> dict[str, np.ndarray]:
    """For each fact that is text: 1 where two have the same. Who says nothing is like nobody but itself."""
    found = {}
    for key in _keys(names, facts, str):
        said = [facts.get(name, {}).get(key) or f"\0{name}" for name in names]
        places = np.unique(said, return_inverse=True)[1]
        if 1 < len(set(places)) < len(names):
            found[key] = (places[:, None] == places).astype(float)
    return found


def scales(names: Sequence[str], facts: Facts) -> dict[str, np.ndarray]:
    """For each fact that is a number: standardised, the mean where nothing is said."""
    found = {}
    for key in _keys(names, facts, float):
        values = np.array([float(facts.get(name, {}).get(key, np.nan)) for name in names])
        spread = np.nanstd(values)
        if spread > 0:
            found[key] = np.nan_to_num((values - np.nanmean(values)) / spread)
    return found


def _keys(names: Sequence[str], facts: Facts, kind: type) -> list[str]:
    return sorted({key for name in names for key, value in facts.get(name, {}).items() if isinstance(value, kind)})
