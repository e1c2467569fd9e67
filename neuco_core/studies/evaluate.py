"""``evaluate(what, on)``: one call from what is in hand to scores, a table, a figure and a place on a board."""

from __future__ import annotations

import html
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, overload

from neuco_core.boards.trial_rank import Standing, rank_of, rank_on
from neuco_core.errors import DataError, NeucoError, ScoreError, UnknownIdError, UsageError
from neuco_core.plugins.catalog import catalog, load_suite
from neuco_core.progress import Progress, show_progress
from neuco_core.protocol import Protocol
from neuco_core.runs.files import examples, missing_samples, refuse_labels
from neuco_core.scoring.cell import outcome_of, score_cell
from neuco_core.scoring.leaks import LeakWarning, columns_used
from neuco_core.scoring.quality import middle, odd_splits, ruled, split_count
from neuco_core.scoring.scorer import Score
from neuco_core.scoring.splits import cut_groups
from neuco_core.specs import Suite, Task
from neuco_core.studies.sources import WHAT, FileSource, MethodSource, Source, as_source, as_tasks
from neuco_core.tables.embeddings import Embeddings, write_embeddings
from neuco_core.tables.labels import Labels
from neuco_core.text import LONGEST_REPR, counted, join_names, one_line

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

COLUMNS = ("protocol", "metric", "mean", "std", "median", "q", "splits", "samples", "reason")


@dataclass(frozen=True, repr=False)
class Results:
    """The scores by task, in the order asked for. ``left_out`` says of tasks why they have none.

    ``notes`` tell what is out of the ordinary: columns that seem to hold labels, means that a few splits rule.
    """

    name: str
    scores: Mapping[str, Score]
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: Source | None = field(default=None, compare=False)

    @property
    def mean_q(self) -> float:
        """NaN where nothing could be scored."""
        return math.fsum(score.q for score in self.scores.values()) / (len(self.scores) or math.nan)

    def frame(self) -> pandas.DataFrame:
        """A row for each task, also for those without a score: then ``reason`` says why."""
        import pandas as pd  # heavy: half a second, and only here

        rows: dict[str, dict[str, Any]] = {
            task: {
                "protocol": score.protocol.name,
                "metric": score.metric,
                "mean": score.mean,
                "std": score.std,
                "median": middle(score.per_split),
                "q": score.q,
                "splits": split_count(score.per_split),
                "samples": score.samples["used"],
            }
            for task, score in self.scores.items()
        }
        rows |= {task: {"reason": reason} for task, reason in self.left_out.items()}
        table = pd.DataFrame.from_dict(rows, orient="index", columns=list(COLUMNS)).rename_axis("task")
        return table if self.left_out else table.drop(columns="reason")

    def plot(self, path: str | Path | None = None) -> Figure:
        """Q by task; with a path, the figure is written there, too."""
        from neuco_core.figures import blank, check_target, save  # optional extra: matplotlib

        target = Path(path) if path is not None else None
        check_target(target)
        figure, axes = blank(7, 1 + 0.32 * len(self.scores))
        axes.barh(list(self.scores), [score.q for score in self.scores.values()], color="#4c78a8")
        axes.invert_yaxis()
        axes.axvline(self.mean_q, color="#888888", linestyle="--", linewidth=1)
        axes.set(xlabel="Q", title=f"{self.name}: mean Q {self.mean_q:.2f}")
        if target is not None:
            save(figure, target)
        return figure

    def rank_on(self, suite: str | Suite, **options: Any) -> Standing:
        """Where this would stand on a suite's board, by the code that makes the boards; nothing is recorded.

        Everything is scored on all tasks of the suite under its protocol, whatever was asked for here.
        """
        if isinstance(self.source, MethodSource) and self.source.method.origin is not None:
            return rank_of(suite, self.source.method.label, **options)
        if self.source is None:
            raise UsageError("no embeddings to rank", hint="Results of evaluate() have them")
        chosen = load_suite(suite) if isinstance(suite, str) else suite
        by_dataset = {task.dataset: task for task in catalog().suite_tasks(chosen)}
        if not isinstance(self.source, FileSource) and len(by_dataset) > 1:
            got = ", ".join(by_dataset)
            raise UsageError("an encoder is ranked on suites of one dataset", where=chosen.id, got=got)
        embeddings = self.source.embeddings(next(iter(by_dataset.values())))
        with TemporaryDirectory() as folder:
            path = Path(folder, f"{Path(self.name).stem}.npz")
            write_embeddings(embeddings, path)
            return rank_on(chosen, path, name=self.name, **options)

    def __getitem__(self, task: str) -> Score:
        if task in self.left_out:
            raise ScoreError(f"no score on {task}: {self.left_out[task]}")
        if task not in self.scores:
            raise UnknownIdError("score on task", task, self.scores)
        return self.scores[task]

    def __iter__(self) -> Iterator[Score]:
        return iter(self.scores.values())

    def __len__(self) -> int:
        return len(self.scores)

    def _about(self) -> str:
        if not self.scores:
            reasons = join_names(list(dict.fromkeys(self.left_out.values())), 1)
            return f"{self.name}: no score on {counted(len(self.left_out), 'task')}: {reasons}"
        rules = join_names(list(dict.fromkeys(score.protocol.name for score in self)), 2)
        gaps = f", {counted(len(self.left_out), 'task')} without a score" if self.left_out else ""
        return f"{self.name}: mean Q {self.mean_q:.2f} over {counted(len(self), 'task')} under {rules}{gaps}"

    def __repr__(self) -> str:
        each = join_names([f"{task} {score.q:.1f}" for task, score in self.scores.items()], 4)
        return f"Results({one_line(f'{self._about()}; Q: {each}', LONGEST_REPR)})"

    def _repr_html_(self) -> str:
        table = self.frame().to_html(float_format=lambda value: f"{value:.4g}", na_rep="–", border=0)
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return f"<p>{html.escape(self._about())}</p>{table}" + (f"<ul>{notes}</ul>" if notes else "")


