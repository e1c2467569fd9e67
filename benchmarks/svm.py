"""The grid of the svm probe: how often its edges win, and what it gets beside its first version and ridge.

The first version searched degrees 2 and 3 and costs up to 1, and most searches ended at that edge.
"""

from __future__ import annotations

import argparse
from collections import Counter
from unittest.mock import patch

from neuco_core import load_method, load_task
from neuco_core.scoring.probes import svm
from neuco_core.scoring.scorer import Score, score

TASKS = (
    *("mini_landcover_agriculture", "mini_landcover_forest", "mini_crops", "mini_clouds", "mini_biomass_mean"),
    *("mini_heatisland_std", "olinda_elevation_mean", "olinda_elevation_std", "olinda_sea_level"),
)


def first_version(embeddings: object, task: str, k: int) -> Score:
    with patch.multiple(svm, DEGREES=(2, 3), COSTS=(0.001, 0.01, 0.1, 1.0), PATIENCE=9):
        return score(embeddings, load_task(task), f"svm+k={k}")  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default="band_statistics")
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--k", type=int, default=5)
    given = parser.parse_args()
    edges, searches = Counter[str](), 0
    print(f"{'task':28} {'v1':>7} {'svm':>7} {'ridge':>7}  cost × degree: searches")
    for task in given.tasks.split(","):
        embeddings = load_method(given.method).embeddings(load_task(task).dataset)
        before = first_version(embeddings, task, given.k)
        now = score(embeddings, load_task(task), f"svm+k={given.k}")
        ridge = score(embeddings, load_task(task), f"ridge+k={given.k}")
        chosen = Counter(zip(now.settings["C"], now.settings["degree"], strict=True))
        for name, values, ends in (("C", svm.COSTS, (0, -1)), ("degree", svm.DEGREES, (-1,))):
            edges[name] += sum(value in [values[end] for end in ends] for value in now.settings[name])
        edges["the old cost of 1"] += sum(cost >= 1 for cost in before.settings["C"])
        searches += given.k
        told = ", ".join(f"{cost:g} × {degree:g}: {count}" for (cost, degree), count in sorted(chosen.items()))
        print(f"{task:28} {before.mean:7.3f} {now.mean:7.3f} {ridge.mean:7.3f}  {told}", flush=True)
    print(f"of {searches} searches ended at an edge: " + ", ".join(f"{name} {n}" for name, n in edges.items()))


if __name__ == "__main__":
    main()
