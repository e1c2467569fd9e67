"""``compare(a, b, on)``: two sources on many tasks, paired split by split: is one better, or is it luck?"""

from __future__ import annotations

import dataclasses
import html
import math
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from neuco_core.errors import ScoreError, UnknownIdError, UsageError
from neuco_core.plugins.catalog import load_metric
from neuco_core.progress import Progress, show_progress
from neuco_core.protocol import Protocol
from neuco_core.runs.files import refuse_labels
from neuco_core.scoring.cell import outcome_of, score_cell
from neuco_core.scoring.compare import Comparison, common, compare_scores, holm
from neuco_core.scoring.leaks import LeakWarning
from neuco_core.scoring.scorer import Score
from neuco_core.scoring.splits import cut_groups
from neuco_core.specs import Task
from neuco_core.studies.sources import FileSource, Input, Source, as_source, as_tasks, gather
from neuco_core.text import LONGEST_REPR, counted, one_line

if TYPE_CHECKING:
    import pandas

UNDECIDED = "no difference shown"
COLUMNS = ("protocol", "metric", "samples", "a", "b", "difference", "low", "high", "p", "p_holm", "verdict", "reason")


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
            return UNDECIDED
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


@dataclass(frozen=True, repr=False)
class Differences:
    """A − B by task, in the order asked for: each is a ``Pair``, which has both scores and the test, or the reason."""

    a: str
    b: str
    pairs: Mapping[str, Pair]
    confidence: float

    def frame(self) -> pandas.DataFrame:
        """A row for each task, on samples of both. ``low`` to ``high`` is for A − B, the verdict by ``p_holm``."""
        import pandas as pd  # heavy: half a second, and only here

        rows: dict[str, dict[str, Any]] = {}
        for pair in self:
            rows[pair.task] = {"verdict": self.verdict(pair), "reason": pair.reason, "p_holm": pair.p_holm}
            if pair.a and pair.b and pair.test:
                rows[pair.task] |= {"protocol": pair.a.protocol.name, "metric": pair.a.metric}
                rows[pair.task]["samples"] = pair.a.samples["used"]
                rows[pair.task] |= {"a": pair.a.mean, "b": pair.b.mean, "p": pair.test.p}
                rows[pair.task] |= {"difference": pair.test.difference, "low": pair.test.low, "high": pair.test.high}
        table = pd.DataFrame.from_dict(rows, orient="index", columns=list(COLUMNS)).rename_axis("task")
        return table if any(pair.reason for pair in self) else table.drop(columns="reason")

    def verdict(self, pair: Pair) -> str:
        """Which one is better, by its name, if that is significant."""
        if pair.status != "ok":
            return pair.status
        words = pair.verdict(1 - self.confidence)
        return {"A is better": f"{self.a} is better", "B is better": f"{self.b} is better"}.get(words, words)

    def __getitem__(self, task: str) -> Pair:
        if task not in self.pairs:
            raise UnknownIdError("comparison on task", task, self.pairs)
        return self.pairs[task]

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.pairs.values())

    def __len__(self) -> int:
        return len(self.pairs)

    def _about(self) -> str:
        counts = Counter(self.verdict(pair) for pair in self)
        each = ", ".join(f"{verdict} on {counted(count, 'task')}" for verdict, count in counts.items())
        return f"{self.a} and {self.b}: {each}"

    def __repr__(self) -> str:
        return f"Differences({one_line(self._about(), LONGEST_REPR)})"

    def _repr_html_(self) -> str:
        table = self.frame().to_html(float_format=lambda value: f"{value:.4g}", na_rep="–", border=0)
        return f"<p>{html.escape(self._about())}</p>{table}"


def compare(
    a: Any,
    b: Any,
    on: Any,
    protocol: str | Protocol | None = None,
    *,
    names: tuple[str, str] = ("", ""),
    confidence: float = 0.95,
    threads: int | None = None,
    progress: bool | Progress | None = None,
    allow_labels: bool = False,
    **changes: Any,
) -> Differences:
    """Is A better than B on these tasks, or is it the luck of the splits?

    Both are scored on the same splits of the samples that both have. The test is Nadeau and Bengio's corrected
    resampled t-test; its p-values are corrected for testing several tasks (Holm).

    Args:
        a: what ``evaluate`` takes: a method, a file, an array, a function.
        b: the other one.
        on: a task, a suite, a dataset, the id of one, or a list of these.
        protocol: how to score; by default as the suite or the dataset says.
        names: what to call both.
        confidence: of the intervals, and of a winner.
        threads: how many splits are trained side by side.
        progress: as in ``evaluate``.
        allow_labels: do not refuse a file with a task's labels in a column.
        **changes: fields of the protocol to change, such as ``k=5``.

    Returns:
        The difference on each task, with its interval and p-value.
    """
    if not 0 < confidence < 1:
        raise UsageError("bad confidence", expected="a number between 0 and 1", got=confidence)
    tasks = as_tasks(on, protocol, changes)
    quiet = progress is False
    source_a, source_b = (as_source(what, name=name, quiet=quiet) for what, name in zip((a, b), names, strict=True))
    with show_progress(progress) as tell:
        groups = [(rules, [task]) for task, rules in tasks]
        pairs = compare_tasks(
            source_a,
            source_b,
            groups,
            confidence=confidence,
            threads=threads,
            progress=tell,
            same_dataset=True,
            allow_labels=allow_labels,
        )
    if not any(pair.status == "ok" for pair in pairs):
        raise ScoreError("nothing could be compared", got=one_line("; ".join(dict.fromkeys(p.reason for p in pairs))))
    by_task = {pair.task: pair for pair in pairs}
    leaky = [warning for pair in pairs for warning in pair.warnings]
    cut = cut_groups((task, rules) for task, rules in tasks if by_task[task.label].status == "ok")
    for warning in dict.fromkeys([*leaky, *cut]):
        warnings.warn(warning, LeakWarning, stacklevel=2)
    in_order = {task.label: by_task[task.label] for task, _ in tasks}
    name_a, name_b = source_a.name, source_b.name
    if name_a == name_b:
        name_a, name_b = f"A ({name_a})", f"B ({name_b})"
    return Differences(name_a, name_b, in_order, confidence)


def compare_tasks(
    a: Source,
    b: Source,
    groups: Sequence[tuple[Protocol, Sequence[Task]]],
    *,
    confidence: float = 0.95,
    threads: int | None = None,
    progress: Progress | None = None,
    same_dataset: bool = False,
    allow_labels: bool = False,
) -> list[Pair]:
    """Score both on the same splits of every task, each under its protocol, and test the differences.

    A file with a task's labels in a column is refused unless ``allow_labels``.
    """
    rules = {task.label: protocol for protocol, tasks in groups for task in tasks}
    inputs = gather([task for _, tasks in groups for task in tasks], a, b, same_dataset=same_dataset)
    for source in (a, b):
        if isinstance(source, FileSource) and not allow_labels:
            refuse_labels(source.path, (leak for i in inputs if i.labels for leak in source.leaks(i.labels)))

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
    warnings = [f"{source.name}: {leak.sentence}" for source in (a, b) for leak in source.leaks(labels)]
    return Pair(
        task.label,
        "ok",
        a=scores[0],
        b=scores[1],
        test=compare_scores(*scores, confidence=confidence),
        greater_is_better=load_metric(scores[0].metric).greater_is_better,
        warnings=tuple(warnings),
    )
