"""A whole run as NeuCo-Bench does it: all tasks of a folder, in alphabetical order, from one random stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from neuco_core.errors import DataError, DependencyError, NeucoError, UnknownIdError
from neuco_core.figures import check_target
from neuco_core.progress import Progress
from neuco_core.scoring import kernel
from neuco_core.scoring.cell import score_cell
from neuco_core.scoring.probes.linear import WordStream, linear_words
from neuco_core.scoring.scorer import Score
from neuco_core.tables.embeddings import Embeddings, read_embeddings
from neuco_extensions.bench.config import BenchConfig
from neuco_extensions.bench.labels import LabelFile, TaskLabels, find_label_files, read_task_labels
from neuco_extensions.bench.outputs import SUMMARY, check_name, make_run_folder, write_json, write_plots, write_probe
from neuco_extensions.bench.svm import check_skopt, score_svm


@dataclass(frozen=True)
class BenchJob:
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
    folder: Path
    summary: dict[str, Any]
    scores: dict[str, Score]
    failed: dict[str, str]
    notes: tuple[str, ...]


@dataclass
class BenchInputs:
    """Everything read, before the first score. ``labelled`` are the ids that embeddings are standardised by."""

    embeddings: Embeddings
    tasks: dict[str, TaskLabels]
    labelled: list[str]
    notes: list[str] = field(default_factory=list)


def run_bench(job: BenchJob, *, progress: Progress | None) -> BenchResult:
    """Score all tasks; each task's files are written when it is done, the summary when all are."""
    config = job.config
    check_name(job.method_name, "--method_name")
    check_name(job.phase, "--phase")
    if config.file.enable_plots:  # what is missing is said before an hour of work, not after
        try:
            check_target()
        except DependencyError as error:
            error.hint += ", or set `enable_plots: false` in the config"
            raise
    if config.search:
        check_skopt()
    files = find_label_files(job.annotation_path)
    tasks = [file.task for file in files]
    for name in config.file.task_filter or ():  # a name without a file is an error, not an empty run
        if name not in tasks:
            raise UnknownIdError("task", name, tasks, hint=f"The folder has {', '.join(tasks)}.")
    chosen = [file for file in files if file.task in (config.file.task_filter or tasks)]
    inputs = _read(job, files)
    folder = make_run_folder(job.output_dir, job.phase, job.method_name, datetime.now())
    scores, failed = _score_all(job, chosen, inputs, folder, progress)
    q = {task: score.q for task, score in scores.items()}
    means = {task: score.mean for task, score in scores.items()}
    summary = {
        "experiment": folder.name,
        "overall_q_score": fmean(q.values()) if q else math.nan,
        "overall_acc_score": fmean(means.values()) if means else math.nan,
        "task_q_scores": q,
        "task_acc_scores": means,
        "config": dict(config.source),
    }
    if scores:
        write_json(folder / SUMMARY, summary)
    else:
        folder.rmdir()
    return BenchResult(folder, summary, scores, failed, tuple(inputs.notes))


def _read(job: BenchJob, files: Sequence[LabelFile]) -> BenchInputs:
    protocol = job.config.protocol
    with ThreadPoolExecutor(1) as beside:
        reading = beside.submit(
            read_embeddings, job.submission_file, strict=job.strict, dim=protocol.embedding_dim, gaps=not job.strict
        )
        tasks = {file.task: read_task_labels(file, normalize=protocol.normalize_labels) for file in files}
        if protocol.probe == "linear":
            kernel.warm()
        embeddings = reading.result()
    notes = [f"{count} values became 0: {reason}" for reason, count in embeddings.replaced.items() if count]
    for name, task in tasks.items():
        dropped = task.labels.dropped if task.labels else {}
        notes += [f"{name}: {count} rows left out: {reason}" for reason, count in dropped.items() if count]
    notes += [f"{name}: {task.note}" for name, task in tasks.items() if task.note]
    if job.exclude_file is not None:
        try:
            lines = job.exclude_file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DataError("cannot read the list of ids to exclude", where=job.exclude_file, got=error) from error
        before = len(embeddings)
        embeddings = embeddings.only(set(embeddings.ids) - {line.strip() for line in lines})
        if not len(embeddings):
            raise DataError("all embeddings are excluded", where=job.exclude_file)
        notes.append(f"{before - len(embeddings)} embeddings left out, as {job.exclude_file.name} asks")
    # All label files count here, also those that task_filter leaves out: that is how NeuCo-Bench standardises.
    labelled = {sample for task in tasks.values() for sample in task.ids}
    return BenchInputs(embeddings, tasks, [name for name in embeddings.ids if name in labelled], notes)


