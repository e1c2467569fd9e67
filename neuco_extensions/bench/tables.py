"""Label files as NeuCo-Bench takes them: a file that is odd concerns its own task, and no other.

Our own reader refuses what cannot be meant. NeuCo-Bench computes with it, so a drop-in must as well: two classes by any
two numbers (it scales labels to 0 … 1 also for a classification), and labels that are all the same if it is told not
to scale them. What even NeuCo-Bench gets no score from is kept as a reason; its ids still count for standardising, and
its random numbers are still drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from neuco_core.errors import DataError
from neuco_core.tables import csv as rows
from neuco_core.tables.csv import shown
from neuco_extensions.bench.annotations import Annotation

if TYPE_CHECKING:
    from neuco_core.tables.labels import Labels


@dataclass(frozen=True)
class Table:
    """The rows of a file that have a label. Without ``labels``, ``problem`` says why they cannot be scored."""

    ids: tuple[str, ...]
    labels: Labels | None
    problem: str = ""
    note: str = ""


def read_table(item: Annotation, *, normalize: bool) -> Table:
    """A label file, strictly if possible; ``normalize`` tells whether labels are scaled to 0 … 1 afterwards."""
    from neuco_core.tables.labels import read_labels

    try:
        labels = read_labels(item.path, item.kind, task=item.task)
    except DataError as error:
        return _as_it_is(item, normalize, error)
    if labels.classes[:1] == ("1",):  # there, only scaling makes 0 and 1 of them
        what = "classes that are not counted from 0"
        return _as_it_is(item, normalize, DataError(what, where=item.path, got=shown(labels.classes)))
    return Table(labels.ids, labels)


def _as_it_is(item: Annotation, normalize: bool, refused: DataError) -> Table:
    import numpy as np

    ids, cells = _cells(item)
    numbers = [_number(cell) for cell in cells]
    # Two rows for one sample would both be trained on there; which of them is meant nobody can tell.
    if not ids or len(set(ids)) < len(ids) or not all(map(math.isfinite, numbers)):
        return Table(ids, None, str(refused))
    values = np.array(numbers)
    low, high = values.min(), values.max()
    note = ""
    if item.kind == "classification" and normalize and len(np.unique(values)) == 2:
        values, note = (values == high).astype(np.float64), f"classes {low:g} and {high:g} are read as 0 and 1"
    elif normalize or low != high or (item.kind == "classification" and low not in (0, 1)):
        return Table(ids, None, str(refused))
    return Table(ids, _labels(item, ids, values), note=note)


def _cells(item: Annotation) -> tuple[tuple[str, ...], list[str]]:
    """Ids and labels of the rows that have a label; none if this is not a table of ids and labels at all."""
    try:
        table = rows.read_rows(item.path)
        _, header = next(table)
        name, label = header.index("id"), header.index("label")
        kept = [(rows.clean_id(row[name]), row[label]) for _, row in table if row[label].strip()]
    except (DataError, ValueError):
        return (), []
    return tuple(name for name, _ in kept), [cell for _, cell in kept]


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _labels(item: Annotation, ids: Sequence[str], values: object) -> Labels:
    import numpy as np

    from neuco_core.tables.labels import Labels, content_hash

    array = np.asarray(values, np.float64)
    return Labels(item.task, item.kind, tuple(ids), array, content_hash(ids, array, None))
