"""How often do intervals of ranks hold the true rank? ``python benchmarks/rank_intervals.py [--boards 200]``.

Boards are simulated as in the tests, from one where noise decides to one where nothing is in doubt; and, against the
assumption that true Q is normal, with two methods far below the others, or with methods in two clusters. ``length`` is
the mean number of ranks in an interval.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from neuco_core.boards.stats.ranking import Rule, rank
from neuco_core.boards.stats.uncertainty import assess
from tests.boards.helpers import simulate
from tests.boards.test_uncertainty import NOISE, expected_q

# Methods, tasks, splits, and the spread of true scores; the noise of a split is 0.05.
BOARDS = (
    (20, 6, 40, 0.003, "normal"),
    (12, 6, 40, 0.01, "normal"),
    (12, 11, 40, 0.02, "normal"),
    (30, 11, 40, 0.02, "normal"),
    (100, 11, 40, 0.05, "normal"),
    (8, 4, 40, 0.05, "normal"),
    (30, 11, 40, 0.1, "normal"),
    (12, 11, 40, 0.5, "normal"),
    (12, 11, 10, 0.03, "normal"),
    (4, 4, 40, 0.02, "normal"),
    (12, 11, 40, 0.02, "outliers"),
    (30, 8, 40, 0.01, "outliers"),
    (12, 11, 40, 0.02, "clusters"),
    (30, 8, 40, 0.01, "clusters"),
)


def lifts(shape: str, methods: int) -> np.ndarray:
    """What is added to the true scores of each method, in units of their spread."""
    found = np.zeros(methods)
    if shape == "outliers":
        found[:2] = -12, -6
    elif shape == "clusters":
        found[::2] = 3
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boards", type=int, default=200)
    count = parser.parse_args().boards
    print("methods  tasks  splits  spread  shape     covered  length")
    for methods, tasks, splits, gap, shape in BOARDS:
        rng, lift = np.random.default_rng(7), gap * lifts(shape, methods)
        inside, length = [], []
        for board in range(count):
            truth, scores = simulate(rng, methods, tasks, splits, gap, NOISE)
            scores = [replace(task, splits=task.splits + lift[:, None]) for task in scores]
            sure = assess(scores, Rule(), seed=board, replicates=300)
            if sure is None:  # cannot be: every task has its splits
                raise RuntimeError("no uncertainty")
            final = rank(expected_q(truth + lift, splits)).final
            inside.append((sure.rank.low <= final) & (final <= sure.rank.high))
            length.append(sure.rank.high - sure.rank.low + 1)
        board_of = f"{methods:7}  {tasks:5}  {splits:6}  {gap:6}  {shape:8}"
        print(f"{board_of}  {np.mean(inside):7.3f}  {np.mean(length):6.1f}", flush=True)


if __name__ == "__main__":
    main()
