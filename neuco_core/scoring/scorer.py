"""``score(embeddings, labels, protocol, metric=…) -> Score``: pure, and the same for any number of threads."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from statistics import fmean
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from neuco_core.env import available_cores
from neuco_core.errors import DataError, PluginError, ScoreError, UsageError
from neuco_core.files import jsonable
from neuco_core.plugins.catalog import catalog, for_probe, require_kind, task_protocol
from neuco_core.protocol import DEFAULT_PROTOCOL, Protocol, load_protocol
from neuco_core.scoring.metrics import Truth, confusion
from neuco_core.scoring.probes import Fit, Split
from neuco_core.scoring.probes.linear import WordStream
from neuco_core.scoring.quality import middle, split_count, summarize
from neuco_core.scoring.splits import Samples, aligned, join, splits_of, splitter_of
from neuco_core.specs import DEFAULT_METRIC, Metric, Probe, Task, resolve, to_json
from neuco_core.tables.embeddings import Embeddings
from neuco_core.tables.labels import Labels
from neuco_core.text import Brief, counted
from neuco_core.versions import versioned

if TYPE_CHECKING:
    import pandas

FURTHER = {
    "regression": ("r2", "mse", "mae"),
    "classification": ("f1", "accuracy", "precision", "recall", "roc_auc"),
    "multilabel": ("average_precision", "f1_macro", "f1_micro"),
}


@dataclass(frozen=True)
class Score(Brief):
    """The outcome of one task under one protocol. NaN marks what is not defined; in JSON it is null.

    Attributes:
        per_split: The scores of the splits.
        mean: Their mean, without splits that have no score.
        std: Their spread (population).
        q: 100 · 0.02 · mean / (std + 0.02); a metric for which less is better enters with a minus.
        metrics: Further metrics per split at the chosen epoch: R², MSE, MAE; or F1, accuracy, precision, recall,
            ROC-AUC; or average precision and F1.
        curves: Loss and metric, one row per split and a column per epoch.
        confusion: Counts over all splits.
        samples: How many labels and embeddings met and were dropped; ``train`` and ``test`` are means over the splits,
            because groups differ in size; so is ``lost``, the samples in neither part of splits by place.
        splits: How many splits are out of the ordinary, and why.
        settings: What the probe's own search chose, one value per split (NaN where it chose nothing).
        models: Filled on demand, one per split.
    """

    task: str
    kind: str
    metric: str
    protocol: Protocol
    per_split: tuple[float, ...]
    mean: float
    std: float
    q: float
    metrics: Mapping[str, tuple[float, ...]]
    curves: Mapping[str, np.ndarray]
    confusion: np.ndarray | None
    samples: Mapping[str, int]
    words: int
    splits: Mapping[str, int] = field(default_factory=dict)
    epochs: tuple[int, ...] = ()
    settings: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    classes: tuple[float, ...] = ()
    models: tuple[Mapping[str, np.ndarray], ...] = field(default=(), repr=False, compare=False)

    def __repr__(self) -> str:
        about = f"{self.metric} {self.mean:.4f} ± {self.std:.4f} (median {middle(self.per_split):.4f}), Q {self.q:.2f}"
        of = f"{split_count(self.per_split)} splits of {self.samples.get('used', 0)} samples"
        return f"Score({self.task} under {self.protocol.name}: {about}, {of})"

    def frame(self) -> pandas.DataFrame:
        """A row for each split: every metric, and what the probe's own search chose."""
        import pandas as pd  # heavy: half a second, and only here

        columns = {self.metric: self.per_split, **self.metrics, **self.settings}
        return pd.DataFrame(columns, index=pd.RangeIndex(len(self.per_split), name="split"))

    def to_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps(…, allow_nan=False)``; models are left out."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "models"}
        values |= {"protocol": to_json(self.protocol), "curves": {name: c.tolist() for name, c in self.curves.items()}}
        if self.confusion is not None:
            values["confusion"] = self.confusion.tolist()
        return dict(jsonable(values))


