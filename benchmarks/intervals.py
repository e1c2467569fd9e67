"""Do the intervals hold on data that is really drawn? ``python benchmarks/intervals.py [--worlds 4] [--sets 40]``.

The tests simulate scores from the model behind the correction. Here no such model is assumed: data sets with four
labels of a kind are drawn from linear worlds, eight embeddings of them are probed by ridge regression on 40 random
splits with a tenth for testing, and it is counted how often the intervals hold the truth: of the mean score, as a
board has it, without what training adds to F1 and the metric's ends, and without any correction; of differences
between methods, of Q, and of the final rank. The truth is the average over twice as many other data sets of the
same world. It prints the table of benchmarks/printed/intervals.txt. With
``--scenes`` half of the variance of everything is common to the samples of a scene.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from neuco_core.boards.stats.ranking import Rule, rank
from neuco_core.boards.stats.uncertainty import TaskScores, assess, mean_interval
from neuco_core.scoring.f1_variance import of_f1
from neuco_core.scoring.quality import EPSILON

LATENT, SPLITS, TASKS = 12, 40, 4
SIZES = (8, 10, 12, 16, 20, 24, 28, 32)
NOISES = (0.3, 0.35, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7)
# Labels of a regression by their errors, and of a classification by the share of positives.
KINDS = {
    "R², normal errors": 0.0,
    "R², Student's t(3)": 0.0,
    "R², log-normal": 0.0,
    "R², mostly zero": 0.0,
    "F1, 1/2": 1 / 2,
    "F1, 1/3": 1 / 3,
    "F1, 1/10": 1 / 10,
}
SOME_KINDS = ("R², normal errors", "F1, 1/3")  # of samples in scenes
COLUMNS = ("score", "score, Nadeau-Bengio", "score, uncorrected", "difference", "Q", "rank")
METRICS = ("f1", "accuracy", "precision", "recall")


class World:
    """Latent variables, labels that depend on them, and noisy views of different size: the embeddings.

    With ``scenes``, half of the variance of everything that is drawn is common to the samples of a scene.
    """

    def __init__(self, seed: int, samples: int, scenes: int = 0, by_scene: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        self.samples, self.scenes, self.by_scene = samples, scenes, by_scene
        self.mixing = [self.rng.standard_normal((LATENT, size)) / np.sqrt(LATENT) for size in SIZES]
        self.noises: Sequence[float] = NOISES
        self.slopes = self.rng.standard_normal((LATENT, TASKS))
        self.spread = np.sqrt((self.slopes**2).sum(axis=0) + 1.5**2)
        self.scene = np.arange(samples) % scenes if scenes else np.arange(samples)

    def normal(self, columns: int) -> np.ndarray:
        own = self.rng.standard_normal((self.samples, columns))
        if not self.scenes:
            return own
        return np.sqrt(0.5) * (own + self.rng.standard_normal((self.scenes, columns))[self.scene])

    def order(self) -> tuple[np.ndarray, np.ndarray]:
        """A test and a training part."""
        if not self.by_scene:
            test, train = np.split(self.rng.permutation(self.samples), [self.test])
            return test, train
        tested = np.isin(self.scene, self.rng.permutation(self.scenes)[: -(-self.scenes // 10)])
        return np.flatnonzero(tested), np.flatnonzero(~tested)

    @property
    def test(self) -> int:
        """How many samples are tested."""
        if self.by_scene:
            return self.samples // self.scenes * -(-self.scenes // 10)
        return -(-self.samples // 10)

    @property
    def ratio(self) -> float:
        return self.test / (self.samples - self.test)

    def labels(self, hidden: np.ndarray, kind: str) -> np.ndarray:
        error = self.normal(TASKS)
        if "t(3)" in kind:
            error = self.rng.standard_t(3, error.shape)
        values = hidden @ self.slopes + 1.5 * error
        if "log-normal" in kind:
            return np.exp(values / self.spread)
        if "zero" in kind:  # of ten samples, nine
            return np.maximum(values / self.spread - 1.2816, 0.0)
        positive = KINDS[kind]
        return np.where(values > NormalDist().inv_cdf(1 - positive) * self.spread, 1.0, 0.0) if positive else values

    def scores(self, kinds: Collection[str] = KINDS) -> dict[str, list[TaskScores]]:
        """What one data set gives: by kind, each task with the scores of (methods, splits)."""
        regressions = sum(not KINDS[kind] for kind in kinds) * TASKS
        hidden = self.normal(LATENT)
        labels = np.hstack([self.labels(hidden, kind) for kind in kinds])
        views = [
            hidden @ mixing + noise * self.normal(mixing.shape[1])
            for mixing, noise in zip(self.mixing, self.noises, strict=True)
        ]
        orders = [self.order() for _ in range(SPLITS)]
        found = [
            [_probe(v[train], labels[train], v[test], labels[test], regressions) for v in views]
            for test, train in orders
        ]
        values = np.array(found).transpose(3, 2, 1, 0)  # labels, metrics, methods, splits
        own = {kind: values[place * TASKS :][:TASKS] for place, kind in enumerate(kinds)}
        return {kind: [self.task(kind, metrics) for metrics in tasks] for kind, tasks in own.items()}

    def task(self, kind: str, metrics: np.ndarray) -> TaskScores:
        whole = TaskScores(metrics[0], self.ratio, dataset="drawn", samples=self.samples)
        if not KINDS[kind]:
            return whole
        methods = [[_listed(values) for values in method] for method in metrics.transpose(1, 0, 2)]
        told = [of_f1(dict(zip(METRICS, method, strict=True)), self.ratio) for method in methods]
        factors, trials = np.array(told).T
        return replace(whole, factors=factors, trials=trials, lower=0.0, upper=1.0)


def _listed(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def _probe(x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray, regressions: int) -> np.ndarray:
    """R² of the first labels; of others F1 and what a record has beside it: (metrics, labels)."""
    centre = x - x.mean(axis=0)
    weights = np.linalg.solve(centre.T @ centre + np.eye(x.shape[1]), centre.T @ (y - y.mean(axis=0)))
    told = y.mean(axis=0) + (x_test - x.mean(axis=0)) @ weights
    varied = np.where(np.ptp(y_test, axis=0) > 0, ((y_test - y_test.mean(axis=0)) ** 2).sum(axis=0), np.nan)
    r2 = 1 - ((y_test - told) ** 2).sum(axis=0) / varied
    named, true = told > 0.5, y_test > 0.5
    hits, marks, positives = (named & true).sum(axis=0), named.sum(axis=0), true.sum(axis=0)
    whole = (positives > 0) & (positives < len(true))  # a test part of one class has no score
    f1 = np.where(whole, 2 * hits / (marks + positives), np.nan)
    rows = np.stack([f1, (named == true).mean(axis=0), hits / marks, hits / positives])
    rows[:, :regressions] = np.nan
    rows[0, :regressions] = r2[:regressions]
    return rows


def coverage(world: World, sets: int, kinds: Collection[str] = KINDS) -> dict[str, dict[str, float]]:
    """By kind and column, how often the truth is inside."""
    fresh = [world.scores(kinds) for _ in range(2 * sets)]
    boards = [world.scores(kinds) for _ in range(sets)]
    return {kind: _covered([b[kind] for b in boards], [b[kind] for b in fresh]) for kind in kinds}


def _covered(boards: list[list[TaskScores]], fresh: list[list[TaskScores]]) -> dict[str, float]:
    drawn = np.array([[task.splits for task in board] for board in fresh])
    truth = np.nanmean(drawn, axis=(0, 3))
    q = 100 * EPSILON * truth / (np.nanmean(np.nanstd(drawn, axis=3), axis=0) + EPSILON)
    final = rank(q).final
    inside: dict[str, list[np.ndarray]] = {name: [] for name in COLUMNS}
    for number, board in enumerate(boards):
        for task, target in zip(board, truth, strict=True):
            plain = replace(task, factors=1.0, lower=None, upper=None)
            factors = np.broadcast_to(task.factors, len(task.splits))
            smaller = np.minimum(factors[1:], factors[0])
            apart = replace(plain, splits=task.splits[1:] - task.splits[0], factors=smaller)
            for name, shown, true in (
                ("score", task, target),
                ("score, Nadeau-Bengio", plain, target),
                ("score, uncorrected", replace(plain, factors=0.0), target),
                ("difference", apart, target[1:] - target[0]),
            ):
                found = mean_interval(shown)
                inside[name].append((found.low <= true) & (true <= found.high))
        sure = assess(board, Rule(), seed=number)
        if sure is None:
            continue  # too few splits with both classes
        inside["Q"].append((sure.q.low <= q) & (q <= sure.q.high))
        inside["rank"].append((sure.rank.low <= final) & (final <= sure.rank.high))
    return {name: float(np.mean(values)) for name, values in inside.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=4)
    parser.add_argument("--sets", type=int, default=40, help="Boards from each world.")
    parser.add_argument("--samples", type=int, nargs="*", default=[100, 400, 1500])
    parser.add_argument("--scenes", type=int, nargs="*", default=[], help="Also 400 samples in so many scenes.")
    args = parser.parse_args()
    np.seterr(divide="ignore", invalid="ignore")
    warnings.simplefilter("ignore", RuntimeWarning)
    print("| samples | labels |", *(f"{name} |" for name in COLUMNS))
    print("|---" * (len(COLUMNS) + 2) + "|")
    # By the name of a setting, its samples, scenes and whether splits are by scene.
    settings = {str(samples): (samples, 0, False) for samples in args.samples}
    settings |= {f"400 in {scenes} scenes": (400, scenes, False) for scenes in args.scenes}
    settings |= {f"400 in {scenes} scenes, split by scene": (400, scenes, True) for scenes in args.scenes}
    for name, setting in settings.items():
        kinds = SOME_KINDS if setting[1] else KINDS
        worlds = [coverage(World(seed, *setting), args.sets, kinds) for seed in range(args.worlds)]
        for kind in kinds:
            shares = [f"{100 * np.mean([world[kind][column] for world in worlds]):.1f} % |" for column in COLUMNS]
            print(f"| {name} | {kind} |", *shares, flush=True)


if __name__ == "__main__":
    main()
