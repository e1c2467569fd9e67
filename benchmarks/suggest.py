"""How much of a board must be run until its ranking is known? ``python benchmarks/suggest.py embedded mini``.

A board on which every method has a score on every task is run again, a few results at a time: in the order of
``neuco predict suggest``, and by chance. What has not been run is predicted, methods are ranked by their mean
rank over tasks, and Kendall's τ with the ranking of the whole board says how well they agree. The third curve is what
chance gives without predictions: by the mean rank over what has been run.

All begin with the same results, by chance: at least two of each method, and of each task. ``--figure
docs/howto/suggest.svg`` draws the curves; a line is the mean of all starts, and its band holds 80 % of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau, rankdata
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

sys.path.insert(0, str(Path(__file__).parents[1]))

from neuco_core.cli.leaderboard import one_board
from neuco_core.figures import blank, save
from neuco_extensions.predict.predictor import Predictor
from neuco_extensions.predict.read import from_board
from neuco_extensions.predict.suggest import pick
from neuco_extensions.predict.table import ScoreTable

AGREED = 0.9
STEPS = 16  # per board
WAYS = ("suggest", "chance", "chance, no predictions")
COLOURS = {"suggest": "#0b6e4f", "chance": "#b5651d", "chance, no predictions": "#888888"}


def complete(name: str) -> ScoreTable:
    """Methods that have a score on every task of the board."""
    table = from_board(one_board(name, {}))
    return table.part(np.flatnonzero(table.known.all(1)), np.arange(len(table.tasks)))


def standing(values: np.ndarray) -> np.ndarray:
    """Mean rank over tasks, of those that are there; the best is least."""
    ranks = np.stack([rankdata(-column, nan_policy="omit") for column in values.T], axis=1)
    share = ranks / np.maximum(np.isfinite(values).sum(0), 1)  # of few results, the third of three is the last
    return np.asarray(np.nanmean(share, axis=1))


def shown(table: ScoreTable, run: np.ndarray) -> ScoreTable:
    return replace(table, values=np.where(run, table.values, np.nan))


def begin(table: ScoreTable, random: np.random.Generator) -> np.ndarray:
    """At least two results of each method and of each task."""
    run = np.zeros(table.values.shape, bool)
    methods, tasks = len(table.methods), len(table.tasks)
    for place in range(max(methods, tasks)):
        run[place % methods, [place % tasks, (place + 1) % tasks]] = True
    return run[random.permutation(methods)][:, random.permutation(tasks)]


def by_suggestion(
    table: ScoreTable, run: np.ndarray, fitted: Predictor, number: int, _: np.random.Generator
) -> np.ndarray:
    run = run.copy()
    for one in pick(fitted, number):
        run[table.methods.index(one.method), table.tasks.index(one.task)] = True
    return run


def by_chance(table: ScoreTable, run: np.ndarray, _: Predictor, number: int, random: np.random.Generator) -> np.ndarray:
    run = run.copy()
    rows, columns = np.nonzero(~run)
    chosen = random.permutation(len(rows))[:number]
    run[rows[chosen], columns[chosen]] = True
    return run


Next = Callable[[ScoreTable, np.ndarray, Predictor, int, np.random.Generator], np.ndarray]


def replay(table: ScoreTable, grow: Next, seed: int) -> dict[str, list[tuple[int, float]]]:
    """Cells run, and τ with the whole board, with predictions and without."""
    random = np.random.default_rng(seed)
    run, whole = begin(table, random), standing(table.values)
    step = max(1, table.values.size // STEPS)
    found: dict[str, list[tuple[int, float]]] = {"predicted": [], "as run": []}
    while not run.all():
        now = shown(table, run)
        fitted = Predictor().fit(now)
        filled = np.where(run, table.values, fitted.scores)
        for name, values in (("predicted", filled), ("as run", now.values)):
            found[name].append((int(run.sum()), float(kendalltau(standing(values), whole).statistic)))
        run = grow(table, run, fitted, step, random)
    for points in found.values():
        points.append((run.size, 1.0))
    return found


def until(points: Sequence[tuple[int, float]]) -> int:
    """The number of cells from which on the rankings agree."""
    low = [at for at, (_, tau) in enumerate(points) if tau < AGREED]
    return points[low[-1] + 1][0] if low else points[0][0]


def measure(table: ScoreTable, starts: int) -> dict[str, list[list[tuple[int, float]]]]:
    found: dict[str, list[list[tuple[int, float]]]] = {way: [] for way in WAYS}
    for seed in range(starts):
        found["suggest"].append(replay(table, by_suggestion, seed)["predicted"])
        chance = replay(table, by_chance, seed)
        found["chance"].append(chance["predicted"])
        found["chance, no predictions"].append(chance["as run"])
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def report(name: str, table: ScoreTable, found: dict[str, list[list[tuple[int, float]]]]) -> None:
    size = table.values.size
    print(f"{name}: {len(table.methods)} methods × {len(table.tasks)} tasks, {size} cells")
    cells = {way: np.array([until(points) for points in runs]) for way, runs in found.items()}
    for way, counts in cells.items():
        low, middle, high = np.quantile(counts, (0.1, 0.5, 0.9))
        print(f"  {way:24s} τ ≥ {AGREED} from {middle:.0f} cells on ({low:.0f} to {high:.0f}), {middle / size:.0%}")
    more = cells["chance"] - cells["suggest"]
    draws = np.random.default_rng(0).choice(more, (2000, len(more))).mean(1)
    low, high = np.quantile(draws, (0.025, 0.975))
    print(f"  suggest needs {more.mean():.1f} cells fewer than chance (95 % interval {low:.1f} to {high:.1f})")


def draw(path: Path, boards: dict[str, tuple[ScoreTable, dict[str, list[list[tuple[int, float]]]]]]) -> None:
    figure, first = blank(4.6 * len(boards), 3.4)
    figure.delaxes(first)
    for place, (name, (table, found)) in enumerate(boards.items(), 1):
        axes = figure.add_subplot(1, len(boards), place)
        axes.spines[["top", "right"]].set_visible(False)
        for way, runs in found.items():
            cells = [100 * count / table.values.size for count, _ in runs[0]]
            taus = np.array([[tau for _, tau in points] for points in runs])
            low, high = np.quantile(taus, (0.1, 0.9), axis=0)
            axes.plot(cells, taus.mean(0), color=COLOURS[way], label=way)
            axes.fill_between(cells, low, high, color=COLOURS[way], alpha=0.12, linewidth=0)
        axes.axhline(AGREED, color="black", linewidth=0.6, linestyle=":")
        axes.set(xlabel="cells run, %", xlim=(0, 100), ylim=(0.3, 1.02))
        axes.set_title(f"{name}: {len(table.methods)} methods × {len(table.tasks)} tasks", fontsize=10)
        if place == 1:
            axes.set_ylabel("Kendall's τ with the whole board")
            axes.legend(frameon=False, loc="lower right", fontsize=9)
    save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("boards", nargs="+")
    parser.add_argument("--starts", type=int, default=30)
    parser.add_argument("--figure", type=Path)
    args = parser.parse_args()
    boards = {}
    with threadpool_limits(1):
        for name in args.boards:
            table = complete(name)
            boards[name] = table, measure(table, args.starts)
            report(name, *boards[name])
    if args.figure:
        draw(args.figure, boards)


if __name__ == "__main__":
    main()
