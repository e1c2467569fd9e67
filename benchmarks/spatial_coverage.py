"""How often 95 % intervals of scores hold where samples near each other are alike, for splits at random and by place.

    python -m benchmarks.spatial_coverage

Every world is a new square of 100 × 100 with Gaussian random fields of one range, where their correlation has fallen to
0.05. Half of the variance of the labels is told by the embeddings, whose columns are fields too, the other half by a
field that nothing tells. An interval may be asked to hold two things: the mean of such scores over all worlds, and the
R² of a linear model of all samples on fresh land of the same kind, also as a mean over worlds.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from neuco_core.boards.stats.uncertainty import TaskScores, mean_interval
from neuco_core.scoring.scorer import score
from neuco_core.tables.embeddings import make_embeddings
from neuco_core.tables.labels import Labels

SIDE, SAMPLES, DIM = 100.0, 600, 6
RANGES = (0.0, 5.0, 15.0, 30.0)
RULES = {
    "random": "ridge",
    "blocks of 20": "ridge+size=20,splitter=blocks",
    "blocks of 20, margin 10": "ridge+margin=10,size=20,splitter=blocks",
    "buffer of 10, 3 % tested": "ridge+r=10,splitter=buffer,test_size=0.03",
}


def fields(places: np.ndarray, length: float, count: int, random: np.random.RandomState) -> np.ndarray:
    """Gaussian fields with the covariance exp(−3 d² / range²), as sums of waves; of range 0, noise."""
    if not length:
        return random.standard_normal((len(places), count))
    made = []
    for _ in range(count):
        waves = random.standard_normal((300, 2)) * np.sqrt(6) / length
        made.append(np.cos(places @ waves.T + random.uniform(0, 2 * np.pi, 300)).sum(axis=1) / np.sqrt(150))
    return np.column_stack(made)


def world(
    length: float, random: np.random.RandomState, shift: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places, embeddings and labels; half of the variance of the labels is that of the embeddings."""
    places = random.uniform(0, SIDE, (SAMPLES, 2)) + shift
    x = fields(places, length, DIM, random)
    y = x.sum(axis=1) / np.sqrt(DIM) + fields(places, length, 1, random)[:, 0]
    return places, x, y


def measure(length: float, worlds: int, rules: Sequence[str], seed: int) -> list[tuple[float, ...]]:
    """For each rule: the mean score, that on fresh land, how often the interval holds either, and its mean width."""
    random = np.random.RandomState(seed)
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in rules}
    truth = []
    ids = tuple(f"s{i:04d}" for i in range(SAMPLES))
    for _ in range(worlds):
        places, x, y = world(length, random)
        _, fresh_x, fresh_y = world(length, random)
        design = np.column_stack([np.ones(SAMPLES), x])
        weights = np.linalg.lstsq(design, y, rcond=None)[0]
        residual = fresh_y - np.column_stack([np.ones(SAMPLES), fresh_x]) @ weights
        truth.append(1 - (residual**2).mean() / fresh_y.var())
        table = dict(zip(("x", "y"), places.T.tolist(), strict=True))
        labels = Labels("made", "regression", ids, y, "0" * 64, places=table)
        for name in rules:
            one = score(make_embeddings(ids, x), labels, RULES[name], threads=1)
            ratio = one.samples["test"] / one.samples["train"]
            interval = mean_interval(TaskScores(np.array([one.per_split]), test_to_train=ratio, samples=SAMPLES))
            found[name].append((one.mean, float(interval.low[0]), float(interval.high[0])))
    right = float(np.mean(truth))
    rows = []
    for name in rules:
        mean, low, high = np.array(found[name]).T
        held = [float(((low <= aim) & (aim <= high)).mean()) for aim in (mean.mean(), right)]
        rows.append((float(mean.mean()), right, *held, float((high - low).mean())))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--ranges", type=float, nargs="+", default=RANGES)
    parser.add_argument("--seed", type=int, default=31)
    given = parser.parse_args()
    print(
        "| range | splits | mean R² | R² on fresh land | held: mean | held: fresh land | width |\n" + "|---" * 7 + "|"
    )
    for length in given.ranges:
        for name, row in zip(RULES, measure(length, given.worlds, [*RULES], given.seed), strict=True):
            mean, right, of_mean, of_fresh, width = row
            held = f"{of_mean:.0%} | {of_fresh:.0%}".replace("%", " %")
            print(f"| {length:g} | {name} | {mean:.2f} | {right:.2f} | {held} | {width:.2f} |", flush=True)


if __name__ == "__main__":
    main()
