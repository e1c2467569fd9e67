"""What the ranking hangs on: which order changes if one method or one task is left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuco_core.boards.stats.ranking import Rule, positions, rank


@dataclass(frozen=True)
class Flip:
    """Leaving out number ``left_out`` moves methods: number → (rank before among the rest, rank after)."""

    left_out: int
    moves: dict[int, tuple[int, int]]


def without_each_method(q: np.ndarray, rule: Rule, baselines: np.ndarray) -> list[Flip]:
    """The methods whose absence reorders others. ``q`` is (tasks, methods)."""
    full = rank(q, rule, baselines).final
    flips = []
    for out in range(q.shape[1]):
        rest = np.delete(np.arange(q.shape[1]), out)
        if rest.size:
            after = rank(q[:, rest], rule, baselines[rest]).final
            # Ranked anew among the rest: that those below move up by one is no change of order.
            flips.append(_flip(out, rest, positions(full[rest]), after))
    return [flip for flip in flips if flip.moves]


def without_each_task(q: np.ndarray, rule: Rule, baselines: np.ndarray) -> list[Flip]:
    """The tasks whose absence reorders methods."""
    if q.shape[0] < 2:
        return []
    full = rank(q, rule, baselines).final
    everyone = np.arange(q.shape[1])
    outs = range(q.shape[0])
    flips = [_flip(out, everyone, full, rank(np.delete(q, out, axis=0), rule, baselines).final) for out in outs]
    return [flip for flip in flips if flip.moves]


def _flip(out: int, rest: np.ndarray, before: np.ndarray, after: np.ndarray) -> Flip:
    moved = np.flatnonzero(before != after)
    return Flip(out, {int(rest[i]): (int(before[i]), int(after[i])) for i in moved})
