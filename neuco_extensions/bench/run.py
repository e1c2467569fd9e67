"""A whole run as NeuCo-Bench does it: all tasks of a folder, in alphabetical order, from one random stream."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuco_core.errors import DataError, DependencyError, NeucoError
from neuco_extensions.bench.annotations import Annotation, find_annotations, select
from neuco_extensions.bench.config import BenchConfig
from neuco_extensions.bench.files import SUMMARY, check_name, make_run_folder, write_json
from neuco_extensions.bench.leaderboard import Leaderboard, rank, read_runs, write_leaderboard
from neuco_extensions.bench.svm import check_skopt, score_svm
from neuco_extensions.bench.tables import Table, read_table

if TYPE_CHECKING:
    from neuco_core.progress import Progress
    from neuco_core.scoring.scorer import Score
    from neuco_core.tables.embeddings import Embeddings


@dataclass(frozen=True)
class BenchJob:
    """What a run is given."""

    annotation_path: Path
    submission_file: Path
    output_dir: Path
    config: BenchConfig
    method_name: str
    phase: str = "results"
    exclude_file: Path | None = None
    strict: bool = False
    threads: int | None = None


@dataclass(frozen=True)
class BenchResult:
    """The results of a run, and where they are."""

    folder: Path
    summary: dict[str, Any]
    scores: dict[str, Score]
    failed: dict[str, str]
    notes: tuple[str, ...]


@dataclass
class _Inputs:
    """Everything read, before the first score."""

    embeddings: Embeddings
    tables: dict[str, Table]
    labelled: list[str]
    notes: list[str] = field(default_factory=list)


def run_bench(job: BenchJob, *, progress: Progress | None) -> BenchResult:
    """Score all tasks; each task's files are written when it is done, the summary when all are."""
    check_name(job.method_name, "--method_name")
    check_name(job.phase, "--phase")
    if job.config.enable_plots:
        _check_plots()  # before an hour of work, not after
    if job.config.search:
        check_skopt()
    annotations = find_annotations(job.annotation_path)
    chosen = select(annotations, job.config.task_filter)
    inputs = _read(job, annotations)
    folder = make_run_folder(job.output_dir, job.phase, job.method_name, datetime.now())
    scores, failed = _score_all(job, chosen, inputs, folder, progress)
    summary = _summary(folder.name, scores, job.config)
    if scores:
        write_json(folder / SUMMARY, summary)
    else:
        folder.rmdir()
    return BenchResult(folder, summary, scores, failed, tuple(inputs.notes))


def _check_plots() -> None:
    from neuco_core.figures import check_target

    try:
        check_target()
    except DependencyError as error:
        error.hint += ", or set `enable_plots: false` in the config"
        raise


def update_leaderboard(job: BenchJob, now: datetime | None = None) -> tuple[Leaderboard, Path]:
    """Rank all finished runs of the phase and write the result."""
    board = rank(read_runs(job.output_dir, job.phase))
    return board, write_leaderboard(board, job.output_dir, job.phase, now or datetime.now())


def _read(job: BenchJob, annotations: Sequence[Annotation]) -> _Inputs:
    from neuco_core.tables.embeddings import read_embeddings

    protocol = job.config.protocol
    options = {"strict": job.strict, "dim": protocol.embedding_dim, "gaps": not job.strict, "keep": True}
    with _short_turns(), ThreadPoolExecutor(1) as beside:
        reading = beside.submit(read_embeddings, job.submission_file, **options)  # type: ignore[arg-type]
        tables = {item.task: read_table(item, normalize=protocol.normalize_labels) for item in annotations}
        if protocol.probe == "linear":
            from neuco_core.scoring import kernel

            kernel.warm()
        embeddings = reading.result()
    notes = [f"{count} values became 0: {reason}" for reason, count in embeddings.replaced.items() if count]
    notes += [
        f"{name}: {count} rows left out: {reason}"
        for name, table in tables.items()
        for reason, count in (table.labels.dropped if table.labels else {}).items()
        if count
    ]
    notes += [f"{name}: {table.note}" for name, table in tables.items() if table.note]
    if job.exclude_file is not None:
        embeddings, count = _without(embeddings, job.exclude_file)
        notes.append(f"{count} embeddings left out, as {job.exclude_file.name} asks")
    # All label files count here, also those that task_filter leaves out: that is how NeuCo-Bench standardises.
    known = {name for table in tables.values() for name in table.ids}
    return _Inputs(embeddings, tables, [name for name in embeddings.ids if name in known], notes)


