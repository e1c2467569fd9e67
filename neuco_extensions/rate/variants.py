"""How small can an embedding get, and how few labels does it need? The quality that is left with less.

Three axes: sizes (the embedding reduced to some dimensions, at float32), rates (the whole embedding coded with fewer
bits) and shares (the whole embedding, learned from a part of each training part; the smaller lies in the larger).
``grid`` crosses the first two. Reductions and coders never see a label.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from neuco_core.errors import DataError, ScoreError, UsageError
from neuco_core.progress import Progress, show_progress
from neuco_core.protocol import Protocol
from neuco_core.scoring.scorer import Score, score
from neuco_core.specs import Task
from neuco_core.studies.coerce import as_source, as_tasks
from neuco_core.studies.sources import Source, gather, grouped
from neuco_core.tables.embeddings import Embeddings, make_embeddings
from neuco_core.tables.labels import Labels
from neuco_extensions.rate.coders import code, expand, installed_rates
from neuco_extensions.rate.stored import WHOLE

REDUCTIONS = ("truncate", "pca", "random")
DIMS = (16, 64, 256, 1024)


@dataclass(frozen=True)
class Variant:
    """A reduction to ``dim`` dimensions, a rate, and the share of the training labels that is learned from."""

    reduction: str
    dim: int
    rate: str
    share: float = 1.0

    def __str__(self) -> str:
        text = f"{self.reduction} {self.dim} {self.rate}"
        return f"{text}, {self.share:.3g} of the labels" if self.share < 1 else text


@dataclass(frozen=True)
class VariantScore:
    """A variant's cost in bits per sample, and its score on each task; or why it could not be scored."""

    variant: Variant
    bits: float = math.nan
    side_bits: float = math.nan
    scores: Mapping[str, Score] = field(default_factory=dict)
    problem: str = ""

    @property
    def mean_q(self) -> float:
        return sum(score.q for score in self.scores.values()) / len(self.scores) if self.scores else math.nan

    def to_json(self) -> dict[str, Any]:
        v = self.variant
        tasks = {task: {"mean": s.mean, "std": s.std, "q": s.q} for task, s in self.scores.items()}
        head = {"reduction": v.reduction, "dim": v.dim, "rate": v.rate, "label_share": v.share, "mean_q": self.mean_q}
        if self.problem:
            return {**head, "problem": self.problem}
        return {**head, "bits_per_sample": self.bits, "side_bits": self.side_bits, "tasks": tasks}


def plan(
    dim: int,
    samples: int,
    *,
    dims: Sequence[int],
    reductions: Sequence[str],
    rates: Sequence[str],
    shares: Sequence[float] = (),
    grid: bool = False,
) -> tuple[list[Variant], list[str]]:
    for name in reductions:
        if name not in REDUCTIONS:
            raise UsageError("no such reduction", expected=", ".join(REDUCTIONS), got=repr(name))
    if any(size < 1 for size in dims):
        raise UsageError("bad number of dimensions", expected="at least 1", got=min(dims))
    if any(not 0 < share <= 1 for share in shares):
        raise UsageError("bad share of the labels", expected="above 0 and at most 1, or 100 %", got=list(shares))
    variants = [Variant(WHOLE, dim, rate) for rate in dict.fromkeys(("float32", *rates))]
    variants += [Variant(WHOLE, dim, "float32", share) for share in sorted(set(shares) - {1.0}, reverse=True)]
    left_out = [f"{size} dimensions: the embedding has {dim}" for size in dims if size > dim]
    for name in reductions:
        for size in sorted({size for size in dims if size <= dim}):
            if name == "pca" and size > samples:
                left_out.append(f"pca to {size} dimensions: there are {samples} samples")
            elif name != "truncate" or size < dim:  # truncating to all dimensions is the embedding itself
                variants += [Variant(name, size, rate) for rate in (rates if grid else ("float32",))]
    return variants, left_out


