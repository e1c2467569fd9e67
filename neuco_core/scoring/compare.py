"""Do two methods differ on a task? A paired test over the same splits that allows for their overlap.

Two random splits of one sample share most of their training data, so their scores are not independent and the
ordinary paired t-test finds differences that are not there. Nadeau and Bengio (2003, "Inference for the
generalization error") correct the variance of the mean difference from s²/K to (1/K + n_test/n_train)·s². Of F1, where
training matters more, n_test/n_train is multiplied by ``f1_variance.variance_factor``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from neuco_core.errors import ScoreError
from neuco_core.files import jsonable
from neuco_core.scoring.f1_variance import of_f1
from neuco_core.scoring.scorer import Score
from neuco_core.tables.embeddings import Embeddings


@dataclass(frozen=True)
class Comparison:
    """The paired difference A − B over the splits; ``low`` and ``high`` bound it with ``confidence``.

    Numbers that are not defined (fewer than two splits) are NaN. ``left_out`` counts splits where a score is NaN.
    """

    difference: float
    std: float
    t: float
    p: float
    low: float
    high: float
    confidence: float
    splits: int
    left_out: int
    a_higher: int
    b_higher: int

    def to_json(self) -> dict[str, Any]:
        return {key: value if math.isfinite(value) else None for key, value in asdict(self).items()}


def corrected_t_test(
    a: Sequence[float], b: Sequence[float], *, train: int, test: int, confidence: float = 0.95
) -> Comparison:
    """Nadeau and Bengio's corrected resampled t-test, two-sided, on scores of the same splits."""
    if train < 1 or test < 1:
        raise ScoreError("cannot correct for overlap without sizes", expected="at least 1", got=f"{train} and {test}")
    return paired_test(a, b, test / train, confidence)


def paired_test(a: Sequence[float], b: Sequence[float], test_to_train: float, confidence: float = 0.95) -> Comparison:
    """The same by the ratio of the sizes alone, which is all that it needs."""
    if len(a) != len(b):
        raise ScoreError("cannot pair scores of different splits", expected=f"{len(a)} splits", got=len(b))
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if math.isfinite(x) and math.isfinite(y)]
    gaps = [x - y for x, y in pairs]
    count = len(gaps)
    mean = math.fsum(gaps) / count if count else math.nan
    std = math.sqrt(math.fsum((gap - mean) ** 2 for gap in gaps) / (count - 1)) if count > 1 else math.nan
    error = std * math.sqrt(1 / count + test_to_train) if count > 1 else math.nan
    t, p, reach = _student(mean, error, count - 1, confidence)
    return Comparison(
        difference=mean,
        std=std,
        t=t,
        p=p,
        low=mean - reach,
        high=mean + reach,
        confidence=confidence,
        splits=count,
        left_out=len(a) - count,
        a_higher=sum(gap > 0 for gap in gaps),
        b_higher=sum(gap < 0 for gap in gaps),
    )


def _student(mean: float, error: float, freedom: int, confidence: float) -> tuple[float, float, float]:
    """t, its two-sided p-value and the half width of the interval."""
    if math.isnan(error):
        return math.nan, math.nan, math.nan
    if error == 0:  # the same difference in every split: either none, or a certain one
        return (0.0, 1.0, 0.0) if mean == 0 else (math.copysign(math.inf, mean), 0.0, 0.0)
    from scipy.special import stdtr, stdtrit  # heavy: boards are listed without it

    t = mean / error
    return t, float(2 * stdtr(freedom, -abs(t))), float(stdtrit(freedom, 0.5 + confidence / 2)) * error


def holm(p_values: Sequence[float] | np.ndarray) -> list[float]:
    """p-values adjusted for testing several hypotheses at once (Holm 1979); NaN stays NaN and does not count."""
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p)  # NaN comes last
    left = np.maximum(np.isfinite(p).sum() - np.arange(len(p)), 1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(np.minimum(p[order] * left, 1.0))
    return [float(value) for value in adjusted]


def common(a: Embeddings, b: Embeddings) -> tuple[Embeddings, Embeddings]:
    """Both restricted to the ids that both have: only then do the splits of the two hold the same samples."""
    return a.only(b.ids), b.only(a.ids)


def compare_scores(a: Score, b: Score, *, confidence: float = 0.95) -> Comparison:
    """Compare two scores of one task and protocol, computed on the same samples."""
    for name in ("task", "metric", "protocol"):
        if getattr(a, name) != getattr(b, name):
            raise ScoreError(f"cannot compare scores: {name} differs", got=f"{getattr(a, name)} and {getattr(b, name)}")
    if a.samples["used"] != b.samples["used"]:
        got = f"{a.samples['used']} and {b.samples['used']}"
        raise ScoreError("cannot compare scores of different samples", where=a.task, got=got)
    ratio = a.samples["test"] / a.samples["train"]
    return paired_test(a.per_split, b.per_split, ratio * min(_trained(a, ratio), _trained(b, ratio)), confidence)


def _trained(score: Score, ratio: float) -> float:
    """What training adds to the variance of a mean F1. Of two the smaller is enough for their difference: measured by
    `python benchmarks/intervals.py`."""
    return of_f1(jsonable({**score.metrics, "f1": score.per_split}), ratio).factor if score.metric == "f1" else 1.0