@contextmanager
def _short_turns() -> Iterator[None]:
    """Reading asks for the interpreter now and then, and would wait 5 ms each time for whoever has it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 25)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _without(embeddings: Embeddings, path: Path) -> tuple[Embeddings, int]:
    from neuco_core.tables.embeddings import make_embeddings

    try:
        excluded = {line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()}
    except (OSError, UnicodeDecodeError) as error:
        raise DataError("cannot read the list of ids to exclude", where=path, got=error) from error
    rows = [i for i, name in enumerate(embeddings.ids) if name not in excluded]
    if not rows:
        raise DataError("all embeddings are excluded", where=path)
    if len(rows) == len(embeddings.ids):
        return embeddings, 0
    ids = [embeddings.ids[i] for i in rows]
    kept = make_embeddings(ids, embeddings.values[rows], replaced=embeddings.replaced, ignored=embeddings.ignored)
    return kept, len(embeddings.ids) - len(rows)


def _score_all(
    job: BenchJob, chosen: Sequence[Annotation], inputs: _Inputs, folder: Path, progress: Progress | None
) -> tuple[dict[str, Score], dict[str, str]]:
    from neuco_core.scoring.scorer import score
    from neuco_core.scoring.stream import WordStream

    config = job.config
    scores: dict[str, Score] = {}
    failed: dict[str, str] = {}
    sizes = {item.task: _joined(inputs, item.task) for item in chosen}
    whole, before, stream = sum(sizes.values()) or 1, 0, WordStream(config.protocol.seed)
    for item in chosen:
        step = _step(progress, item.task, before / whole, sizes[item.task] / whole)
        table, start = inputs.tables[item.task], stream.position
        try:
            if table.labels is None:
                raise DataError(table.problem)
            if config.search:
                scored, found = score_svm(
                    inputs.embeddings, table.labels, config.protocol, config.search, inputs.labelled
                )
            else:
                scored = score(
                    inputs.embeddings,
                    table.labels,
                    config.protocol,
                    stream=stream,
                    standardize_ids=inputs.labelled,
                    threads=job.threads,
                    progress=step,
                    keep_models=config.enable_plots or config.store_probes,
                    allow_constant=not config.protocol.normalize_labels,
                )
                found = {**config.hyperparameters, **scored.settings}
        except NeucoError as error:
            failed[item.task] = str(error)
            stream.move_to(start + _words(job, inputs, sizes[item.task]))
        else:
            _write_task(folder / item.task, scored, found, job, inputs)
            if len(scored.classes) > 2:
                macro = f"{len(scored.classes)} classes: macro F1, a number that NeuCo-Bench does not have"
                inputs.notes.append(f"{item.task}: {macro}")
            scores[item.task] = scored
        stream.move_to(stream.position + (_refit_words(job, inputs) if sizes[item.task] else 0))
        before += sizes[item.task]
    return scores, failed


def _joined(inputs: _Inputs, task: str) -> int:
    known = set(inputs.embeddings.ids)
    return sum(name in known for name in inputs.tables[task].ids)


def _step(progress: Progress | None, name: str, before: float, share: float) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, total: progress(before + share * done / total, name)


def _words(job: BenchJob, inputs: _Inputs, samples: int) -> int:
    """Random words that a task takes even if it has no score (constant labels): the next task starts after them."""
    from neuco_core.scoring.stream import linear_words

    protocol = job.config.protocol
    if protocol.probe != "linear" or samples < 2:
        return 0
    test = math.ceil(protocol.test_size * samples)
    return protocol.k * linear_words(_dim(job, inputs), 1, samples - test, test, protocol.epochs)


def _refit_words(job: BenchJob, inputs: _Inputs) -> int:
    """To store a probe, NeuCo-Bench trains one more on all samples of the task, and later tasks start after it.

    Its weights and its bias are drawn anew, and each epoch's loader draws a seed of two words; it does not shuffle.
    """
    return _dim(job, inputs) + 1 + 2 * job.config.protocol.epochs if job.config.store_probes else 0


def _dim(job: BenchJob, inputs: _Inputs) -> int:
    return job.config.protocol.embedding_dim or int(inputs.embeddings.values.shape[1])


def _write_task(folder: Path, score: Score, found: dict[str, Any], job: BenchJob, inputs: _Inputs) -> None:
    """Write a task's files; ``found`` are the settings of its probe, with those that a search has chosen."""
    config = job.config
    if config.enable_plots:
        from neuco_extensions.bench.plots import write_plots

        write_plots(folder, score, job.submission_file.stem)
    if config.store_probes:
        from neuco_extensions.bench.probes import write_probe

        labels = inputs.tables[score.task].labels
        if labels is not None:
            write_probe(folder / "probe", score, inputs.embeddings, labels, inputs.labelled)
    result: dict[str, Any] = {
        "q_stat": score.q,
        "mean_score": score.mean,
        "std_dev": score.std,
        "hyperparamaters": found,  # spelled as NeuCo-Bench spells it
    }
    if config.output_fold_results:
        result["q_t"] = list(score.per_split)
    write_json(folder / f"{score.task}_score.json", score.to_json())
    write_json(folder / f"{score.task}_result.json", result)


def _summary(experiment: str, scores: dict[str, Score], config: BenchConfig) -> dict[str, Any]:
    q = {task: score.q for task, score in scores.items()}
    means = {task: score.mean for task, score in scores.items()}
    return {
        "experiment": experiment,
        "overall_q_score": _mean(list(q.values())),
        "overall_acc_score": _mean(list(means.values())),
        "task_q_scores": q,
        "task_acc_scores": means,
        "config": dict(config.source),
    }


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