@versioned(1)
def score(
    embeddings: Embeddings,
    labels: Labels | Task,
    protocol: Protocol | str | None = None,
    *,
    metric: Metric | str | None = None,
    stream: WordStream | None = None,
    standardize_ids: Collection[str] | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    keep_models: bool = False,
    allow_constant: bool = False,
) -> Score:
    """How well the labels can be read from the embeddings under a protocol; ``evaluate`` takes more kinds of input.

    Args:
        embeddings: one row of numbers per id.
        labels: labels, or a task, whose metric and protocol are used unless others are named.
        protocol: a protocol or its name; labels alone are scored under ``neuco-2025``.
        metric: a metric or its id.
        stream: the words of torch's generator, to reproduce a run over several tasks.
        standardize_ids: the ids over which mean and std are taken (all embedded ones), for the same purpose.
        threads: how many splits are trained side by side; changes no number.
        progress: called with the number of splits that are done, and of all.
        keep_models: whether the score keeps the trained probes.
        allow_constant: whether labels that are all the same are scored instead of refused.

    Returns:
        The score of each split, their summary, and further metrics.
    """
    hint = "neuco_core.evaluate(what, on) takes ids, arrays, tables, files, lists and suites"
    for name, value, kinds in (  # the usual slips: an array, an id, a path
        ("embeddings", embeddings, (Embeddings,)),
        ("labels", labels, (Labels, Task)),
        ("protocol", protocol, (Protocol, str, type(None))),
    ):
        if not isinstance(value, kinds):
            expected = " or ".join(kind.__name__ for kind in kinds if kind is not type(None))
            raise UsageError(f"score: bad {name}", expected=expected, got=type(value).__name__, hint=hint)
    if protocol is None:
        protocol = task_protocol(labels) if isinstance(labels, Task) else DEFAULT_PROTOCOL
    protocol = load_protocol(protocol) if isinstance(protocol, str) else protocol
    if isinstance(labels, Task):
        metric, labels = metric or labels.metric, labels.labels()
    probe = require_kind(protocol, labels.kind, labels.task)
    metrics, further = [], [] if probe.metric else FURTHER[labels.kind]
    for wanted in (probe.metric or metric or DEFAULT_METRIC[labels.kind], *further):
        spec = catalog().load(Metric, wanted) if isinstance(wanted, str) else wanted
        if labels.kind not in spec.kinds:
            expected = ", ".join(spec.kinds)
            raise ScoreError(f"metric {spec.id!r} is not for {labels.kind}", where=labels.task, expected=expected)
        metrics.append(spec)
    threads = available_cores() if threads is None else threads
    if threads < 1:
        raise UsageError("bad number of threads", expected="at least 1", got=threads)
    samples = join(embeddings, labels, protocol, standardize_ids, allow_constant=allow_constant)
    # The splits themselves use all cores; more threads below them would only wait for each other.
    with threadpool_limits(1):
        runner = _Runner(samples, protocol, probe, metrics[0], metrics[1:], keep_models)
        splits = list(runner.splits())
        outcomes, words = runner.run(splits, stream, threads, progress)
    repeated = len(splits) - len({np.sort(split.test).tobytes() for split, _ in splits})
    scored = _assemble(samples, metrics[0], protocol, outcomes, words, repeated)
    if not splitter_of(samples.labels, protocol).needs_positions:
        return scored
    lost = round(fmean(len(samples.y) - outcome.train - outcome.test for outcome in outcomes))
    return replace(scored, samples={**scored.samples, "lost": lost})


@dataclass(frozen=True)
class SplitOutcome:
    """One split, trained and evaluated. ``flat``: its test part has no variance, or one class only."""

    score: float
    train: int
    test: int
    metrics: Mapping[str, float]
    settings: Mapping[str, float]
    epoch: int = 0
    flat: bool = False
    curves: Mapping[str, np.ndarray] = field(default_factory=dict)
    confusion: np.ndarray | None = None
    model: Mapping[str, np.ndarray] | None = None


