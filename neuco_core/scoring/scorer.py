"""``score(embeddings, labels, protocol, metric=…) -> Score``: pure, and the same for any number of threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from neuco_core.errors import ScoreError, UsageError
from neuco_core.plugins import catalog
from neuco_core.protocol import DEFAULT_PROTOCOL, Protocol, load_protocol
from neuco_core.scoring.evaluate_split import Outcome
from neuco_core.scoring.join import join
from neuco_core.scoring.quality import middle, split_count, summarize
from neuco_core.scoring.run import run_splits
from neuco_core.scoring.stream import WordStream
from neuco_core.specs import DEFAULT_METRIC, Metric, Task, to_json
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

    ``metrics`` holds further metrics per split at the chosen epoch; ``curves`` one row per split and a column per
    epoch; ``splits`` counts splits that are out of the ordinary; ``settings`` has what the probe's own search chose,
    one value per split (NaN where it chose nothing); ``models`` is filled on demand, one per split; ``train`` and
    ``test`` of ``samples`` are those of the first split.
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
        import pandas as pd

        columns = {self.metric: self.per_split, **self.metrics, **self.settings}
        return pd.DataFrame(columns, index=pd.RangeIndex(len(self.per_split), name="split"))

    def to_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps(…, allow_nan=False)``; models are left out."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self) if f.name != "models"}


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
    train_share: float = 1.0,
) -> Score:
    """How well the labels can be read from the embeddings under a protocol.

    A task may be given instead of its labels; its metric and protocol are then used unless others are named. Labels
    alone are scored under ``neuco-2025``. ``evaluate`` takes more: ids, arrays, files, suites. ``stream`` has the words
    of torch's generator (default: those that the protocol's seed starts), ``standardize_ids`` are the ids over which
    the mean and std are taken (default: all that have an embedding); both are for reproducing a run over several tasks.
    Labels that are all the same are an error unless ``allow_constant``. ``train_share`` is how much of each training
    part is learned from; test parts stay as they are.
    """
    _check_given(embeddings, labels, protocol)
    if protocol is None:
        protocol = catalog.task_protocol(labels) if isinstance(labels, Task) else DEFAULT_PROTOCOL
    protocol = load_protocol(protocol) if isinstance(protocol, str) else protocol
    if isinstance(labels, Task):
        metric, labels = metric or labels.metric, labels.labels()
    chosen = _metric(metric or DEFAULT_METRIC[labels.kind], labels)
    further = [_metric(name, labels) for name in FURTHER[labels.kind]]
    samples = join(embeddings, labels, protocol, standardize_ids, allow_constant=allow_constant)
    outcomes, words = run_splits(
        samples,
        protocol,
        chosen,
        further,
        stream=stream,
        threads=threads,
        progress=progress,
        keep=keep_models,
        train_share=train_share,
    )
    return _assemble(samples.task, samples.kind, chosen, protocol, outcomes, samples.counts, samples.classes, words)


def _check_given(embeddings: object, labels: object, protocol: object) -> None:
    """The usual slips: an array, an id, a path. All of these are for ``evaluate``."""
    hint = "neuco_core.evaluate(what, on) takes ids, arrays, tables, files, lists and suites"
    for name, value, kinds in (
        ("embeddings", embeddings, (Embeddings,)),
        ("labels", labels, (Labels, Task)),
        ("protocol", protocol, (Protocol, str, type(None))),
    ):
        if not isinstance(value, kinds):
            expected = " or ".join(kind.__name__ for kind in kinds if kind is not type(None))
            raise UsageError(f"score: bad {name}", expected=expected, got=type(value).__name__, hint=hint)


def _metric(metric: Metric | str, labels: Labels) -> Metric:
    found = catalog.load_metric(metric) if isinstance(metric, str) else metric
    if labels.kind not in found.kinds:
        expected = ", ".join(found.kinds)
        raise ScoreError(f"metric {found.id!r} is not for {labels.kind}", where=labels.task, expected=expected)
    return found


def _assemble(
    task: str,
    kind: str,
    metric: Metric,
    protocol: Protocol,
    outcomes: list[Outcome],
    counts: Mapping[str, int],
    classes: tuple[float, ...],
    words: int,
) -> Score:
    per_split = tuple(outcome.score for outcome in outcomes)
    if all(map(math.isnan, per_split)):
        sizes = f"{counted(counts['used'], 'sample')}, {outcomes[0].test} in the test part"
        hint = "A test part of one sample has no score, nor has one whose labels are all the same"
        raise ScoreError(f"{metric.id} is defined for none of the splits", where=task, got=sizes, hint=hint)
    flat = "one_class" if kind == "classification" else "no_variance"
    splits = {flat: sum(o.flat for o in outcomes), "undefined": sum(map(math.isnan, per_split))}
    tables = [o.confusion for o in outcomes if o.confusion is not None]
    names = outcomes[0].metrics
    curves = {name: np.stack([o.curves[name] for o in outcomes]) for name in outcomes[0].curves}
    mean, std, q = summarize(per_split, greater_is_better=metric.greater_is_better)
    return Score(
        task=task,
        kind=kind,
        metric=metric.id,
        protocol=protocol,
        per_split=per_split,
        mean=mean,
        std=std,
        q=q,
        metrics={name: tuple(o.metrics[name] for o in outcomes) for name in names},
        curves=curves,
        confusion=np.sum(tables, axis=0) if tables else None,
        samples={**counts, "train": outcomes[0].train, "test": outcomes[0].test},
        words=words,
        splits=splits,
        epochs=tuple(o.epoch for o in outcomes),
        settings=_settings(outcomes),
        classes=classes,
        models=tuple(o.model for o in outcomes if o.model is not None),
    )


def _settings(outcomes: list[Outcome]) -> dict[str, tuple[float, ...]]:
    names = dict.fromkeys(name for outcome in outcomes for name in outcome.settings)
    return {name: tuple(float(outcome.settings.get(name, math.nan)) for outcome in outcomes) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Protocol):
        return to_json(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
