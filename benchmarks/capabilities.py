"""Is the predictor as good on results by which nothing of it was chosen? ``python benchmarks/capabilities.py``.

Its kernels and constants were chosen while looking at the results of the paper's table that are left when methods and
tasks with fewer than five are taken away, and at Table 4 and GEO-Bench-2. By the others of the paper's table nothing
was chosen: here they are predicted, ten at a time, with all others known. They are harder, since their methods or tasks
have three or four results. A file may be named instead of fetching the table.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from neuco_core.env import available_cores
from neuco_extensions.predict.command import open_table
from neuco_extensions.predict.evaluate import cross_validate, difference, side_by_side

LEAST = 3
MODELS = ("mean", "additive", "factors", "l2-5", "neuco")


def main() -> None:
    source = sys.argv[1] if len(sys.argv) > 1 else "paper"
    table, seen = open_table(source, LEAST), open_table(source, 5)
    methods, tasks = np.isin(table.methods, seen.methods), np.isin(table.tasks, seen.tasks)
    found = list(
        side_by_side({name: partial(cross_validate, table, name) for name in MODELS}, available_cores()).values()
    )
    new = [one.part(~(methods[one.methods] & tasks[one.tasks])) for one in found]
    print(f"{len(new[0].cells)} of {len(found[0].cells)} results by which nothing was chosen; honest protocol")
    for one in new:
        more = (
            "" if one is new[-1] else "{:.4f} more than neuco ({:.4f} to {:.4f})".format(*difference([one], [new[-1]]))
        )
        covered = "" if one.coverage is None else f"{one.coverage:.1%} in 95 % intervals"
        print(f"{one.name:10s} MSE {one.mse:.4f}  Spearman {one.order or 0:.3f}  {more}{covered}")


if __name__ == "__main__":
    main()
