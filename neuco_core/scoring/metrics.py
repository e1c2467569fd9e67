"""The built-in metrics, ``function(truth, prediction) -> float``, and how they are taken of a test part.

Regression: both are (n,), or (n, outputs). Classification: truth holds the classes 0, 1, … and prediction their
probabilities, (n, classes); with two classes, class 1 is the positive one. Multilabel: truth is 0 and 1, (n, labels),
and a prediction above one half says that a label is there. NaN says that a value is not defined.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuco_core.errors import ScoreError
from neuco_core.specs import Metric, resolve
from neuco_core.versions import versioned

# As in torchmetrics: sums of squares up to this size count as nothing.
NOTHING = 1e-4
# Labels reach a probe in float32. A spread below its rounding, relative to their size, is none.
ROUNDING = float(np.finfo(np.float32).eps)


@versioned(1)
def r2(truth: np.ndarray, prediction: np.ndarray) -> float:
    """1 − residual sum / total sum; several outputs are averaged.

    A residual sum of nothing gives 1; otherwise a total sum of nothing gives 0, as in NeuCo-Bench.
    """
    return float(r2_steps(truth, prediction[None])[0])


@versioned(1)
def strict_r2(truth: np.ndarray, prediction: np.ndarray) -> float:
    """R² as it is defined, for protocols that leave test parts without variance out: such a part has none.

    torchmetrics' threshold is a size, and labels are scaled by the range of the training part: with one wild label the
    test parts of all others fall below it. Here only labels that are all the same count as without variance. Where
    neither threshold is met, this is ``r2`` to the last bit.
    """
    return float(r2_steps(truth, prediction[None], strict=True)[0])


def r2_steps(truth: np.ndarray, steps: np.ndarray, *, strict: bool = False) -> np.ndarray:
    """R² of several predictions (steps, n[, outputs]) of one truth at once."""
    if len(truth) < 2:
        return np.full(len(steps), np.nan)
    truth = np.asarray(truth, np.float32).reshape(len(truth), -1)
    steps = np.asarray(steps, np.float32).reshape(len(steps), *truth.shape)
    with np.errstate(all="ignore"):
        residual = np.square(steps - truth, dtype=np.float64).sum(axis=1)
        total = total_sum(truth)
        score = 1 - residual / total
        if strict:
            score = np.where(constant(truth), np.nan, score)
        else:
            score = np.where(total > NOTHING, score, 0)
            score = np.where(residual <= NOTHING, 1, score)
        return np.asarray(np.where(np.isfinite(residual), score, np.nan).mean(axis=1))


def constant(truth: np.ndarray) -> np.ndarray:
    """Whether the labels of each output are all the same, but for rounding."""
    truth = np.asarray(truth, np.float32).reshape(len(truth), -1)
    least = ROUNDING * np.abs(truth).max(axis=0).astype(np.float64)
    return np.asarray(total_sum(truth) <= len(truth) * least**2)


def total_sum(truth: np.ndarray) -> np.ndarray:
    """Σ (y − mean)² per output. torchmetrics takes Σ y² − (Σ y)² / n in float32, which is the same but for rounding."""
    truth = np.asarray(truth, np.float64).reshape(len(truth), -1)
    return np.asarray(np.square(truth - truth.mean(axis=0)).sum(axis=0))


@versioned(1)
def mse(truth: np.ndarray, prediction: np.ndarray) -> float:
    return float(np.square(np.subtract(prediction, truth, dtype=np.float64)).mean())


@versioned(1)
def mae(truth: np.ndarray, prediction: np.ndarray) -> float:
    return float(np.abs(np.subtract(prediction, truth, dtype=np.float64)).mean())


@versioned(1)
def kappa(truth: np.ndarray, prediction: np.ndarray) -> float:
    """How well rounded predictions agree with grades such as 1 to 5, by Cohen's kappa with quadratic weights.

    1 − Σ (p − y)² / (the same for pairs drawn at random); several outputs are averaged. For whole numbers only.
    """
    grades, rounded = np.asarray(truth, np.float64), np.rint(prediction)
    if (grades != np.rint(grades)).any():
        raise ScoreError("kappa is for grades", expected="labels that are whole numbers", got=f"{grades.flat[0]:g}")
    with np.errstate(all="ignore"):
        by_chance = grades.var(axis=0) + rounded.var(axis=0) + np.square(grades.mean(axis=0) - rounded.mean(axis=0))
        return float(np.mean(1 - np.square(rounded - grades).mean(axis=0) / by_chance))


def decide(prediction: np.ndarray) -> np.ndarray:
    """The class of each row: with two classes 1 where its probability is above one half, else the likeliest."""
    if prediction.shape[-1] == 2:
        return np.asarray(prediction[..., 1] > 0.5, np.int64)
    return np.asarray(prediction.argmax(axis=-1), np.int64)


def confusion(truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    """Counts of (true class, predicted class)."""
    classes = prediction.shape[-1]
    pairs = np.asarray(truth, np.int64) * classes + decide(prediction)
    return np.bincount(pairs, minlength=classes**2).reshape(classes, classes)


@versioned(1)
def f1(truth: np.ndarray, prediction: np.ndarray) -> float:
    """F1 of class 1 if there are two; else the mean over the classes that occur in truth or prediction."""
    return float(f1_steps(truth, prediction[None])[0])


def f1_steps(truth: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """F1 of several predictions (steps, n, classes) of one truth at once; 0 where neither has the class it is of."""
    truth, decided = np.asarray(truth), decide(steps)
    valid = np.isfinite(steps).all(axis=(1, 2))
    total, occur = np.zeros(len(steps), np.float32), np.zeros(len(steps), np.int64)
    for c in [1] if steps.shape[-1] == 2 else range(steps.shape[-1]):
        hits = 2 * ((decided == c) & (truth == c)).sum(axis=-1)
        marks = (decided == c).sum(axis=-1) + (truth == c).sum()
        total += (hits / np.maximum(marks, 1)).astype(np.float32)
        occur += marks > 0
    return np.where(valid, total / np.maximum(occur, 1), np.nan)


@versioned(1)
def accuracy(truth: np.ndarray, prediction: np.ndarray) -> float:
    return float((decide(prediction) == truth).mean())


@versioned(1)
def precision(truth: np.ndarray, prediction: np.ndarray) -> float:
    """Of the rows put into a class, the share that belongs there; not defined if there are none."""
    table = confusion(truth, prediction)
    return _share(table, table.sum(axis=0))


@versioned(1)
def recall(truth: np.ndarray, prediction: np.ndarray) -> float:
    """Of the rows of a class, the share that was found; not defined if there are none."""
    table = confusion(truth, prediction)
    return _share(table, table.sum(axis=1))


def _share(table: np.ndarray, of: np.ndarray) -> float:
    """Class 1 of two classes, or the mean over the classes for which the share is defined."""
    chosen = [1] if len(table) == 2 else [c for c in range(len(table)) if of[c]]
    shares = [table[c, c] / of[c] if of[c] else np.nan for c in chosen]
    return float(np.mean(shares)) if shares else float("nan")


@versioned(1)
def roc_auc(truth: np.ndarray, prediction: np.ndarray) -> float:
    """The chance that a row of the class gets a higher probability than another row; classes are averaged.

    Not defined for a class that no row, or every row, belongs to.
    """
    areas = []
    for c in [1] if prediction.shape[1] == 2 else range(prediction.shape[1]):
        inside, value = np.asarray(truth) == c, prediction[:, c]
        count = int(inside.sum())
        if 0 < count < len(inside) and np.isfinite(value).all():
            _, place, ties = np.unique(value, return_inverse=True, return_counts=True)
            rank = (np.cumsum(ties) - (ties - 1) / 2)[place]  # tied values share the mean of their ranks
            areas.append((rank[inside].sum() - count * (count + 1) / 2) / (count * (len(inside) - count)))
    return float(np.mean(areas)) if areas else float("nan")


@versioned(1)
def average_precision(truth: np.ndarray, prediction: np.ndarray) -> float:
    """The mean over the labels that occur of Σ (recall − recall before) · precision, down the order of the predictions.

    Equal predictions are one step, as in scikit-learn.
    """
    if not np.isfinite(prediction).all():
        return float("nan")
    found = [_precision_down(own == 1, value) for own, value in zip(truth.T, prediction.T, strict=True) if own.any()]
    return float(np.mean(found)) if found else float("nan")


def _precision_down(inside: np.ndarray, value: np.ndarray) -> float:
    order = np.argsort(-value, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(value[order])), len(value) - 1)  # the last of each run of equals
    hits = np.cumsum(inside[order])[ends]
    return float((np.diff(hits, prepend=0) * hits / (ends + 1)).sum() / inside.sum())


@versioned(1)
def mean_average_precision(truth: np.ndarray, prediction: np.ndarray) -> float:
    """The mean over the rows of the average precision down the row: of queries over a gallery, or samples over labels.

    Rows without anything to be found do not count.
    """
    truth = np.eye(prediction.shape[1])[truth] if truth.ndim == 1 else truth
    return average_precision(truth.T, prediction.T)


@versioned(1)
def v_measure(truth: np.ndarray, prediction: np.ndarray) -> float:
    """How well groups, each row's largest column, agree with classes, whatever the groups are called: 0 to 1.

    The harmonic mean of homogeneity and completeness.
    """
    from sklearn.metrics import v_measure_score  # heavy, and only here

    return float(v_measure_score(truth, prediction.argmax(axis=1)))


@versioned(1)
def f1_macro(truth: np.ndarray, prediction: np.ndarray) -> float:
    """The mean of each label's F1; 0 for one that neither occurs nor is predicted."""
    return _f1_of_labels(truth, prediction, 0)


