"""Do the intervals hold on data that is really drawn? ``python benchmarks/intervals.py [--sets 100]``.

The tests simulate scores from the model behind the correction. Here no such model is assumed: data sets are drawn
from a linear world, five embeddings of them are probed by ridge regression on 40 random splits with a tenth for
testing, and it is counted how often the interval of the mean score holds the expected score of a fresh data set.
"""

from __future__ import annotations

import argparse

import numpy as np

from neuco_core.leaderboard.uncertainty import mean_interval

LATENT, SPLITS, SIZES, NOISES = 12, 40, (8, 12, 16, 24, 32), (0.3, 0.4, 0.5, 0.6, 0.7)


class World:
    """Latent variables, a label that depends on them, and noisy views of different size: the embeddings."""

    def __init__(self, seed: int, samples: int, heavy: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.samples, self.heavy = samples, heavy
        self.mixing = [self.rng.standard_normal((LATENT, size)) / np.sqrt(LATENT) for size in SIZES]
        self.slope = self.rng.standard_normal(LATENT)

    def draw(self) -> tuple[list[np.ndarray], np.ndarray]:
        hidden = self.rng.standard_normal((self.samples, LATENT))
        shape = (self.samples,)
        error = self.rng.standard_t(3, shape) if self.heavy else self.rng.standard_normal(shape)
        views = [
            hidden @ mixing + noise * self.rng.standard_normal((self.samples, mixing.shape[1]))
            for mixing, noise in zip(self.mixing, NOISES, strict=True)
        ]
        return views, hidden @ self.slope + 1.5 * error


def split_scores(views: list[np.ndarray], labels: np.ndarray, order: np.ndarray) -> list[float]:
    test, train = np.split(order, [-(-len(order) // 10)])
    return [_r2(view[train], labels[train], view[test], labels[test]) for view in views]


def _r2(x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray) -> float:
    centre = x - x.mean(axis=0)
    weights = np.linalg.solve(centre.T @ centre + np.eye(x.shape[1]), centre.T @ (y - y.mean()))
    missed = y_test - y.mean() - (x_test - x.mean(axis=0)) @ weights
    return float(1 - (missed**2).sum() / ((y_test - y_test.mean()) ** 2).sum())


def coverage(world: World, sets: int) -> dict[str, float]:
    drawn = (world.draw() for _ in range(4 * sets))
    truth = np.mean([split_scores(views, labels, np.arange(world.samples)) for views, labels in drawn], axis=0)
    test = -(-world.samples // 10)
    inside: dict[str, list[np.ndarray]] = {"corrected": [], "plain": [], "differences": []}
    for _ in range(sets):
        views, labels = world.draw()
        orders = [world.rng.permutation(world.samples) for _ in range(SPLITS)]
        scores = np.array([split_scores(views, labels, order) for order in orders]).T
        ratio = test / (world.samples - test)
        for name, values, target, factor in (
            ("corrected", scores, truth, ratio),
            ("plain", scores, truth, 0.0),
            ("differences", scores[1:] - scores[0], truth[1:] - truth[0], ratio),
        ):
            found = mean_interval(values, factor)
            inside[name].append((found.low <= target) & (target <= found.high))
    return {name: float(np.mean(values)) for name, values in inside.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=100)
    args = parser.parse_args()
    print("samples  errors   corrected  plain  differences (corrected)")
    for samples in (100, 400, 1500):
        for heavy in (False, True):
            found = coverage(World(0, samples, heavy), args.sets)
            shares = "     ".join(f"{found[name]:.3f}" for name in ("corrected", "plain", "differences"))
            print(f"{samples:7}  {'t(3)' if heavy else 'normal':7}  {shares}")


if __name__ == "__main__":
    main()
