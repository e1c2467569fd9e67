"""Which boards can be ranked anew for a choice of tasks and methods, and from what."""

from __future__ import annotations

from typing import Any

from neuco_core.boards.model import Board


def rule_of(board: Board) -> dict[str, Any] | None:
    """What ``stats.ranking.rank`` needs to rank a choice of a board: the rule, and Q of each ranked method by task.

    ``None`` for a kind of board that is not ranked by it, and for one that it does not rank as the board does, such as
    a board that an older version has written.
    """
    if board.kind != "neuco" or not board.ranked:
        return None
    import numpy as np

    from neuco_core.boards.stats.ranking import Rule, rank

    cells = [
        [row.cells[task.id].values.get("q") if task.id in row.cells else None for task in board.tasks]
        for row in board.ranked
    ]
    counted = [t for t in range(len(board.tasks)) if all(own[t] is not None for own in cells)]
    q = np.array([[own[t] for own in cells] for t in counted], dtype=np.float64)
    said = board.options
    rule = Rule(str(said.get("weights", "all")), str(said.get("spread", "std")), float(said.get("ghost", 0.0)))
    baselines = np.array([row.baseline for row in board.ranked])
    if not counted or rank(q, rule, baselines).final.tolist() != [row.rank for row in board.ranked]:
        return None
    return {
        "rule": {"weights": rule.weights, "spread": rule.spread, "ghost": rule.ghost},
        "tasks": [board.tasks[t].id for t in counted],
        "methods": [row.method for row in board.ranked],
        "baselines": [int(row.baseline) for row in board.ranked],
        "q": q.tolist(),
        "cells": "rank",
    }
