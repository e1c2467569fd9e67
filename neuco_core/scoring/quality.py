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


def summarize(per_split: Sequence[float], *, greater_is_better: bool = True) -> Summary:
    """Mean, population standard deviation and Q over the splits that have a score; NaN if none has.

    Where less is better, Q is that of the negated scores: the higher Q is always the better one.
    """
    import numpy as np

    values = np.array([value for value in per_split if not math.isnan(value)], dtype=np.float64)
    if not values.size:
        return Summary(math.nan, math.nan, math.nan)
    mean, std = float(values.mean()), float(values.std())
    sign = 1.0 if greater_is_better else -1.0
    return Summary(mean, std, 100 * EPSILON * sign * mean / (std + EPSILON))
