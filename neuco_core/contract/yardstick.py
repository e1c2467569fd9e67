"""What a task's scores mean: what guessing reaches under its metric, what a perfect answer does, and how far apart.

Nothing here knows a metric by name: each is asked itself, so that one in the label's unit where lower is better (mae)
is held to the same contract as R² and F1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuco_core.scoring.scorer import Score
    from neuco_core.specs import Metric
    from neuco_core.tables.labels import Labels

MARGIN = 0.1
TOP = 0.01


@dataclass(frozen=True)
class Yardstick:
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


def yardstick(labels: Labels, metric: Metric, probed: float = math.nan) -> Yardstick:
    """Ask the metric; ``probed`` is a guess that a probe made, which counts if it is the best one."""
    sign = 1 if metric.greater_is_better else -1
    perfect, *guesses = _asked(labels, metric)
    known = [sign * guess for guess in (*guesses, probed) if not math.isnan(guess)]
    guess = sign * max(known) if known else math.nan
    bounded = metric.lower is not None and metric.upper is not None
    scale = metric.upper - metric.lower if bounded else abs(perfect - guess)  # type: ignore[operator]
    return Yardstick(guess, perfect, scale, sign)


def _asked(labels: Labels, metric: Metric) -> Iterator[float]:
    """The metric of a perfect answer, then of guesses."""
    import numpy as np

    from neuco_core.scoring.evaluate_split import Truth

    values = np.asarray(labels.values, np.float64).reshape(len(labels.ids), -1)
    regression = labels.kind == "regression"
    if regression:
        low = values.min(axis=0)
        span = np.ptp(values, axis=0)
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
    for prediction in (answer, *(np.tile(constant, (len(answer), 1)) for constant in constants), shuffled):
        yield truth.value(metric, prediction)
