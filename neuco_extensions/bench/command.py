"""``neuco bench``: the drop-in for NeuCo-Bench's ``python main.py``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from neuco_core.cli.options import prompt_interrupt
from neuco_core.cli.output import echo_json, json_option, table
from neuco_core.errors import ScoreError
from neuco_core.files import jsonable
from neuco_core.progress import show_progress
from neuco_core.scoring.quality import middle, odd_splits, split_count
from neuco_core.text import counted
from neuco_extensions.bench.config import read_config
from neuco_extensions.bench.leaderboard import rank, read_runs, write_leaderboard
from neuco_extensions.bench.run import BenchJob, BenchResult, run_bench

F = TypeVar("F", bound=Callable[..., Any])


def _option(name: str, **settings: Any) -> Callable[[F], F]:
    """An option in NeuCo-Bench's spelling and in the usual one: ``--method_name`` and ``--method-name``."""
    dashed = name.replace("_", "-")
    names = (f"--{name}",) if dashed == name else (f"--{name}", f"--{dashed}")
    return click.option(*names, name, **settings)


@click.command()
@_option("annotation_path", required=True, type=click.Path(path_type=Path), help="Folder of <task>__<type>.csv files.")
@_option("submission_file", required=True, type=click.Path(path_type=Path), help="The embeddings to score.")
@_option("output_dir", default="results", show_default=True, type=click.Path(path_type=Path), help="Where results go.")
@_option("config", default="config.yaml", show_default=True, type=click.Path(path_type=Path), help="The YAML config.")
@_option("method_name", help="Name of the run.  [default: the embeddings file's]")
@_option("phase", default="results", show_default=True, help="Runs of one phase are ranked together.")
@_option("exclude_file", type=click.Path(path_type=Path), help="A list of ids to leave out.")
@_option(
    "svm_search",
    type=click.Choice(("own", "upstream")),
    default="own",
    show_default=True,
    help="For probe_type svm: search inside each training part, or on the test parts as NeuCo-Bench does.",
)
@click.option("--threads", type=click.IntRange(min=1), help="Splits trained side by side.")
@click.option("--strict", is_flag=True, help="Refuse embeddings with missing values instead of reading them as 0.")
@json_option
def bench(
    annotation_path: Path,
    submission_file: Path,
    output_dir: Path,
    config: Path,
    method_name: str | None,
    phase: str,
    exclude_file: Path | None,
    svm_search: str,
    threads: int | None,
    strict: bool,
    as_json: bool,
) -> None:
    """Run NeuCo-Bench on a file of embeddings and a folder of labels.

    Takes the options and the config of NeuCo-Bench's main.py, gives the same scores, and writes the same files to
    OUTPUT_DIR/PHASE/METHOD_NAME_<time>/.
    """
    job = BenchJob(
        annotation_path=annotation_path,
        submission_file=submission_file,
        output_dir=output_dir,
        config=read_config(config, svm_search=svm_search),
        method_name=submission_file.stem if method_name is None else method_name,
        phase=phase,
        exclude_file=exclude_file,
        strict=strict,
        threads=threads,
    )
    _note(job.config.notes)  # before the work: a mistake in the config should show at once
    with prompt_interrupt(), show_progress() as progress:
        result = run_bench(job, progress=progress)
    _note(result.notes)
    _show(result, as_json)
    if job.config.file.update_leaderboard and result.scores:
        board = rank(read_runs(output_dir, phase))
        path = write_leaderboard(board, output_dir, phase, datetime.now())
        rows = [
            [str(row["aggregated_rank"]), row["experiment"], f"{row['mean_score']:.3f}", f"{row['weighted_score']:.3f}"]
            for row in board.rows
        ]
        click.echo("\n" + table(("rank", "experiment", "mean Q", "weighted rank"), rows, right=(0, 2, 3)), err=as_json)
        for name, tasks in board.incomplete.items():
            click.echo(f"not ranked: {name} lacks {', '.join(tasks)}", err=as_json)
        click.echo(f"leaderboard in {path}", err=as_json)
    if result.failed:
        raise ScoreError(f"{len(result.failed)} of {counted(len(result.failed) + len(result.scores), 'task')} failed")


def _note(notes: Sequence[str]) -> None:
    for note in notes:
        click.echo(f"neuco: note: {note}", err=True)


def _show(result: BenchResult, as_json: bool) -> None:
    if as_json:
        echo_json(jsonable({"folder": str(result.folder), "failed": result.failed, **result.summary}))
        return
    rows = []
    for task, score in result.scores.items():
        numbers = [f"{value:.4f}" for value in (score.mean, score.std, middle(score.per_split))]
        about = [split_count(score.per_split), str(score.samples["used"])]
        rows.append([task, score.metric, *numbers, f"{score.q:.3f}", *about])
    if rows:
        overall = result.summary["overall_acc_score"], result.summary["overall_q_score"]
        rows.append(["overall", "", f"{overall[0]:.4f}", "", "", f"{overall[1]:.3f}", "", ""])
        columns = ("task", "metric", "mean", "std", "median", "Q", "splits", "samples")
        click.echo(table(columns, rows, right=range(2, 8)))
    for task, score in result.scores.items():
        for remark in odd_splits(score.splits, len(score.per_split)):
            click.echo(f"{task}: {remark}")
    for task, reason in result.failed.items():
        click.echo(f"failed {task}: {reason}")
    if result.scores:
        click.echo(f"results in {result.folder}")
