"""From the scores of the splits to one number: the quality score Q of NeuCo-Bench (eq. 1 of its paper)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

EPSILON = 0.02


class Summary(NamedTuple):
    mean: float
    std: float
    q: float


def summarize(per_split: Sequence[float | None], greater_is_better: bool = True) -> Summary | None:
    """Mean, population standard deviation and Q over the splits that have a score; None if none has.

    Where less is better, Q is that of the negated scores: the higher Q is always the better one. Sums are rounded
    once, so that the numbers follow from the splits to the last bit on every machine.
    """
    values = [value for value in per_split if value is not None and not math.isnan(value)]
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    std = math.sqrt(math.fsum((value - mean) * (value - mean) for value in values) / len(values))
    return Summary(mean, std, 100 * EPSILON * (mean if greater_is_better else -mean) / (std + EPSILON))


def middle(per_split: Sequence[float | None]) -> float:
    """The median over the splits that have a score: one wild split moves the mean, and not this."""
    values = [value for value in per_split if value is not None and not math.isnan(value)]
    return median(values) if values else math.nan


def split_count(per_split: Sequence[float | None]) -> str:
    """How many splits a mean is the mean of: ``40``, or ``30 of 40`` if ten have no score."""
    scored = sum(value is not None and not math.isnan(value) for value in per_split)
    return f"{scored}" if scored == len(per_split) else f"{scored} of {len(per_split)}"


WILD = 10.0  # distances between the quartiles


def ruled(per_split: Sequence[float | None]) -> str:
    """Whether a few splits rule the mean, in words: ``4 of 40 splits below -1000; median 0.61``; "" if they do not.

    Few is less than a quarter, far is ten times the distance of the quartiles from the median, and the mean is ruled if
    it is farther from the median than the quartiles are apart.
    """
    values = sorted(value for value in per_split if value is not None and not math.isnan(value))
    if len(values) < 8:
        return ""
    center, mean = median(values), math.fsum(values) / len(values)
    apart = max(values[3 * len(values) // 4] - values[len(values) // 4], 0.01 * abs(center), 1e-9)
    wild = [value for value in values if abs(value - center) > WILD * apart]
    if not wild or 4 * len(wild) >= len(values) or abs(mean - center) <= apart:
        return ""
    low = mean < center
    side = [value for value in wild if (value < center) == low]
    edge = max(side) if low else min(side)
    # A number of one digit between the edge and the center, close to the edge.
    size = 10.0 ** math.floor(math.log10(max(abs(edge), 1e-12)))
    bound = (math.ceil(edge / size) if low else math.floor(edge / size)) * size
    return f"{len(side)} of {len(values)} splits {'below' if low else 'above'} {bound:g}; median {center:.2f}"


# What the counts of odd splits mean for the mean, by their name in ``Score.splits``.
ODD = {"no_variance": "labels are all the same", "one_class": "labels are of one class"}


def odd_splits(splits: Mapping[str, int], count: int) -> Iterator[str]:
    """What is out of the ordinary about the splits, in words: which test parts have no score, or an odd one."""
    undefined = splits.get("undefined", 0)
    if repeated := splits.get("repeated", 0):
        yield f"{repeated} of {count} test parts are those of other splits: spread and intervals are too small"
    for name, reason in ODD.items():
        if flat := splits.get(name, 0):
            told = "have no score" if undefined >= flat else "are scored even so"
            undefined -= flat if undefined >= flat else 0
            yield f"{flat} of {count} test parts {told}: their {reason}"
    if undefined > 0:
        yield f"{undefined} of {count} splits have no score: the metric is not defined there"
