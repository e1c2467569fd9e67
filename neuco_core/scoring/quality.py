"""From the scores of the splits to one number: the quality score Q of NeuCo-Bench (eq. 1 of its paper)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

EPSILON = 0.02


class Summary(NamedTuple):
    mean: float
    std: float
    q: float


def summarize(per_split: Sequence[float | None], *, greater_is_better: bool = True) -> Summary:
    """Mean, population standard deviation and Q over the splits that have a score; NaN if none has.

    Where less is better, Q is that of the negated scores: the higher Q is always the better one. Sums are rounded
    once, so that the numbers follow from the splits to the last bit on every machine.
    """
    values = [value for value in per_split if value is not None and not math.isnan(value)]
    if not values:
        return Summary(math.nan, math.nan, math.nan)
    mean = math.fsum(values) / len(values)
    std = math.sqrt(math.fsum((value - mean) * (value - mean) for value in values) / len(values))
    return Summary(mean, std, 100 * EPSILON * (mean if greater_is_better else -mean) / (std + EPSILON))
