"""What makes scores too good or too bad: labels left in a file of embeddings, and values that say nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neuco_core.encoders import MAX_DIM
from neuco_core.text import counted, join_names

if TYPE_CHECKING:
    from neuco_core.tables.embeddings import Embeddings
    from neuco_core.tables.labels import Labels

NAMES = frozenset(
    ("label", "labels", "target", "targets", "class", "classes", "y", "truth", "ground_truth", "split", "fold")
)
ALIKE, SAME = 0.999, 0.9999  # |r| of a column and a label: told, and taken for the label itself
NAMED = 4  # columns
LEAST = 20  # samples; of fewer, columns are alike by chance


class Leak(NamedTuple):
    """A column that is probably a label; ``same`` if it is one beyond doubt."""

    column: str
    sentence: str
    same: bool = False


class LeakWarning(UserWarning):
    """The embeddings seem to hold the labels, or the splits of a protocol cut through groups."""


def columns_used(embeddings: Embeddings) -> str:
    """Which columns of a file are taken for values, in words: ``16 columns (0 to 15); not used: name``."""
    names = embeddings.columns
    if not names:
        return f"{counted(embeddings.dim, 'value')} per sample"
    listed = f"{names[0]} to {names[-1]}" if all(name.isdigit() for name in names) else join_names(names, NAMED)
    others = [name or "one without a name" for name in embeddings.ignored]
    unused = f"; not used: {join_names(others, NAMED)}" if others else ""
    return f"{counted(len(names), 'column')} ({listed}){unused}"


def replaced_values(embeddings: Embeddings) -> str:
    """How many values of a file count as 0, and where the first of them is; "" if none does."""
    count = sum(embeddings.replaced.values())
    where = f"; the first at {embeddings.first_replaced}" if embeddings.first_replaced else ""
    return f"{counted(count, 'value')} missing or not a number, counted as 0{where}" if count else ""


def oddities(embeddings: Embeddings) -> Iterator[str]:
    """What is wrong with embeddings, whatever the labels are."""
    if len(embeddings) > 1 and not np.ptp(embeddings.values, axis=0).any():
        yield "every sample has the same embedding: no score can be better than a guess"
    if embeddings.dim > MAX_DIM:
        yield f"{embeddings.dim} dimensions; NeuCo-Bench allows at most {MAX_DIM}"


def leaks(embeddings: Embeddings, labels: Labels) -> Iterator[Leak]:
    """What suggests that a score would be of the labels themselves, column by column."""
    named = {name.lower() for name in (*labels.columns, *labels.classes, labels.task)} | NAMES
    correlated = _correlated(embeddings, labels)
    for place in range(embeddings.dim):
        name = embeddings.columns[place] if embeddings.columns else str(place)
        r = correlated.get(place)
        if r is not None:
            what = f"column {name!r} is the label of {labels.task}, or nearly (|r| = {r:.4f})"
            yield Leak(name, f"{what}: its score says nothing", r >= SAME)
        elif embeddings.columns and name.strip().lower() in named and not name.isdigit():
            yield Leak(name, f"column {name!r} is taken for a feature, and by its name it may be a label")


def _correlated(embeddings: Embeddings, labels: Labels) -> dict[int, float]:
    """The columns that follow a label, or tell one class from the others, with their correlation."""
    row_of = {name: row for row, name in enumerate(embeddings.ids)}
    kept = [place for place, name in enumerate(labels.ids) if name in row_of]
    if len(kept) < LEAST:
        return {}
    y = labels.values.reshape(len(labels), -1)[kept].astype(np.float64)
    if labels.kind != "regression":
        y = np.concatenate([y, *((column[:, None] == np.unique(column)).astype(float) for column in y.T)], axis=1)
    y = _unit(y)
    rows = [row_of[labels.ids[place]] for place in kept]
    found: dict[int, float] = {}
    for start in range(0, embeddings.dim, 64):  # a few columns at a time: no second copy of a large array
        r = np.abs(_unit(embeddings.values[rows, start : start + 64].astype(np.float64)).T @ y).max(axis=1)
        found |= {start + int(place): float(r[place]) for place in np.flatnonzero(r >= ALIKE)}
    return found


def _unit(columns: np.ndarray) -> np.ndarray:
    """Centred columns of length 1; a constant one becomes 0."""
    columns = columns - columns.mean(axis=0)
    length = np.sqrt((columns**2).sum(axis=0))
    return np.asarray(columns / np.where(length > 0, length, 1.0))
