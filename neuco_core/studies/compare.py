"""Two sources on many tasks, paired split by split."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from neuco_core.errors import NeucoError, OfflineError, UnpinnedError
from neuco_core.progress import Progress
from neuco_core.runs.sources import FileSource, Source
from neuco_core.scoring.compare import Comparison, common, compare_scores, holm
from neuco_core.scoring.leaks import leaks
from neuco_core.studies.labels_for import Input, gather

if TYPE_CHECKING:
    from neuco_core.protocol import Protocol
    from neuco_core.scoring.scorer import Score
    from neuco_core.specs import Task
    from neuco_core.tables.embeddings import Embeddings


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
    pairs = []
    for place, item in enumerate(inputs):
        step = _step(progress, item.task.label, place / len(inputs), 1 / len(inputs))
        pairs.append(_pair(a, b, item, rules[item.task.label], confidence, threads, step))
    adjusted = holm([pair.test.p if pair.test else math.nan for pair in pairs])
    return [dataclasses.replace(pair, p_holm=p) for pair, p in zip(pairs, adjusted, strict=True)]


def problem(pairs: Sequence[Pair], asked: Collection[str]) -> str:
    """Why the whole is a failure, or ""."""
    failed = [pair for pair in pairs if pair.status == "failed"]
    missed = [pair for pair in pairs if pair.status == "skipped" and pair.task in asked]
    if failed or missed:
        return f"{len(failed) + len(missed)} of {len(pairs)} tasks could not be compared"
    return "" if any(pair.status == "ok" for pair in pairs) else "nothing could be compared"


def _step(progress: Progress | None, name: str, before: float, share: float) -> Callable[[float], None] | None:
    if progress is None:
        return None
    return lambda part: progress(before + share * part, name)


def _pair(
    a: Source,
    b: Source,
    item: Input,
    protocol: Protocol,
    confidence: float,
    threads: int | None,
    step: Callable[[float], None] | None,
) -> Pair:
    from neuco_core.plugins.catalog import load_metric
    from neuco_core.scoring.scorer import score

    task, labels = item.task, item.labels
    if labels is None:
        return Pair(task.label, item.status, item.reason)

    def one(embeddings: Embeddings, before: float) -> Score:
        show = (lambda done, total: step(before + done / total / 2)) if step else None
        return score(embeddings, labels, protocol, metric=task.metric, threads=threads, progress=show)

    try:
        first, second = common(a.embeddings(task), b.embeddings(task))
        scores = one(first, 0.0), one(second, 0.5)
        test = compare_scores(*scores, confidence=confidence)
        better = load_metric(task.metric).greater_is_better
    except (UnpinnedError, OfflineError) as error:
        return Pair(task.label, "skipped", str(error))
    except NeucoError as error:
        return Pair(task.label, "failed", str(error))
    except Exception as error:  # an encoder, a metric or a probe is a stranger's code
        return Pair(task.label, "failed", f"{type(error).__name__}: {error}")
    warnings = tuple(
        f"{s.name}: {told}" for s in (a, b) if isinstance(s, FileSource) for told in leaks(s.read(), labels)
    )
    return Pair(task.label, "ok", a=scores[0], b=scores[1], test=test, greater_is_better=better, warnings=warnings)
