"""What a margin around the tested blocks of ``olinda`` leaves of a score: of the position alone, and of two methods.

    python -m benchmarks.margin

A margin of N patches leaves those out of training that have a patch of a tested block within N rows and columns.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from neuco_core import load_method, load_task
from neuco_core.scoring.scorer import score

SIDE = 43
METHODS = ("position", "band_statistics", "mosaiks")
MARGINS = (0, 1, 2, 3, 4, 5, 6)


def groups_with_margin(groups: np.ndarray, margin: int) -> np.ndarray:
    """The groups as the splitter ``group`` takes them: the block of a patch, and behind it those within the margin."""
    blocks = np.array([name.partition("|")[0] for name in groups]).reshape(SIDE, SIDE)
    named = []
    for row, column in np.ndindex(SIDE, SIDE):
        window = blocks[max(row - margin, 0) : row + margin + 1, max(column - margin, 0) : column + margin + 1]
        own = blocks[row, column]
        named.append("|".join([own, *sorted(set(window.flat) - {own}, key=int)]))
    return np.array(named)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--task", default="olinda_elevation_mean")
    given = parser.parse_args()
    labels = load_task(given.task).labels()
    assert labels.groups is not None
    print(f"{given.task:24}" + "".join(f"{name:>17}" for name in METHODS))
    cases = {f"margin {margin}": (groups_with_margin(labels.groups, margin), "group") for margin in MARGINS}
    for name, (groups, splitter) in {"random splits": (labels.groups, "shuffle"), **cases}.items():
        rules = f"ridge+splitter={splitter}"
        found = [score(load_method(m).embeddings("olinda"), replace(labels, groups=groups), rules) for m in METHODS]
        train = found[0].samples["train"]
        print(f"{name:14} {train:5} seen" + "".join(f"{one.mean:9.3f} ({one.std:.2f})" for one in found), flush=True)


if __name__ == "__main__":
    main()