@overload
def evaluate(
    what: list[Any],
    on: Any,
    protocol: str | Protocol | None = None,
    *,
    ids: None = None,
    name: str = "",
    threads: int | None = None,
    progress: bool | Progress | None = None,
    allow_labels: bool = False,
    **changes: Any,
) -> list[Results]: ...


@overload
def evaluate(
    what: Any,
    on: Any,
    protocol: str | Protocol | None = None,
    *,
    ids: Iterable[object] | None = None,
    name: str = "",
    threads: int | None = None,
    progress: bool | Progress | None = None,
    allow_labels: bool = False,
    **changes: Any,
) -> Results: ...


def evaluate(
    what: Any,
    on: Any,
    protocol: str | Protocol | None = None,
    *,
    ids: Iterable[object] | None = None,
    name: str = "",
    threads: int | None = None,
    progress: bool | Progress | None = None,
    allow_labels: bool = False,
    **changes: Any,
) -> Results | list[Results]:
    """Score embeddings, or what makes them, on one or many tasks.

    Args:
        what: a method or its id, a path, ``Embeddings``, a pair (ids, array), an array with ``ids=``, a DataFrame with
            an ``id`` column or index, a mapping of ids to vectors, a function that returns one row of numbers for each
            sample of a ``CubeBatch``, or a list of these.
        on: a task, a suite, a dataset, the id of one, or a list of these.
        protocol: how to score; by default as the suite or the dataset says.
        ids: the ids of the rows of an array.
        name: what to call the source in results.
        threads: how many splits are trained side by side.
        progress: False for silence, or a function of a share and a name; by default a bar, or a line a minute.
        allow_labels: do not refuse a table or a file with a task's labels in a column.
        **changes: fields of the protocol to change, such as ``k=5``.

    Returns:
        ``Results``, or a list of them if ``what`` is a list. A task that cannot be scored is left out with the reason,
        unless it is the only one: then the error is raised. In a list, a source that fails has no scores.
    """
    tasks = as_tasks(on, protocol, changes)
    several = isinstance(what, list) and ids is None
    if several and name:
        raise UsageError("name is for one source", got=counted(len(what), "source"))
    sources = [as_source(item, ids, name, quiet=progress is False) for item in (what if several else [what])]
    if not sources:
        raise UsageError("nothing to score", expected=WHAT, got="an empty list")
    results = []
    with show_progress(progress) as tell:
        for number, source in enumerate(sources):
            step = partial(_tell, tell, source.name if several else "", number, len(sources)) if tell else None
            try:
                results.append(_evaluate(source, tasks, threads, step, allow_labels))
            except NeucoError as error:
                if not several:
                    raise
                results.append(Results(source.name, {}, {task.label: str(error) for task, _ in tasks}, (), source))
    return results if several else results[0]