def ablate(
    what: Any,
    on: Any,
    protocol: str | Protocol | None = None,
    *,
    ids: Iterable[object] | None = None,
    dims: Sequence[int] | None = None,
    reductions: Sequence[str] = REDUCTIONS,
    rates: Sequence[str] | None = None,
    shares: Sequence[float] = (),
    grid: bool = False,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | Progress | None = None,
    **changes: Any,
) -> list[VariantScore]:
    """Score embeddings, or what makes them, with fewer dimensions, fewer bits or fewer labels.

    ``what``, ``on``, ``ids``, ``protocol`` and what changes it are those of ``neuco.evaluate``, with tasks of one
    dataset; the others are the options of ``neuco rate ablate``, with the same defaults. What is left out is warned
    of. A variant that cannot be scored has a ``problem``; ``to_json()`` of each is a row of a table.
    """
    chosen = as_tasks(on, protocol, changes)
    source = as_source(what, ids, quiet=progress is False)
    tasks, notes = usable(source, [task for task, _ in chosen])
    rules = dict(chosen)[tasks[0][0]]
    if shares and dims is None and rates is None:
        dims, rates = (), ("float32",)
    elif rates is None:
        rates, missing = installed_rates()
        notes += missing
    whole = source.embeddings(tasks[0][0])
    variants, left_out = plan(
        whole.dim,
        len(whole),
        dims=DIMS if dims is None else dims,
        reductions=reductions,
        rates=expand(tuple(rates)),
        shares=shares,
        grid=grid,
    )
    for note in (*notes, *(f"left out {text}" for text in left_out)):
        warnings.warn(note, stacklevel=2)
    with show_progress(progress) as tell:
        return list(score_variants(whole, tasks, rules, variants, seed=seed, threads=threads, progress=tell))


def usable(source: Source, tasks: Sequence[Task]) -> tuple[list[tuple[Task, Labels]], list[str]]:
    """The tasks that the source has embeddings for, with their labels; they must be of one dataset."""
    inputs = gather(tasks, source, same_dataset=True)
    usable = [(item.task, item.labels) for item in inputs if item.labels is not None]
    notes = grouped(("left out", item.task.label, item.reason) for item in inputs)
    if not usable:
        raise ScoreError("none of the tasks can be scored", where=source.name, got=notes[0] if notes else None)
    datasets = sorted({task.dataset for task, _ in usable})
    if len(datasets) > 1:
        raise UsageError("the tasks are of several datasets", got=", ".join(datasets), hint="Say --dataset ID")
    return usable, notes


def score_variants(
    embeddings: Embeddings,
    tasks: Sequence[tuple[Task, Labels]],
    protocol: Protocol,
    variants: Sequence[Variant],
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Iterator[VariantScore]:
    """Score each variant on each task and yield it when it is done; one that fails does not stop the others."""
    reducer = Reducer(embeddings.values, seed)
    for number, variant in enumerate(variants):
        try:
            coded = code(reducer(variant.reduction, variant.dim), variant.rate)
            small = make_embeddings(embeddings.ids, coded.values)
            scores = {}
            for task_number, (task, labels) in enumerate(tasks):
                if progress:
                    progress((number + task_number / len(tasks)) / len(variants), str(variant))
                scores[task.label] = score(
                    small, labels, protocol, metric=task.metric, threads=threads, train_share=variant.share
                )
            yield VariantScore(variant, coded.bits, coded.side_bits, scores)
        except (DataError, ScoreError) as error:
            yield VariantScore(variant, problem=str(error))


class Reducer:
    """Fewer dimensions of one block; the principal axes are computed once."""

    def __init__(self, values: np.ndarray, seed: int = 0) -> None:
        self.values, self.seed = values, seed

    def __call__(self, reduction: str, dim: int) -> np.ndarray:
        if reduction == WHOLE:
            return self.values
        if reduction == "truncate":
            return np.ascontiguousarray(self.values[:, :dim])
        if reduction == "pca":
            return np.asarray(self._centred @ self._axes[:, :dim], dtype=np.float32)
        # Onto Gaussian directions, scaled so that distances are kept on average.
        directions = np.random.default_rng(self.seed).standard_normal((self.values.shape[1], dim)) / np.sqrt(dim)
        return np.asarray(self.values @ directions, dtype=np.float32)

    @cached_property
    def _centred(self) -> np.ndarray:
        return np.asarray(self.values - self.values.mean(axis=0, dtype=np.float64))

    @cached_property
    def _axes(self) -> np.ndarray:
        """The eigenvectors of the covariance, the widest first; each points where its largest entry is positive."""
        spread, axes = np.linalg.eigh(self._centred.T @ self._centred)
        axes = axes[:, np.argsort(-spread, kind="stable")]
        largest = np.abs(axes).argmax(axis=0)
        return np.asarray(axes * np.where(axes[largest, np.arange(axes.shape[1])] < 0, -1.0, 1.0))
