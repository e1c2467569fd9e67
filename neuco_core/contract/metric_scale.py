"""What a task's scores mean: what a guess and a perfect answer reach under its metric, and what a baseline proves.

Nothing here knows a metric by name: each is asked itself, so that one in the label's unit where lower is better (mae)
is held to the same contract as R² and F1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from neuco_core.plugins.catalog import load_metric
from neuco_core.protocol import Protocol
from neuco_core.scoring.metrics import Truth
from neuco_core.scoring.scorer import Score, score
from neuco_core.specs import Metric
from neuco_core.tables.embeddings import Embeddings
from neuco_core.tables.labels import Labels

MARGIN = 0.1
TOP = 0.01
SHUFFLES = 5
WIDEST = 10  # in steps: the last decimal that is worth showing, 0.001 for R² and F1
NO_HEADROOM = "shuffled labels reach it as well"


@dataclass(frozen=True)
class MetricScale:
    """Scores of a guess and of a perfect answer. ``scale`` is the metric's range, or else the way between the two."""

    guess: float
    perfect: float
    scale: float
    sign: int

    @property
    def solved(self) -> float:
        """What a solved task scores: 0.9 for R² and F1; for an error, a tenth of the guess's."""
        return self.perfect - self.sign * MARGIN * self.scale

    @property
    def ceiling(self) -> float:
        """Beyond this nothing is left to gain: 0.99 for R² and F1; for an error, a hundredth of the guess's."""
        return self.perfect - self.sign * TOP * self.scale

    def limit(self, luck: float) -> float:
        """What embeddings that know nothing may reach; ``luck`` is the standard error of their score, allowed twice."""
        return self.guess + self.sign * (MARGIN * self.scale + 2 * luck)

    def better(self, score: float, than: float) -> bool:
        return self.sign * score > self.sign * than

    @property
    def decimals(self) -> int:
        """How many decimals are worth showing: 3 for R² and F1, fewer or more for an error in a large or small unit."""
        # A guess has an R² of 0 but for rounding: a scale just below 1 is 1.
        return 3 - math.floor(math.log10(self.scale) + 1e-6) if 0 < self.scale < math.inf else 3

    def show(self, score: float) -> str:
        return f"{round(score, self.decimals) + 0.0:.{max(self.decimals, 0)}f}"  # adding 0 takes the sign off −0

    def beyond(self, score: float) -> str:
        """Better than a score, in words."""
        return f"{'above' if self.sign > 0 else 'below'} {self.show(score)}"


def standard_error(score: Score) -> float:
    """Of a mean over splits. They overlap, so their scores are not independent: this is Nadeau and Bengio's (2003)."""
    return score.std * math.sqrt(1 / len(score.per_split) + score.samples["test"] / score.samples["train"])


def metric_scale(labels: Labels, metric: Metric, probed: float = math.nan) -> MetricScale:
    """Ask the metric; ``probed`` is a guess that a probe made, which counts if it is the best one."""
    values = np.asarray(labels.values, np.float64).reshape(len(labels.ids), -1)
    if labels.kind == "regression":
        low, span = values.min(axis=0), np.ptp(values, axis=0)
        answer = (values - low) / span
        truth = Truth(answer, values, low, span, regression=True)
        constants = [answer.mean(axis=0), np.median(answer, axis=0)]
    elif labels.kind == "multilabel":
        answer, none = values, np.zeros(values.shape[1])
        truth = Truth(values, values, none, none + 1, regression=False)
        constants = [answer.mean(axis=0), none, none + 1]
    else:
        classes, numbers = np.unique(values[:, 0], return_inverse=True)
        answer = np.eye(len(classes))[numbers]
        truth = Truth(numbers, numbers, np.zeros(1), np.ones(1), regression=False)
        constants = [answer.mean(axis=0), *np.eye(len(classes))]
    # Macro F1 punishes one and the same class for all; answers in random order name every class as often as it occurs.
    shuffled = answer[np.random.default_rng(0).permutation(len(answer))]
    guesses = [*(np.tile(constant, (len(answer), 1)) for constant in constants), shuffled]
    perfect, sign = truth.value(metric, answer), 1 if metric.greater_is_better else -1
    scores = [sign * score for score in (*(truth.value(metric, guess) for guess in guesses), probed)]
    guess = sign * max((score for score in scores if not math.isnan(score)), default=math.nan)
    scale = abs(perfect - guess)
    if metric.lower is not None and metric.upper is not None:
        scale = metric.upper - metric.lower
    return MetricScale(guess, perfect, scale, sign)


@dataclass(frozen=True)
class MeasuredBaseline:
    """``reach`` is what shuffled labels may score: their best, and once more the range of theirs.

    ``decimals`` are those of scores that are worth showing.
    """

    score: float
    tolerance: float
    reach: float
    headroom: bool
    decimals: int


def measure_baseline(embeddings: Embeddings, labels: Labels, protocol: Protocol, metric: str) -> MeasuredBaseline:
    """The score, and a tolerance of at most half the way to what shuffled labels reach.

    A baseline is checked under its protocol's own seed, so a repeated run differs by rounding only: other processors
    and versions of libraries. A hundredth of the metric's range is ample for that. The spread over seeds, many times
    as large where test parts are small, has no place in it: with three times it, shuffled labels met the baseline.
    """
    reached = score(embeddings, labels, protocol, metric=metric).mean
    # An error has the label's unit: 0.01 may be nothing there, or everything.
    scale = metric_scale(labels, load_metric(metric))
    blind = [score(embeddings, shuffled(labels, i), protocol, metric=metric).mean for i in range(SHUFFLES)]
    worst, *_, best = sorted(blind, reverse=scale.sign < 0)
    reach = best + (best - worst)
    step = 10.0**-scale.decimals
    room = scale.sign * (reached - reach) / 2
    headroom = room >= step
    steps = min(WIDEST, math.floor(room / step)) if headroom else WIDEST
    return MeasuredBaseline(reached, round(steps * step, max(scale.decimals, 0)), reach, headroom, scale.decimals)


def shuffled(labels: Labels, seed: int = 0) -> Labels:
    """The same labels, given to other samples."""
    order = np.random.default_rng(seed).permutation(len(labels.ids))
    return replace(labels, values=labels.values[order])
