"""The splits of one task, trained side by side and judged."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from neuco_core import catalog
from neuco_core.errors import DataError, PluginError, ScoreError
from neuco_core.scoring import metrics as m
from neuco_core.scoring.prepare import Table
from neuco_core.scoring.probes import Fit, Split
from neuco_core.scoring.protocol import Protocol
from neuco_core.scoring.stream import WordStream
from neuco_core.specs import Metric

# Metrics that judge all epochs in one go; others are called once per epoch.
STEPS: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {"r2": m.r2_steps, "f1": m.f1_steps}


@dataclass(frozen=True)
class Outcome:
    """One split, trained and judged."""

    score: float
    epoch: int
    flat: bool
    train: int
    test: int
    metrics: Mapping[str, float]
    curves: Mapping[str, np.ndarray]
    confusion: np.ndarray | None
    model: Mapping[str, np.ndarray] | None


def run_splits(
    table: Table,
    protocol: Protocol,
    metric: Metric,
    further: Sequence[Metric],
    *,
    words_before: int = 0,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    keep: bool = False,
) -> tuple[list[Outcome], int]:
    """All outcomes in the order of the splits, and the number of random words that they used."""
    runner = _Runner(table, protocol, metric, further, keep)
    jobs = list(runner.jobs())
    used = sum(words for _, _, words in jobs)
    stream = WordStream(protocol.seed, words_before) if used else None
    outcomes: list[Outcome] = []
    pending: deque[Future[Outcome]] = deque()
    count = threads or available_cores()
    pool = ThreadPoolExecutor(count, thread_name_prefix="neuco-split")
    try:
        for index, (train, test, words) in enumerate(jobs):
            given = stream.take(words) if stream and words else None
            pending.append(pool.submit(runner.one, index, train, test, given))
            # A short queue keeps the words of few splits in memory, and an interrupt quick.
            while len(pending) > 2 * count or (pending and index == len(jobs) - 1):
                outcomes.append(pending.popleft().result())
                if progress:
                    progress(len(outcomes), len(jobs))
    finally:
        pool.shutdown(cancel_futures=True)
    return outcomes, used


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Runner:
    """What all splits share."""

    def __init__(self, table: Table, protocol: Protocol, metric: Metric, further: Sequence[Metric], keep: bool) -> None:
        self.table, self.protocol, self.metric, self.further, self.keep = table, protocol, metric, further, keep
        self.probe = catalog.load_probe(protocol.probe).factory(protocol)
        self.x = self._standardized(table.center, table.spread) if protocol.scale_on == "all" else table.x
        if hasattr(self.probe, "prepare"):
            self.probe.prepare(table)

    def jobs(self) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
        """Training part, test part and number of random words, split by split."""
        splitter, n = catalog.load_splitter(self.protocol.splitter), len(self.table.y)
        for train, test in splitter.function(n, self.protocol, self.table.groups):
            if not len(train) or not len(test):
                raise ScoreError("a split with an empty part", where=self.table.task, got=f"{len(train)} + {len(test)}")
            shape = (self.table.x.shape[1], self.table.outputs, len(train), len(test))
            yield train, test, self.probe.words(*shape) if hasattr(self.probe, "words") else 0

    def _standardized(self, center: float, spread: float) -> np.ndarray:
        x = self.table.x
        with np.errstate(all="ignore"):
            if self.protocol.standardize:
                x = (x - np.float32(center)) / np.float32(spread)
        if not np.isfinite(x).all():
            raise DataError("embeddings with values that are not finite, or too large", where=self.table.task)
        return x

    def _scaled_labels(self, train: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels for the probe, and the offset and factor that lead back to their own units."""
        y = self.table.y
        low, span = np.zeros(y.shape[1]), np.ones(y.shape[1])
        if self.protocol.normalize_labels and self.table.kind == "regression":
            seen = y if self.protocol.scale_on == "all" else y[train]
            low, span = seen.min(axis=0), np.ptp(seen, axis=0)
            span = np.where(span > 0, span, 1.0)
        return ((y - low) / span).astype(np.float32), low, span

    def one(self, index: int, train: np.ndarray, test: np.ndarray, words: np.ndarray | None) -> Outcome:
        y, low, span = self._scaled_labels(train)
        x = self.x
        if self.protocol.scale_on == "train" and self.protocol.standardize:
            seen = self.table.x[train]
            x = self._standardized(float(seen.mean(dtype=np.float64)), float(seen.std(dtype=np.float64)) or 1.0)
        split = Split(x, y, train, test, self.table.kind, len(self.table.classes), index, words)
        return self._judge(split, self.probe.fit(split), low, span)

    def _judge(self, split: Split, fit: Fit, low: np.ndarray, span: np.ndarray) -> Outcome:
        steps, truth = fit.predictions, split.y[split.test]
        wanted = (len(split.test), split.classes or truth.shape[1])
        if steps.ndim != 3 or steps.shape[1:] != wanted:
            got = "×".join(map(str, steps.shape))
            raise PluginError("a probe gave predictions of the wrong shape", expected=f"steps × {wanted}", got=got)
        regression = self.table.kind == "regression"
        own_truth = self.table.y[split.test] if regression else truth[:, 0].astype(np.int64)
        flat = bool((abs(m.total_sum(truth)) <= m.NOTHING).any()) if regression else len(np.unique(own_truth)) < 2

        def value(metric: Metric, prediction: np.ndarray) -> float:
            if not regression:
                return _finite(metric.function(own_truth, prediction))
            # R² has no unit; it is taken on the scaled labels, where its thresholds are at home.
            pair = (truth, prediction) if metric.id == "r2" else (own_truth, prediction * span + low)
            return _finite(metric.function(*(a[:, 0] if a.shape[1] == 1 else a for a in pair)))

        if self.metric.id in STEPS:
            curve = np.array(STEPS[self.metric.id](truth if regression else own_truth, steps))
        else:
            curve = np.array([value(self.metric, step) for step in steps])
        epoch = self._choose(curve)
        left_out = flat and self.protocol.flat == "leave-out"
        chosen = steps[epoch]
        has_curves = fit.train_loss is not None and fit.test_loss is not None
        curves = {"train_loss": fit.train_loss, "test_loss": fit.test_loss, "metric": curve} if has_curves else {}
        model = None
        if self.keep:
            model = {name: array[epoch] for name, array in fit.parameters.items()}
            model |= {
                "test": split.test,
                "truth": own_truth,
                "prediction": chosen * span + low if regression else chosen,
            }
        return Outcome(
            score=float("nan") if left_out else _finite(curve[epoch]),
            epoch=epoch,
            flat=flat,
            train=len(split.train),
            test=len(split.test),
            metrics={metric.id: value(metric, chosen) for metric in self.further},
            curves=curves,  # type: ignore[arg-type]
            confusion=None if regression else m.confusion(own_truth, chosen),
            model=model,
        )

    def _choose(self, curve: np.ndarray) -> int:
        """The step that counts. An epoch whose metric is not defined is never the best one."""
        if self.protocol.select == "last" or np.isnan(curve).all():
            return len(curve) - 1
        return int(np.nanargmax(curve if self.metric.greater_is_better else -curve))


def _finite(value: float) -> float:
    return float(value) if np.isfinite(value) else float("nan")
