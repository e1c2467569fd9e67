"""How alike two results are before either is known: the same method, dataset, architecture, a similar size or date.

All kernels are generated from the facts of a table, so another table may bring others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neuco_core.capabilities.table import Facts, Table

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


def kernels(table: Table) -> list[Kernel]:
    """Each grouping of methods alone and on each grouping of tasks; numbers of methods alone."""
    everywhere = np.ones((len(table.tasks),) * 2)
    found = []
    of_methods = {"method": np.eye(len(table.methods)), **groupings(table.methods, table.method_facts)}
    for name, methods in of_methods.items():
        found.append(Kernel(name, methods, everywhere))
        for other, tasks in groupings(table.tasks, table.task_facts).items():
            found.append(Kernel(f"{name} × {other}", methods, tasks))
    for name, numbers in scales(table.methods, table.method_facts).items():
        apart = (numbers[:, None] - numbers) / WIDTH
        found.append(Kernel(name, np.exp(-0.5 * apart**2), everywhere))
    return found


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
