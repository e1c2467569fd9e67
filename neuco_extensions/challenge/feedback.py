"""What a team is told of its score: always one number, in one format.

With the *ladder* (Blum and Hardt, arXiv:1502.04585) a submission gets the team's best published number again, unless it
beats the submission behind that number by more than one paired standard error, and by more than a ``step``.

Why the step: where two submissions differ in one id only, their difference is small and its paired standard error is,
too, so that a tiny gain may exceed it, above all with few splits, and tell that the id has a label. Why the ``floor``:
there is no lowest Q, so that from far below one could climb without end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from neuco_core.records.model import Record
from neuco_core.scoring.quality import EPSILON
from neuco_extensions.challenge.rules import Phase


class Rung(NamedTuple):
    """What the ladder stands on: the mean Q that was published, the submission behind it, and its records."""

    published: float
    submission: int
    records: Sequence[Record]


def mean_q(records: Sequence[Record]) -> float:
    return math.fsum(record.q or 0.0 for record in records) / len(records)


def feedback(
    phase: Phase, submission: int, records: Sequence[Record], best: Rung | None
) -> tuple[dict[str, float], int | None]:
    """What the team is told, and the submission whose number that is.

    ``best`` is the rung of the team before this submission; without a ladder it plays no part.
    """
    if phase.feedback == "none":
        return {}, None
    if phase.feedback == "ladder" and best is not None and not climbs(phase, records, best.records):
        return {"mean_q": best.published}, best.submission
    return {"mean_q": max(round(mean_q(records), phase.digits) + 0.0, phase.floor)}, submission


def climbs(phase: Phase, new: Sequence[Record], old: Sequence[Record]) -> bool:
    """Whether the mean Q is higher by more than the step and one standard error of the difference."""
    gain = max(mean_q(new), phase.floor) - max(mean_q(old), phase.floor)
    return gain > phase.step and gain > standard_error(new, old)


def standard_error(new: Iterable[Record], old: Iterable[Record]) -> float:
    """The standard error of the difference of the mean Q of two submissions, paired over splits and tasks.

    Splits of one task are shared, so Q of both is taken without each split in turn (the jackknife, since Q is no mean).
    Test parts overlap with other training parts: the variance is Nadeau and Bengio's, larger by 1 + K n_test / n_train.
    Without that, more splits of the same samples would make any difference look certain.
    """
    before: Mapping[str, Record] = {record.task: record for record in old}
    variances = []
    for record in new:
        ends = [_leave_one_out(one) for one in (record, before[record.task])]
        gap = ends[0] - ends[1]
        gap = gap[np.isfinite(gap)]
        count = len(gap)
        ratio = record.samples["test"] / record.samples["train"]
        variance = (count - 1) / count * float(((gap - gap.mean()) ** 2).sum()) if count > 1 else math.inf
        variances.append(variance * (1 + count * ratio))
    return math.sqrt(math.fsum(variances)) / len(variances)


def _leave_one_out(record: Record) -> np.ndarray:
    """Q without each of the splits in turn; NaN for a split that has no score."""
    values = np.array([math.nan if value is None else value for value in record.per_split])
    count = np.isfinite(values).sum() - 1
    if count < 1:
        return np.full(len(values), math.nan)
    center = float(np.nanmean(values))
    moved = values - center
    mean = center - moved / count
    square = np.nansum(moved**2) - moved**2
    std = np.sqrt(np.maximum(square / count - (moved / count) ** 2, 0.0))
    q: np.ndarray = 100 * EPSILON * mean / (std + EPSILON)
    return q if record.greater_is_better else -q
