"""How often do intervals of ranks hold the true rank? ``python benchmarks/rank_intervals.py [--boards 200]``.

Boards are simulated as in the tests, from one where noise decides to one where nothing is in doubt. ``length`` is the
mean number of ranks in an interval.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from neuco_core.leaderboard.ranking import Rule, rank
from neuco_core.leaderboard.uncertainty import assess
from tests.board.helpers import simulate
from tests.board.test_uncertainty import NOISE, expected_q

# Methods, tasks, splits, and the spread of true scores; the noise of a split is 0.05.
BOARDS = (
    (20, 6, 40, 0.003),
    (12, 6, 40, 0.01),
    (12, 11, 40, 0.02),
    (30, 11, 40, 0.02),
    (100, 11, 40, 0.05),
    (8, 4, 40, 0.05),
    (30, 11, 40, 0.1),
    (12, 11, 40, 0.5),
    (12, 11, 10, 0.03),
    (4, 4, 40, 0.02),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boards", type=int, default=200)
    count = parser.parse_args().boards
    print("methods  tasks  splits  spread  covered  length")
    for methods, tasks, splits, gap in BOARDS:
        rng = np.random.default_rng(7)
        inside, length = [], []
        for board in range(count):
            truth, scores = simulate(rng, methods, tasks, splits, gap, NOISE)
            sure = assess(scores, Rule(), seed=board, replicates=300)
            if sure is None:  # cannot be: every task has its splits
                raise RuntimeError("no uncertainty")
            final = rank(expected_q(truth, splits)).final
            inside.append((sure.rank.low <= final) & (final <= sure.rank.high))
            length.append(sure.rank.high - sure.rank.low + 1)
        covered = np.mean(inside)
        print(f"{methods:7}  {tasks:5}  {splits:6}  {gap:6}  {covered:7.3f}  {np.mean(length):6.1f}", flush=True)


if __name__ == "__main__":
    main()
