"""How robust a ranking is: which order changes if one method or one task is left out."""

from __future__ import annotations

import numpy as np

from neuco_core.boards.stats.ranking import Rule, positions, rank

# By number: the one that is left out → the methods that move → their ranks before and after.
Moves = dict[int, dict[int, tuple[int, int]]]


def without_each_method(q: np.ndarray, rule: Rule, baselines: np.ndarray) -> Moves:
    """The methods whose absence reorders others. ``q`` is (tasks, methods)."""
    full = rank(q, rule, baselines).final
    moves = {}
    for out in range(q.shape[1] if q.shape[1] > 1 else 0):
        rest = np.delete(np.arange(q.shape[1]), out)
        after = rank(q[:, rest], rule, baselines[rest]).final
        # Ranked anew among the rest: that those below move up by one is no change of order.
        moves[out] = _moved(rest, positions(full[rest]), after)
    return {out: moved for out, moved in moves.items() if moved}


def without_each_task(q: np.ndarray, rule: Rule, baselines: np.ndarray) -> Moves:
    """The tasks whose absence reorders methods."""
    full = rank(q, rule, baselines).final
    outs = range(q.shape[0] if q.shape[0] > 1 else 0)
    after = {out: rank(np.delete(q, out, axis=0), rule, baselines).final for out in outs}
    moves = {out: _moved(np.arange(q.shape[1]), full, final) for out, final in after.items()}
    return {out: moved for out, moved in moves.items() if moved}


def furthest(final: np.ndarray, moves: Moves) -> np.ndarray:
    """The ranks with which each method moves furthest from its own; of two as far, the worse."""
    shift = np.zeros_like(final)
    for moved in moves.values():
        for m, (before, after) in moved.items():
            shift[m] = max(shift[m], after - before, key=lambda places: (abs(places), places))
    moved_to: np.ndarray = final + shift
    return moved_to


def _moved(methods: np.ndarray, before: np.ndarray, after: np.ndarray) -> dict[int, tuple[int, int]]:
    return {int(methods[i]): (int(before[i]), int(after[i])) for i in np.flatnonzero(before != after)}