@versioned(1)
def f1_micro(truth: np.ndarray, prediction: np.ndarray) -> float:
    """F1 of all labels of all samples together."""
    return _f1_of_labels(truth, prediction, None)


def _f1_of_labels(truth: np.ndarray, prediction: np.ndarray, axis: int | None) -> float:
    if not np.isfinite(prediction).all():
        return float("nan")
    said, inside = prediction > 0.5, truth == 1
    hits, marks = 2 * (said & inside).sum(axis=axis), said.sum(axis=axis) + inside.sum(axis=axis)
    return float(np.mean(np.where(marks > 0, hits / np.maximum(marks, 1), 0.0)))


@dataclass(frozen=True)
class Truth:
    """The labels of a test part: as the probe sees them, and in their own units (``scaled · span + low``).

    ``own`` is (n, outputs), or (n,) with the class numbers of a classification.

    ``strict``: a part without variance has no R², and the thresholds of NeuCo-Bench's R² do not count.
    """

    scaled: np.ndarray
    own: np.ndarray
    low: np.ndarray
    span: np.ndarray
    regression: bool
    strict: bool = False

    def flat(self) -> bool:
        if not self.regression:
            return bool((self.own == self.own[0]).all())
        none = constant(self.scaled) if self.strict else total_sum(self.scaled) <= NOTHING
        return bool(none.any())

    def value(self, metric: Metric, prediction: np.ndarray) -> float:
        """The metric of one prediction (n, outputs or classes); NaN if it is not a finite number."""
        if not self.regression:
            value = resolve(metric.function)(self.own, prediction)
        elif metric.id == "r2":  # it has no unit: its thresholds were chosen for scaled labels
            value = r2_steps(self.scaled, prediction[None], strict=self.strict)[0]
        else:
            pair = self.own, prediction * self.span + self.low  # in their own units
            truth, prediction = (a[:, 0] if a.shape[1] == 1 else a for a in pair)
            value = resolve(metric.function)(truth, prediction)
        return float(value) if np.isfinite(value) else float("nan")

    def curve(self, metric: Metric, steps: np.ndarray) -> np.ndarray:
        """The metric after every step: the usual ones in one go."""
        if metric.id == "r2":
            return r2_steps(self.scaled, steps, strict=self.strict)
        if metric.id == "f1":
            return f1_steps(self.own, steps)
        return np.array([self.value(metric, step) for step in steps])
