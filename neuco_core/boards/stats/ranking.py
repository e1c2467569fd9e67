"""The ranking of NeuCo-Bench (eq. 2, 4 and 8 of its paper), and others beside it. The only place that ranks.

Arrays are (…, tasks, methods): leading axes are replicates, so one call ranks a thousand boards. Q is always
the better the higher.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuco_core.errors import UsageError

WEIGHTS = {
    "all": "spread of Q over all ranked methods",
    "no-baselines": "spread of Q over the ranked methods that are no baselines",
    "equal": "equal weights",
}
SPREADS = {"std": "population standard deviation", "robust": "interquartile range / 1.349"}
# Sums of weighted ranks that are equal on paper differ in the last bits (1/3 + 2/3 + 1); such ties must stay ties.
DIGITS = 10


@dataclass(frozen=True)
class Rule:
    """How tasks are weighted. ``ghost`` is the ε of eq. 8: a task of constant spread in which all have rank 0."""

    weights: str = "all"
    spread: str = "std"
    ghost: float = 0.0

    def __post_init__(self) -> None:
        for name, choices in (("weights", WEIGHTS), ("spread", SPREADS)):
            if getattr(self, name) not in choices:
                raise UsageError(f"no such {name}", expected=f"one of {', '.join(choices)}", got=getattr(self, name))
        if not (np.isfinite(self.ghost) and self.ghost >= 0):
            raise UsageError("the ghost task's spread is a number of at least 0", got=self.ghost)

    def describe(self) -> str:
        """The rule in words, as it stands under every board."""
        if self.weights == "equal":
            rule = "mean rank over the tasks, equal weights"
        else:
            rule = f"weighted mean rank over the tasks; weights: {WEIGHTS[self.weights]} ({SPREADS[self.spread]})"
        # Tasks of equal weight count as tasks of spread 1.
        return rule + (f"; ghost task of spread {self.ghost:g}, in which all have rank 0" if self.ghost else "")


@dataclass(frozen=True)
class Ranking:
    """``ranks`` (…, tasks, methods), ``weights`` (…, tasks), ``ghost`` (…), ``weighted`` and ``final`` (…, methods)."""

    ranks: np.ndarray
    weights: np.ndarray
    ghost: np.ndarray
    weighted: np.ndarray
    final: np.ndarray


def rank(q: np.ndarray, rule: Rule | None = None, baselines: np.ndarray | None = None) -> Ranking:
    """Rank methods by Q (…, tasks, methods); ``baselines`` marks the methods that are baselines."""
    rule = rule or Rule()
    ranks = positions(-q)
    counted = np.ones(q.shape[-1], dtype=bool)
    if rule.weights == "no-baselines" and baselines is not None:
        counted = ~np.asarray(baselines, dtype=bool)
    q = q[..., counted]
    if rule.weights == "equal" or q.shape[-1] < 2:
        spread = np.zeros(q.shape[:-1])
    elif rule.spread == "robust":
        low, high = np.quantile(q, (0.25, 0.75), axis=-1)
        spread = (high - low) / 1.349  # so that it estimates the standard deviation of a normal distribution
    else:
        spread = q.std(axis=-1)
    # No spread at all is 0/0 in the paper's formula: nothing tells the tasks apart, so they count the same.
    spread = np.where(spread.sum(axis=-1, keepdims=True) > 0, spread, 1.0)
    total = spread.sum(axis=-1, keepdims=True) + rule.ghost
    weights, ghost = spread / total, rule.ghost / total[..., 0]  # together they are 1
    weighted = (weights[..., None] * ranks).sum(axis=-2)
    return Ranking(ranks, weights, ghost, weighted, positions(np.round(weighted, DIGITS)))


def positions(values: np.ndarray) -> np.ndarray:
    """1 + the number of strictly smaller values along the last axis: ties share the better rank."""
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    index = np.broadcast_to(np.arange(values.shape[-1]), values.shape)
    first = np.ones(values.shape, dtype=bool)
    first[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    ranked = np.maximum.accumulate(np.where(first, index, 0), axis=-1) + 1
    result = np.empty(values.shape, dtype=np.int64)
    np.put_along_axis(result, order, ranked, axis=-1)
    return result


def aggregations(q: np.ndarray, scores: np.ndarray, ranking: Ranking) -> dict[str, np.ndarray]:
    """Other numbers over all tasks, by method, higher is better; so are the mean ``scores`` (tasks, methods)."""
    # Points: one for each method that is beaten on a task, half for each that is level.
    level = (q[:, :, None] == q[:, None, :]).sum(axis=2) - 1
    borda = (q.shape[1] - ranking.ranks - level / 2).sum(axis=0)
    return {"mean_q": q.mean(axis=0), "mean_score": scores.mean(axis=0), "borda": borda}
