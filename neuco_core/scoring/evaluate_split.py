"""From a probe's predictions to the outcome of a split: which epoch counts, and what it is worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuco_core.errors import PluginError
from neuco_core.protocol import Protocol
from neuco_core.scoring import metrics as m
from neuco_core.scoring.probes import Fit, Split
from neuco_core.specs import Metric, resolve

# Metrics that take all epochs in one go; others are called once per epoch.
STEPS: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {"r2": m.r2_steps, "f1": m.f1_steps}


@dataclass(frozen=True)
class SplitOutcome:
    """One split, trained and evaluated. ``flat``: its test part has no variance, or one class only."""

    score: float
    epoch: int
    flat: bool
    train: int
    test: int
    metrics: Mapping[str, float]
    curves: Mapping[str, np.ndarray]
    confusion: np.ndarray | None
    model: Mapping[str, np.ndarray] | None
    settings: Mapping[str, float]


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
        none = m.constant(self.scaled) if self.strict else m.total_sum(self.scaled) <= m.NOTHING
        return bool(none.any())

    def value(self, metric: Metric, prediction: np.ndarray) -> float:
        """The metric of one prediction (n, outputs or classes); NaN if it is not a finite number."""
        if not self.regression:
            return _finite(resolve(metric.function)(self.own, prediction))
        if metric.id == "r2" and self.strict:
            return _finite(m.strict_r2(self.scaled, prediction))
        # R² has no unit: it is taken on the scaled labels, where its thresholds are at home.
        pair = (self.scaled, prediction) if metric.id == "r2" else (self.own, self.restored(prediction))
        truth, prediction = (a[:, 0] if a.shape[1] == 1 else a for a in pair)
        return _finite(resolve(metric.function)(truth, prediction))

    def curve(self, metric: Metric, steps: np.ndarray) -> np.ndarray:
        """The metric after every step."""
        if metric.id == "r2" and self.strict:
            return m.strict_r2_steps(self.scaled, steps)
        if metric.id in STEPS:
            return STEPS[metric.id](self.scaled if self.regression else self.own, steps)
        return np.array([self.value(metric, step) for step in steps])

    def restored(self, prediction: np.ndarray) -> np.ndarray:
        """A prediction in the labels' own units."""
        return prediction * self.span + self.low if self.regression else prediction


def evaluate_split(
    split: Split, fit: Fit, truth: Truth, protocol: Protocol, metric: Metric, further: Sequence[Metric], keep: bool
) -> SplitOutcome:
    """Choose the epoch that counts and take every metric of it."""
    shape: tuple[int, ...] = getattr(fit.predictions, "shape", ())
    rows, columns = len(split.test), split.classes or split.y.shape[1]
    if len(shape) != 3 or not shape[0] or shape[1:] != (rows, columns):
        expected = f"(steps, {rows}, {columns})"
        raise PluginError("a probe gave predictions of the wrong shape", expected=expected, got=f"{shape}")
    curve = truth.curve(metric, fit.predictions)
    epoch = choose(curve, protocol.select, metric.greater_is_better)
    chosen, flat = fit.predictions[epoch], truth.flat()
    left_out = flat and protocol.flat == "leave-out"
    curves = {"train_loss": fit.train_loss, "test_loss": fit.test_loss, "metric": curve}
    return SplitOutcome(
        score=float("nan") if left_out else _finite(curve[epoch]),
        epoch=epoch,
        flat=flat,
        train=len(split.train),
        test=len(split.test),
        metrics={other.id: truth.value(other, chosen) for other in further},
        curves={name: values for name, values in curves.items() if values is not None and fit.train_loss is not None},
        confusion=m.confusion(truth.own, chosen) if truth.own.ndim == 1 else None,
        model=_model(split, fit, truth, epoch) if keep else None,
        settings=fit.settings,
    )


def choose(curve: np.ndarray, select: str, greater_is_better: bool) -> int:
    """The step that counts. One whose metric is not defined is never the best; the first of equals is."""
    if select == "last" or np.isnan(curve).all():
        return len(curve) - 1
    return int(np.nanargmax(curve if greater_is_better else -curve))


def _model(split: Split, fit: Fit, truth: Truth, epoch: int) -> dict[str, np.ndarray]:
    """What a plot or a stored probe needs; predictions and truth are in the labels' own units."""
    model = {name: steps[epoch] for name, steps in fit.parameters.items()}
    model["test"] = split.test
    model["truth"] = truth.own[:, 0] if truth.own.ndim == 2 and truth.own.shape[1] == 1 else truth.own
    prediction = truth.restored(fit.predictions[epoch])
    model["prediction"] = prediction[:, 0] if prediction.shape[1] == 1 else prediction
    return model


def _finite(value: float) -> float:
    return float(value) if np.isfinite(value) else float("nan")
