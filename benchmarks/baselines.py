"""Measure the baselines that embedded tasks declare: `python benchmarks/baselines.py [TASK…] [--seeds 10]`.

The expected score is that of the protocol's own seed. The tolerance is three times the spread over seeds, at least
0.01: a run with another seed, another processor or another version of a library should stay inside, a wrong label
file or a changed method should not.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence

from neuco_core import Task, list_tasks, load_method, load_protocol, score

METHOD = "averaging"
PROTOCOL = "ridge"
LEAST = 0.01


def measure(task: Task, seeds: Sequence[int]) -> tuple[float, float]:
    """The mean score with the first seed, and the spread of the means over all of them."""
    embeddings = load_method(METHOD).embeddings(task.dataset)
    protocol = load_protocol(PROTOCOL)
    means = [score(embeddings, task, protocol.with_(seed=seed)).mean for seed in seeds]
    return means[0], statistics.stdev(means)


def tolerance(spread: float) -> float:
    return max(LEAST, math.ceil(3000 * spread) / 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", default=["*"])
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    first = load_protocol(PROTOCOL).seed
    print(f"{METHOD}, {PROTOCOL}, seeds {first} to {first + options.seeds - 1}")
    print(f"{'task':28} {'score':>8} {'spread':>7} {'tolerance':>9}  declared")
    for task in list_tasks(*options.tasks, tag="embedded"):
        value, spread = measure(task, range(first, first + options.seeds))
        declared = f"{task.baseline.score:.3f} ± {task.baseline.tolerance:.3f}" if task.baseline else "none"
        print(f"{task.id:28} {value:8.3f} {spread:7.4f} {tolerance(spread):9.3f}  {declared}", flush=True)


if __name__ == "__main__":
    main()
