"""What a method scores on a task, and how far from it counts as the same: a baseline that wrong labels do not meet.

A baseline is checked under its protocol's own seed, so a repeated run differs by rounding only: other processors and
versions of libraries. A hundredth of the metric's range is ample for that. The spread over seeds, which is many times
as large where test parts are small, has no place in it: with three times that spread, shuffled labels met the baseline.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor
from typing import TYPE_CHECKING

from neuco_core.contract.yardstick import yardstick
from neuco_core.plugins.catalog import load_metric
from neuco_core.protocol import Protocol

if TYPE_CHECKING:
    from neuco_core.tables.embeddings import Embeddings
    from neuco_core.tables.labels import Labels

SHUFFLES = 5
WIDEST = 10  # in steps: the last decimal that is worth showing, 0.001 for R² and F1
NO_HEADROOM = "shuffled labels reach it as well"


@dataclass(frozen=True)
class Measured:
    """``reach`` is what shuffled labels may score: their best, and once more the range of theirs.

    ``decimals`` are those of scores that are worth showing.
    """

    score: float
    tolerance: float
    reach: float
    headroom: bool
    decimals: int


def measure_baseline(embeddings: Embeddings, labels: Labels, protocol: Protocol, metric: str) -> Measured:
    """The score, and a tolerance of at most half the way to what shuffled labels reach."""
    from neuco_core.scoring.scorer import score

    reached = score(embeddings, labels, protocol, metric=metric).mean
    # An error has the label's unit: 0.01 may be nothing there, or everything.
    yard = yardstick(labels, load_metric(metric))
    blind = [score(embeddings, shuffled(labels, i), protocol, metric=metric).mean for i in range(SHUFFLES)]
    worst, *_, best = sorted(blind, reverse=yard.sign < 0)
    reach = best + (best - worst)
    step = 10.0**-yard.decimals
    room = yard.sign * (reached - reach) / 2
    headroom = room >= step
    steps = min(WIDEST, floor(room / step)) if headroom else WIDEST
    return Measured(reached, round(steps * step, max(yard.decimals, 0)), reach, headroom, yard.decimals)


def shuffled(labels: Labels, seed: int = 0) -> Labels:
    """The same labels, given to other samples."""
    import numpy as np

    order = np.random.default_rng(seed).permutation(len(labels.ids))
    return replace(labels, values=labels.values[order])
