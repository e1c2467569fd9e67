"""How small can an embedding get, and how few labels does it need? The quality that is left with less.

Three axes: sizes (the embedding reduced to some dimensions, at float32), rates (the whole embedding coded with fewer
bits) and shares (the whole embedding, learned from a part of each training part; the smaller lies in the larger).
``grid`` crosses the first two. Reductions and coders never see a label.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from neuco_core.errors import DataError, ScoreError, UsageError
from neuco_core.progress import Progress
from neuco_core.protocol import Protocol
from neuco_core.scoring.scorer import Score, score
from neuco_core.specs import Task
from neuco_core.tables.embeddings import Embeddings, make_embeddings
from neuco_core.tables.labels import Labels
from neuco_extensions.rate.coders import code
from neuco_extensions.rate.stored import WHOLE

REDUCTIONS = ("truncate", "pca", "random")


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
