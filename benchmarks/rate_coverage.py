"""Do intervals of Bjøntegaard's difference hold? ``python benchmarks/rate_coverage.py [--sets 200]``.

As in ``benchmarks/intervals.py``, data sets are drawn from linear worlds, and embeddings of them are probed by ridge
regression on 40 random splits with a tenth for testing. Here the embeddings are two encoders, each with its first 4, 8,
16 and 32 dimensions: the points of two curves. It is counted how often the interval of the difference holds the average
of the difference over twice as many other data sets of the same world, and how often that of each area does.
"""

from __future__ import annotations

import argparse

import numpy as np
from intervals import LATENT, SPLITS, TASKS, World, _probe

from neuco_core.boards.stats.rank_intervals import percentiles
from neuco_core.boards.stats.uncertainty import LEVEL, TaskScores, replicate_board
from neuco_core.scoring.quality import EPSILON
from neuco_extensions.rate.curves import bjontegaard

DIMS = np.array([4, 8, 16, 32])
NOISES = (0.4, 0.5)  # of the two encoders
KIND = "R², normal errors"


class Encoders(World):
    """Two noisy views of the latent variables, cut to several sizes."""

    def __init__(self, seed: int, samples: int) -> None:
        super().__init__(seed, samples)
        self.mixing = [self.rng.standard_normal((LATENT, DIMS[-1])) / np.sqrt(LATENT) for _ in NOISES]

    def tasks(self) -> list[TaskScores]:
        """The scores of one data set: rows are the sizes of the first encoder, then those of the second."""
        hidden = self.normal(LATENT)
        labels = self.labels(hidden, KIND)
        whole = [
            hidden @ mixing + noise * self.normal(DIMS[-1]) for mixing, noise in zip(self.mixing, NOISES, strict=True)
        ]
        views = [view[:, :dim] for view in whole for dim in DIMS]
        found = []
        for _ in range(SPLITS):
            test, train = self.order()
            found.append([_probe(v[train], labels[train], v[test], labels[test], TASKS)[0] for v in views])
        values = np.array(found).transpose(2, 1, 0)  # tasks, points, splits
        return [TaskScores(scores, self.ratio, dataset="drawn", samples=self.samples) for scores in values]


def numbers(q: np.ndarray) -> np.ndarray:
    """The difference of the curves, and the area of each; Q is (…, points), means over the tasks."""
    size, half = 4.0 * DIMS, len(DIMS)
    gap = bjontegaard(size, q[..., :half], size, q[..., half:])
    assert gap is not None
    areas = [q[..., part].mean(axis=-1) for part in (slice(half), slice(half, None))]
    return np.stack([gap, *areas], axis=-1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200, help="data sets whose intervals are counted")
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    world, held, widths = Encoders(options.seed, options.samples), [], []
    drawn = np.array([[task.splits for task in world.tasks()] for _ in range(2 * options.sets)])
    mean, spread = drawn.mean(axis=(0, 3)), drawn.std(axis=3).mean(axis=0)
    truth = numbers((100 * EPSILON * mean / (spread + EPSILON)).mean(axis=0))
    for _ in range(options.sets):
        ends = percentiles(numbers(replicate_board(world.tasks()).mean(axis=1)), LEVEL)
        held.append((ends.low <= truth) & (truth <= ends.high))
        widths.append(ends.high - ends.low)
    share = np.mean(held, axis=0)
    print(f"{options.sets} data sets of {options.samples} samples, {SPLITS} splits, {TASKS} tasks, nominal {LEVEL:.0%}")
    for name, value, covered, width in zip(
        ("difference", "area of the first", "area of the second"), truth, share, np.mean(widths, axis=0), strict=True
    ):
        print(f"{name:20} truth {value:6.2f}  intervals hold it {covered:6.1%}  mean width {width:.2f}")


if __name__ == "__main__":
    main()