def _evaluate(
    source: Source,
    tasks: Sequence[tuple[Task, Protocol]],
    threads: int | None,
    tell: Progress | None,
    allow_labels: bool,
) -> Results:
    """One source on all tasks; warnings are of the line that called ``evaluate``."""
    scores: dict[str, Score] = {}
    left_out: dict[str, str] = {}
    notes: dict[str, None] = {}  # each once, in order
    lacking: dict[str, list[str]] = {}  # what of the samples of some tasks has no embedding, by the sentence

    def warn(message: str, kind: type[UserWarning] = UserWarning) -> None:
        if message not in notes:
            warnings.warn(message, kind, stacklevel=4)
        notes[message] = None

    if isinstance(source, FileSource):
        notes[f"{source.name}: {columns_used(source.read())}"] = None
    for number, (task, rules) in enumerate(sorted(tasks, key=lambda item: item[0].dataset)):
        try:
            embeddings, labels = _inputs(source, task)
        except NeucoError as error:
            outcome = outcome_of(error)
        else:
            for doubt in source.doubts:
                warn(f"{source.name}: {doubt}")
            leaks = source.leaks(labels)
            if isinstance(source, FileSource) and not allow_labels:
                refuse_labels(source.path, leaks)
            for leak in leaks:
                warn(leak.sentence, LeakWarning)
            step = partial(_split_done, tell, task.label, number, len(tasks)) if tell else None
            outcome = score_cell(embeddings, labels, rules, metric=task.metric, threads=threads, progress=step)
            if outcome.score and (gap := missing_samples(embeddings.ids, labels.ids)):
                lacking.setdefault(gap, []).append(task.label)
        if len(tasks) == 1:
            outcome.require()
        if outcome.score is None:
            left_out[task.label] = outcome.reason
        else:
            scores[task.label] = outcome.score
    if not scores:
        first, reason = next(iter(left_out.items()))
        what = f"none of {counted(len(left_out), 'task')} could be scored; {first}: {reason}"
        raise ScoreError(what, where=source.name)
    for gap in _gaps(source, scores, lacking):
        warn(gap)
    notes |= dict.fromkeys(cut_groups((task, rules) for task, rules in tasks if task.label in scores))
    for label, score in scores.items():
        for message in odd_splits(score.splits, len(score.per_split)):
            notes[f"{label}: {message}"] = None
        if message := ruled(score.per_split):
            notes[f"{label}: a few splits rule the mean: {message}"] = None
    in_order = {task.label: scores[task.label] for task, _ in tasks if task.label in scores}
    return Results(source.name, in_order, left_out, tuple(notes), source)


def _gaps(source: Source, scores: Mapping[str, Score], lacking: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """What the embeddings lack: numbers (of a file that is known before), and samples that have a label."""
    name = source.name
    replaced = max(score.samples["replaced_values"] for score in scores.values())
    if replaced and not isinstance(source, FileSource):
        yield f"{name}: {counted(replaced, 'value')} missing or not a number, counted as 0"
    for gap, tasks in lacking.items():
        yield f"{name} on {join_names(tasks, 2)}: {gap}"


def _inputs(source: Source, task: Task) -> tuple[Embeddings, Labels]:
    if isinstance(source, MethodSource) and (reason := source.why_not(task, None)):
        raise DataError(reason)
    labels, embeddings = task.labels(), source.embeddings(task)
    if isinstance(source, FileSource) and not source.matches(labels):
        got = examples(embeddings.ids, labels.ids)
        raise DataError(f"no id of {source.name} has a label in {task.id}", got=got)
    return embeddings, labels


def _split_done(tell: Progress, task: str, number: int, count: int, done: int, total: int) -> None:
    tell((number + done / total) / count, task)


def _tell(tell: Progress, source: str, number: int, count: int, share: float, task: str) -> None:
    tell((number + share) / count, f"{source} on {task}" if source else task)
