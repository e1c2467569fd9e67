"""The difference of two methods on a task, paired over its splits; the page of a board computes it by this code."""

from __future__ import annotations

import numpy as np


def paired_difference(
    a: np.ndarray, b: np.ndarray, test_to_train: float, quantiles: np.ndarray
) -> tuple[float, float, float]:
    """A − B over the splits where both have a score, and the ends of its interval; NaN of fewer than two splits.

    The variance is Nadeau and Bengio's, s² (1/K + n_test/n_train). ``quantiles`` are those of Student's t by degrees of
    freedom, from 0.
    """
    gaps = a - b
    gaps = gaps[np.isfinite(gaps)]
    count = gaps.shape[0]
    if count < 2:
        return np.nan, np.nan, np.nan
    mean = gaps.mean()
    reach = quantiles[count - 1] * gaps.std(ddof=1) * np.sqrt(1 / count + test_to_train)
    return mean, mean - reach, mean + reach
