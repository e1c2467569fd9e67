"""``score(embeddings, task, protocol) -> Score``: pure, and the same for any number of threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from neuco_core.errors import ScoreError
from neuco_core.plugins import catalog
from neuco_core.protocol import Protocol, load_protocol
from neuco_core.scoring.judge import Outcome
from neuco_core.scoring.prepare import join
from neuco_core.scoring.quality import summarize
from neuco_core.scoring.run import run_splits
from neuco_core.specs import DEFAULT_METRIC, Metric, Task, to_json
from neuco_core.tables.embeddings import Embeddings
from neuco_core.tables.labels import Labels

FURTHER = {"regression": ("r2", "mse", "mae"), "classification": ("f1", "accuracy", "precision", "recall", "roc_auc")}


@dataclass(frozen=True)
class Score:
    """The outcome of one task under one protocol. NaN marks what is not defined; in JSON it is null.

    ``metrics`` holds further metrics per split at the chosen epoch; ``curves`` one row per split and a column per
    epoch; ``folds`` counts splits that are out of the ordinary; ``models`` is filled on demand, one per split;
    ``train`` and ``test`` of ``samples`` are those of the first split.
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
    folds: Mapping[str, int] = field(default_factory=dict)
    epochs: tuple[int, ...] = ()
    classes: tuple[float, ...] = ()
    models: tuple[Mapping[str, np.ndarray], ...] = field(default=(), repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps(…, allow_nan=False)``; models are left out."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self) if f.name != "models"}


def score(
    embeddings: Embeddings,
    task: Task | Labels,
    protocol: Protocol | str = "neuco-2025",
    *,
    metric: str | Metric | None = None,
    words_before: int = 0,
    standardize_ids: Collection[str] | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    keep_models: bool = False,
) -> Score:
    """How well the task's labels can be read from the embeddings under the rules of the protocol.

    ``metric`` takes the place of the task's, or of the usual one for labels that come without a task.
    ``words_before`` starts torch's generator that many 32-bit words in, ``standardize_ids`` are the ids over which
    the mean and std are taken (default: all that have an embedding); both are for reproducing a run over several tasks.
    """
    rules = load_protocol(protocol) if isinstance(protocol, str) else protocol
    labels = task if isinstance(task, Labels) else task.labels()
    judge = metric or (task.metric if isinstance(task, Task) else DEFAULT_METRIC[labels.kind])
    chosen = _metric(judge, labels)
    further = [_metric(name, labels) for name in FURTHER[labels.kind]]
    table = join(embeddings, labels, rules, standardize_ids)
    outcomes, words = run_splits(
        table, rules, chosen, further, words_before=words_before, threads=threads, progress=progress, keep=keep_models
    )
    return _assemble(table.task, table.kind, chosen, rules, outcomes, table.counts, table.classes, words)


def _metric(given: str | Metric, labels: Labels) -> Metric:
    metric = catalog.load_metric(given) if isinstance(given, str) else given
    if labels.kind not in metric.kinds:
        raise ScoreError(
            f"metric {metric.id!r} is not for {labels.kind}", where=labels.task, expected=", ".join(metric.kinds)
        )
    return metric


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
        sizes = f"{counts['used']} samples in {len(outcomes)} splits, {outcomes[0].test} in the test part"
        raise ScoreError(f"{metric.id} is defined for none of the splits", where=task, got=sizes)
    flat = "one_class" if kind == "classification" else "no_variance"
    folds = {flat: sum(o.flat for o in outcomes), "undefined": sum(map(math.isnan, per_split))}
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
        folds=folds,
        epochs=tuple(o.epoch for o in outcomes),
        classes=classes,
        models=tuple(o.model for o in outcomes if o.model is not None),
    )


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