def _score_all(
    job: BenchJob, chosen: Sequence[LabelFile], inputs: BenchInputs, folder: Path, progress: Progress | None
) -> tuple[dict[str, Score], dict[str, str]]:
    scores: dict[str, Score] = {}
    failed: dict[str, str] = {}
    protocol, embedded = job.config.protocol, set(inputs.embeddings.ids)
    dim = protocol.embedding_dim or inputs.embeddings.dim
    sizes = {file.task: len(embedded.intersection(inputs.tasks[file.task].ids)) for file in chosen}
    whole, before, stream = sum(sizes.values()) or 1, 0, WordStream(protocol.seed)
    for file in chosen:
        size, start = sizes[file.task], stream.position
        step = partial(_tell, progress, file.task, before / whole, size / whole) if progress else None
        try:
            score, settings = _score_task(job, inputs, inputs.tasks[file.task], stream, step)
        except NeucoError as error:
            failed[file.task] = str(error)
            stream.move_to(start)
            if protocol.probe == "linear" and size > 1:
                # There, a task takes its random words even if it has no score, and the next one starts after them.
                test = math.ceil(protocol.test_size * size)
                words = linear_words(dim, 1, size - test, test, protocol.epochs)
                stream.move_to(start + protocol.k * words)
        else:
            _write_task(folder / file.task, score, settings, job, inputs)
            if len(score.classes) > 2:
                macro = f"{len(score.classes)} classes: macro F1, a number that NeuCo-Bench does not have"
                inputs.notes.append(f"{file.task}: {macro}")
            scores[file.task] = score
        if job.config.store_probes and size:
            # To store a probe, NeuCo-Bench trains one more on all samples of the task, and later tasks start after it.
            # Its weights and its bias are drawn anew, and each epoch's loader draws a seed of two words; it does not
            # shuffle.
            stream.move_to(stream.position + dim + 1 + 2 * protocol.epochs)
        before += size
    return scores, failed


def _tell(progress: Progress, task: str, before: float, share: float, done: int, total: int) -> None:
    progress(before + share * done / total, task)


def _score_task(
    job: BenchJob,
    inputs: BenchInputs,
    task: TaskLabels,
    stream: WordStream,
    step: Callable[[int, int], None] | None,
) -> tuple[Score, dict[str, Any]]:
    """A task's score, and the settings of its probe with those that a search has chosen."""
    config = job.config
    if task.labels is None:
        raise DataError(task.problem)
    if config.search:
        return score_svm(inputs.embeddings, task.labels, config.protocol, config.search, inputs.labelled)
    score = score_cell(
        inputs.embeddings,
        task.labels,
        config.protocol,
        stream=stream,
        standardize_ids=inputs.labelled,
        threads=job.threads,
        progress=step,
        keep_models=config.file.enable_plots or config.store_probes,
        allow_constant=not config.protocol.normalize_labels,
    ).require()
    return score, {**config.hyperparameters, **score.settings}


def _write_task(folder: Path, score: Score, settings: dict[str, Any], job: BenchJob, inputs: BenchInputs) -> None:
    config, labels = job.config, inputs.tasks[score.task].labels
    if config.file.enable_plots:
        write_plots(folder, score, job.submission_file.stem)
    if config.store_probes and labels is not None:
        write_probe(folder / "probe", score, inputs.embeddings, labels, inputs.labelled)
    result: dict[str, Any] = {
        "q_stat": score.q,
        "mean_score": score.mean,
        "std_dev": score.std,
        "hyperparamaters": settings,  # spelled as NeuCo-Bench spells it
    }
    if config.file.output_fold_results:
        result["q_t"] = list(score.per_split)
    write_json(folder / f"{score.task}_score.json", score.to_json())
    write_json(folder / f"{score.task}_result.json", result)