class _Runner:
    """What all splits share; they are trained side by side."""

    def __init__(
        self,
        samples: Samples,
        protocol: Protocol,
        probe: Probe,
        metric: Metric,
        further: Sequence[Metric],
        keep: bool,
    ) -> None:
        self.samples, self.protocol, self.metric, self.further, self.keep = samples, protocol, metric, further, keep
        self.stop = Event()
        self.predicts = not probe.metric
        self.probe = resolve(probe.factory)(for_probe(protocol))
        moments = (samples.center, samples.spread) if protocol.scale_on == "all" else (0.0, 1.0)
        self.x = self._standardized(*moments)

    def splits(self) -> Iterator[tuple[Split, int]]:
        """The splits before any scaling of their own, each with the number of random words that its training needs."""
        samples = self.samples
        for index, (train, test) in enumerate(splits_of(samples.labels, self.protocol)):
            if not len(train) or not len(test):
                raise ScoreError("a split with an empty part", where=samples.task, got=f"{len(train)} + {len(test)}")
            # What a linear model gives per sample: two classes need only one number.
            outputs = len(samples.classes) if len(samples.classes) > 2 else samples.y.shape[1]
            shape = (samples.x.shape[1], outputs, len(train), len(test))
            words = self.probe.words(*shape) if hasattr(self.probe, "words") else 0
            classes = len(samples.classes)
            yield Split(self.x, samples.y, train, test, samples.kind, classes, index, stop=self.stop), words

    def run(
        self,
        splits: Sequence[tuple[Split, int]],
        stream: WordStream | None,
        threads: int,
        progress: Callable[[int, int], None] | None,
    ) -> tuple[list[SplitOutcome], int]:
        """All outcomes in the order of the splits, and the number of random words that they used."""
        if hasattr(self.probe, "prepare"):
            self.probe.prepare([split for split, _ in splits], threads)
        outcomes: list[SplitOutcome] = []
        pending: deque[Future[SplitOutcome]] = deque()
        used = sum(needed for _, needed in splits)
        stream = stream or (WordStream(self.protocol.seed) if used else None)
        pool = ThreadPoolExecutor(threads, thread_name_prefix="neuco-split")
        torch = sys.modules.get("torch")  # if a probe has loaded it: as for linear algebra, and for the whole process
        torch_threads = torch.get_num_threads() if torch else 1
        try:
            if torch:
                torch.set_num_threads(1)
            for split, needed in splits:
                words = stream.take(needed) if stream and needed else None
                pending.append(pool.submit(self.one, replace(split, words=words)))
                # A short queue keeps the words of few splits in memory, and an interrupt quick.
                while pending and (len(pending) > 2 * threads or split.index + 1 == len(splits)):
                    outcomes.append(pending.popleft().result())
                    if progress:
                        progress(len(outcomes), len(splits))
        except BaseException:
            self.stop.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
            if torch:
                torch.set_num_threads(torch_threads)
        return outcomes, used

    def one(self, split: Split) -> SplitOutcome:
        """Scale and train one split, choose the epoch that counts, and take every metric of it."""
        samples, protocol, regression = self.samples, self.protocol, self.samples.kind == "regression"
        low, span = np.zeros(samples.y.shape[1]), np.ones(samples.y.shape[1])
        if protocol.normalize_labels and regression:
            seen = samples.y if protocol.scale_on == "all" else samples.y[split.train]
            low, span = seen.min(axis=0), np.ptp(seen, axis=0)
            span = np.where(span > 0, span, 1.0)
        y = ((samples.y - low) / span).astype(np.float32)
        x = split.x
        if protocol.scale_on == "train" and protocol.standardize:
            seen = samples.x[split.train]
            x = self._standardized(float(seen.mean(dtype=np.float64)), float(seen.std(dtype=np.float64)) or 1.0)
        split = replace(split, x=x, y=y)
        fit = self.probe.fit(split)
        if not self.predicts:
            return self._measured(split, fit)
        shape: tuple[int, ...] = getattr(fit.predictions, "shape", ())
        rows, columns = len(split.test), split.classes or y.shape[1]
        if len(shape) != 3 or not shape[0] or shape[1:] != (rows, columns):
            expected = f"(steps, {rows}, {columns})"
            raise PluginError("a probe gave predictions of the wrong shape", expected=expected, got=f"{shape}")
        own, leave_out = samples.y[split.test], protocol.flat == "leave-out"
        if samples.kind == "classification":
            own = own[:, 0].astype(np.int64)
        truth = Truth(y[split.test], own, low, span, regression, strict=leave_out)
        curve = truth.curve(self.metric, fit.predictions)
        epoch = choose(curve, protocol.select, self.metric.greater_is_better)
        chosen, flat = fit.predictions[epoch], truth.flat()
        undefined = not np.isfinite(curve[epoch]) or (flat and leave_out)
        curves = {"train_loss": fit.train_loss, "test_loss": fit.test_loss, "metric": curve}
        learning = fit.train_loss is not None
        return SplitOutcome(
            score=float("nan") if undefined else float(curve[epoch]),
            epoch=epoch,
            flat=flat,
            train=len(split.train),
            test=len(split.test),
            metrics={other.id: truth.value(other, chosen) for other in self.further},
            curves={name: values for name, values in curves.items() if learning and values is not None},
            confusion=confusion(own, chosen) if own.ndim == 1 else None,
            model=_model(split, fit, truth, epoch) if self.keep else None,
            settings=fit.settings,
        )

    def _measured(self, split: Split, fit: Fit) -> SplitOutcome:
        """What a probe that predicts no labels measured by itself."""
        if self.metric.id not in fit.measures:
            got = ", ".join(fit.measures) or "no measures"
            raise PluginError("a probe did not measure its metric", expected=self.metric.id, got=got)
        return SplitOutcome(
            score=float(fit.measures[self.metric.id]),
            train=len(split.train),
            test=len(split.test),
            metrics={name: float(value) for name, value in fit.measures.items() if name != self.metric.id},
            settings=fit.settings,
        )

    def _standardized(self, center: float = 0.0, spread: float = 1.0) -> np.ndarray:
        x = self.samples.x
        with np.errstate(all="ignore"):
            if self.protocol.standardize and (center, spread) != (0.0, 1.0):
                x = np.subtract(x, np.float32(center), out=aligned(x.shape))
                x /= np.float32(spread)
        if not np.isfinite(x).all():
            raise DataError("embeddings with values that are not finite, or too large", where=self.samples.task)
        return x


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
    prediction = fit.predictions[epoch]
    if truth.regression:
        prediction = prediction * truth.span + truth.low
    model["prediction"] = prediction[:, 0] if prediction.shape[1] == 1 else prediction
    return model


