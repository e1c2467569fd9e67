"""Do the intervals hold on data that is really drawn? ``python benchmarks/intervals.py [--worlds 4] [--sets 40]``.

The tests simulate scores from the model behind the correction. Here no such model is assumed: data sets with four
labels are drawn from linear worlds, eight embeddings of them are probed by ridge regression on 40 random splits with a
tenth for testing, and it is counted how often the intervals hold the truth: of the mean score, with and without the
correction, of differences between methods, of Q, and of the final rank. The truth is the average over four times as
many other data sets of the same world.
"""

from __future__ import annotations

import argparse

import numpy as np

from neuco_core.boards.stats.ranking import Rule, rank
from neuco_core.boards.stats.uncertainty import TaskScores, assess, mean_interval
from neuco_core.scoring.quality import EPSILON

LATENT, SPLITS, TASKS = 12, 40, 4
SIZES = (8, 10, 12, 16, 20, 24, 28, 32)
NOISES = (0.3, 0.35, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7)


class World:
    """Latent variables, labels that depend on them, and noisy views of different size: the embeddings."""

    def __init__(self, seed: int, samples: int, heavy: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.samples, self.heavy = samples, heavy
        self.mixing = [self.rng.standard_normal((LATENT, size)) / np.sqrt(LATENT) for size in SIZES]
        self.slopes = self.rng.standard_normal((LATENT, TASKS))

    @property
    def test(self) -> int:
        return -(-self.samples // 10)

    def scores(self) -> np.ndarray:
        """What one data set gives: (tasks, methods, splits)."""
        hidden = self.rng.standard_normal((self.samples, LATENT))
        shape = (self.samples, TASKS)
        error = self.rng.standard_t(3, shape) if self.heavy else self.rng.standard_normal(shape)
        labels = hidden @ self.slopes + 1.5 * error
        views = [
            hidden @ mixing + noise * self.rng.standard_normal((self.samples, mixing.shape[1]))
            for mixing, noise in zip(self.mixing, NOISES, strict=True)
        ]
        orders = [np.split(self.rng.permutation(self.samples), [self.test]) for _ in range(SPLITS)]
        found = [[_r2(v[train], labels[train], v[test], labels[test]) for v in views] for test, train in orders]
        return np.array(found).transpose(2, 1, 0)


def _r2(x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray) -> np.ndarray:
    """R² of each label."""
    centre = x - x.mean(axis=0)
    weights = np.linalg.solve(centre.T @ centre + np.eye(x.shape[1]), centre.T @ (y - y.mean(axis=0)))
    missed = y_test - y.mean(axis=0) - (x_test - x.mean(axis=0)) @ weights
    r2: np.ndarray = 1 - (missed**2).sum(axis=0) / ((y_test - y_test.mean(axis=0)) ** 2).sum(axis=0)
    return r2


def coverage(world: World, sets: int) -> dict[str, float]:
    fresh = np.stack([world.scores() for _ in range(4 * sets)])
    truth = fresh.mean(axis=(0, 3))
    q = 100 * EPSILON * truth / (fresh.std(axis=3).mean(axis=0) + EPSILON)
    final = rank(q).final
    ratio = world.test / (world.samples - world.test)
    inside: dict[str, list[np.ndarray]] = {"corrected": [], "plain": [], "differences": [], "q": [], "ranks": []}
    for board in range(sets):
        scores = world.scores()
        for values, target in zip(scores, truth, strict=True):
            for name, shown, true, factor in (
                ("corrected", values, target, ratio),
                ("plain", values, target, 0.0),
                ("differences", values[1:] - values[0], target[1:] - target[0], ratio),
            ):
                found = mean_interval(shown, factor)
                inside[name].append((found.low <= true) & (true <= found.high))
        sure = assess(
            [TaskScores(values, ratio, dataset="drawn", samples=world.samples) for values in scores], Rule(), seed=board
        )
        if sure is None:  # cannot be: every task has its splits
            raise RuntimeError("no uncertainty")
        inside["q"].append((sure.q.low <= q) & (q <= sure.q.high))
        inside["ranks"].append((sure.rank.low <= final) & (final <= sure.rank.high))
    return {name: float(np.mean(values)) for name, values in inside.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=4)
    parser.add_argument("--sets", type=int, default=40, help="Boards from each world.")
    args = parser.parse_args()
    names = ("corrected", "plain", "differences", "q", "ranks")
    print("samples  errors  ", *(f"{name:>12}" for name in names))
    for samples in (100, 400, 1500):
        for heavy in (False, True):
            found = [coverage(World(seed, samples, heavy), args.sets) for seed in range(args.worlds)]
            shares = (f"{np.mean([world[name] for world in found]):12.3f}" for name in names)
            print(f"{samples:7}  {'t(3)' if heavy else 'normal':8}", *shares, flush=True)


if __name__ == "__main__":
    main()
