"""Two sources on many tasks, paired split by split."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from neuco_core.plugins.catalog import load_metric
from neuco_core.progress import Progress
from neuco_core.protocol import Protocol
from neuco_core.scoring.cell import outcome_of, score_cell
from neuco_core.scoring.compare import Comparison, common, compare_scores, holm
from neuco_core.scoring.leaks import leaks
from neuco_core.scoring.scorer import Score
from neuco_core.specs import Task
from neuco_core.studies.sources import FileSource, Input, Source, gather


@dataclass(frozen=True)
class Pair:
    """Both scores of a task and the test of their difference, or why there is none."""

    task: str
    status: str
    reason: str = ""
    a: Score | None = None
    b: Score | None = None
    test: Comparison | None = None
    p_holm: float = math.nan
    greater_is_better: bool = True
    warnings: tuple[str, ...] = ()

    def verdict(self, level: float) -> str:
        """Which one is better, if that is significant at this level after Holm's correction."""
        if self.test is None or math.isnan(self.p_holm):
            return "undefined"
        if self.p_holm > level:
            return "no difference shown"
        return "A is better" if (self.test.difference > 0) == self.greater_is_better else "B is better"

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {"task": self.task, "status": self.status}
        if self.reason:
            value["reason"] = self.reason
        if self.a is not None and self.b is not None and self.test is not None:
            level = 1 - self.test.confidence
            value |= {"test": self.test.to_json(), "p_holm": self.p_holm, "verdict": self.verdict(level)}
            value |= {"a": self.a.to_json(), "b": self.b.to_json(), "warnings": list(self.warnings)}
        return value


def compare_tasks(
    a: Source,
    b: Source,
    groups: Sequence[tuple[Protocol, Sequence[Task]]],
    *,
    confidence: float = 0.95,
    threads: int | None = None,
    progress: Progress | None = None,
    same_dataset: bool = False,
) -> list[Pair]:
    """Score both on the same splits of every task, each under its protocol, and test the differences."""
    rules = {task.label: protocol for protocol, tasks in groups for task in tasks}
    inputs = gather([task for _, tasks in groups for task in tasks], a, b, same_dataset=same_dataset)

    def show(number: int, half: int, done: int, total: int) -> None:
        if progress:
            progress((number + (half + done / total) / 2) / len(inputs), inputs[number].task.label)

    pairs = [
        _pair(a, b, item, rules[item.task.label], confidence, threads, partial(show, number))
        for number, item in enumerate(inputs)
    ]
    adjusted = holm([pair.test.p if pair.test else math.nan for pair in pairs])
    return [dataclasses.replace(pair, p_holm=p) for pair, p in zip(pairs, adjusted, strict=True)]


def problem(pairs: Sequence[Pair], asked: Collection[str]) -> str:
    """Why the whole is a failure, or ""."""
    failed = [pair for pair in pairs if pair.status == "failed"]
    missed = [pair for pair in pairs if pair.status == "skipped" and pair.task in asked]
    if failed or missed:
        return f"{len(failed) + len(missed)} of {len(pairs)} tasks could not be compared"
    return "" if any(pair.status == "ok" for pair in pairs) else "nothing could be compared"


def _pair(
    a: Source,
    b: Source,
    item: Input,
    protocol: Protocol,
    confidence: float,
    threads: int | None,
    show: Callable[[int, int, int], None],
) -> Pair:
    task, labels = item.task, item.labels
    if labels is None:
        return Pair(task.label, item.status, item.reason)
    scores: list[Score] = []
    try:
        for half, rows in enumerate(common(a.embeddings(task), b.embeddings(task))):
            progress = partial(show, half)
            outcome = score_cell(rows, labels, protocol, metric=task.metric, threads=threads, progress=progress)
            scores.append(outcome.require())
    except Exception as error:  # an encoder is a stranger's code
        outcome = outcome_of(error)
        # A full disk is no reason to go on as if the task had not been asked for.
        return Pair(task.label, "failed" if outcome.machine else outcome.status, outcome.reason)
    warnings = [
        f"{source.name}: {leak}"
        for source in (a, b)
        if isinstance(source, FileSource)
        for leak in leaks(source.read(), labels)
    ]
    return Pair(
        task.label,
        "ok",
        a=scores[0],
        b=scores[1],
        test=compare_scores(*scores, confidence=confidence),
        greater_is_better=load_metric(task.metric).greater_is_better,
        warnings=tuple(warnings),
    )