def _assemble(
    samples: Samples, metric: Metric, protocol: Protocol, outcomes: Sequence[SplitOutcome], words: int, repeated: int
) -> Score:
    first = outcomes[0]
    per_split = tuple(outcome.score for outcome in outcomes)
    summary = summarize(per_split, metric.greater_is_better)
    if summary is None:
        sizes = f"{counted(samples.counts['used'], 'sample')}, {first.test} in the test part"
        hint = "A test part of one sample has no score, nor has one whose labels are all the same"
        raise ScoreError(f"{metric.id} is defined for none of the splits", where=samples.task, got=sizes, hint=hint)
    flat = "one_class" if samples.kind == "classification" else "no_variance"
    tables = [outcome.confusion for outcome in outcomes if outcome.confusion is not None]
    settings = dict.fromkeys(name for outcome in outcomes for name in outcome.settings)
    return Score(
        task=samples.task,
        kind=samples.kind,
        metric=metric.id,
        protocol=protocol,
        per_split=per_split,
        **summary._asdict(),
        metrics={name: tuple(outcome.metrics[name] for outcome in outcomes) for name in first.metrics},
        curves={name: np.stack([outcome.curves[name] for outcome in outcomes]) for name in first.curves},
        confusion=np.sum(tables, axis=0) if tables else None,
        samples={
            **samples.counts,
            "train": round(fmean(outcome.train for outcome in outcomes)),
            "test": round(fmean(outcome.test for outcome in outcomes)),
        },
        words=words,
        splits={
            flat: sum(outcome.flat for outcome in outcomes),
            "undefined": sum(map(math.isnan, per_split)),
            **({"repeated": repeated} if repeated else {}),
        },
        epochs=tuple(outcome.epoch for outcome in outcomes),
        settings={name: tuple(float(o.settings.get(name, math.nan)) for o in outcomes) for name in settings},
        classes=samples.classes,
        models=tuple(outcome.model for outcome in outcomes if outcome.model is not None),
    )
