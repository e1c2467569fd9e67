"""``neuco geobench``: submissions to the GEO-Bench-2 leaderboard, checked, kept, ranked and written; and tuning."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import click
import msgspec

from neuco_core.boards.cells import from_records
from neuco_core.boards.formatting import show
from neuco_core.boards.model import plain
from neuco_core.boards.report import leading_cells, notes
from neuco_core.boards.store import current
from neuco_core.cli.options import choose, ids_of, prompt_interrupt, split_commas, task_options
from neuco_core.cli.output import clean, echo_json, json_option, table
from neuco_core.env import registry_dir
from neuco_core.errors import DataError, ScoreError, UnknownIdError, UsageError
from neuco_core.files import dump, write_atomic
from neuco_core.plugins.catalog import load_protocol
from neuco_core.progress import show_progress
from neuco_core.runs.engine import open_engine
from neuco_core.specs import Task
from neuco_core.studies.sources import MethodSource, Source, gather, grouped, open_source
from neuco_core.tables.labels import Labels
from neuco_core.text import counted, join_names
from neuco_extensions.geobench.board import slug
from neuco_extensions.geobench.facts import CAPABILITIES
from neuco_extensions.geobench.folder import read_folder
from neuco_extensions.geobench.iqm import GEOBENCH, Normaliser, capability_table, folders, load_normaliser, score
from neuco_extensions.geobench.published import of_submissions
from neuco_extensions.geobench.search import TuningPlan
from neuco_extensions.geobench.submission import (
    GeobenchSubmission,
    from_folder,
    list_submissions,
    load_submission,
    submissions_dir,
    to_folder,
    write_submission,
)
from neuco_extensions.geobench.tune import TuningRun, read_all_tuned, read_tuned, submission_of, tune_on, write_tuned
from neuco_extensions.geobench.tune import tune as tune_pair
from neuco_extensions.geobench.validate import about_faults
from neuco_extensions.geobench.validate import validate as find_faults

WITH = "Also rank the submission in this folder, and show where it would stand; nothing is written. Repeatable."
FOLDER = click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")


@click.group()
def geobench() -> None:
    """Check, keep, rank and write submissions to the GEO-Bench-2 leaderboard."""


@geobench.command()
@FOLDER
@click.option("--official", is_flag=True, help="Only the rules of the leaderboard's own validator.")
@json_option
def check(folder: Path, official: bool, as_json: bool) -> None:
    """Name all faults of the submission in DIR at once: line, column, value and cure. Exits with 4 if there are any."""
    faults = find_faults(folder, official=official)
    if as_json:
        echo_json([vars(fault) | {"where": fault.where} for fault in faults])
    else:
        for fault in faults:
            click.echo(clean(f"{fault.rule}: {fault}"))
    if faults:
        theirs = sum(fault.official for fault in faults)
        message = f"{counted(len(faults), 'fault')}, {theirs} of them by the leaderboard's own rules"
        raise DataError(message, where=folder)
    if not as_json:
        click.echo("no faults" + (" by the official rules" if official else ""))


@geobench.command(name="import")
@FOLDER
@click.option("--id", "name", default="", help="Name in the registry; that of the folder if left out.")
@click.option("--title", default="", help="How people call it.")
@click.option("--source", default="", help="Where the numbers come from.")
def import_folder(folder: Path, name: str, title: str, source: str) -> None:
    """Put the submission in DIR into the registry, as one directory of its own."""
    name = name or re.sub(r"[^a-z0-9_-]+", "-", folder.resolve().name.lower()).strip("-_")
    if (submissions_dir(registry_dir()) / name).exists():
        hint = "Choose another --id, or remove the old one"
        raise DataError("there is a submission of that name", where=submissions_dir(registry_dir()) / name, hint=hint)
    if faults := about_faults(title, source):
        raise UsageError(f"bad --{faults[0].column}: {faults[0].what}", hint=faults[0].cure)
    submission = from_folder(folder, name, title=title, source=source)
    written = write_submission(registry_dir(), submission)
    click.echo(f"{written}: {_size(submission)}")
    if further := read_folder(folder).further:
        click.echo(f"left out, since the leaderboard does not read them: {join_names(further, 20)}")


def _size(submission: GeobenchSubmission) -> str:
    datasets = {line.dataset for line in submission.runs}
    runs = sum(len(line.scores) for line in submission.runs)
    sizes = (len(submission.backbones), "backbone"), (len(datasets), "dataset"), (runs, "run")
    return ", ".join(counted(*size) for size in sizes)


@geobench.command(name="list")
@json_option
def list_all(as_json: bool) -> None:
    """List the submissions of the registry."""
    rows = [
        (s.about.id, s.about.tuning, len(s.backbones), len({r.dataset for r in s.runs}), s.about.title)
        for s in list_submissions(registry_dir())
    ]
    names = ("id", "tuning", "backbones", "datasets", "title")
    if as_json:
        echo_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    click.echo(table(("submission", *names[1:]), [[str(value) for value in row] for row in rows], right={2, 3}))


@geobench.command()
@click.argument("submission", required=False)
@click.option(
    "--tuned", type=click.Path(file_okay=False, path_type=Path), help="What `geobench tune --out` has written."
)
@click.option("--as", "named", multiple=True, metavar="TASK=DATASET", help="Which dataset of GEO-Bench a task is.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="A new folder.")
def export(submission: str | None, tuned: Path | None, named: Sequence[str], out: Path) -> None:
    """Write SUBMISSION, a name in the registry, or what was tuned, as the folder that the leaderboard takes."""
    if (submission is None) == (tuned is None):
        raise UsageError("name either a submission or --tuned FOLDER")
    if tuned is not None:
        datasets = dict(pair.partition("=")[::2] for pair in named)
        exported = submission_of(read_all_tuned(tuned), datasets)
    else:
        exported = load_submission(str(submission))
    to_folder(exported, out)
    click.echo(f"{out}: {_size(exported)}")


@geobench.command()
@click.option("--capability", default="", metavar="NAME", help="Rank by this one, e.g. detection; Core if left out.")
@click.option("--aggregation", type=click.Choice(["pooled", "mean"]), default="pooled", show_default=True)
@click.option("--tuning", type=click.Choice(["all", "frozen", "full_ft"]), default="all", show_default=True)
@click.option("--decoder", default="all", show_default=True, help="Only rows with this decoder, e.g. UNet.")
@click.option("--at-least", "smallest", type=int, default=0, metavar="M", help="Millions of parameters.")
@click.option("--at-most", "largest", type=int, default=0, metavar="M", help="Millions of parameters.")
@click.option("--with", "folders", multiple=True, type=click.Path(path_type=Path), metavar="DIR", help=WITH)
@json_option
def board(capability: str, folders: Sequence[Path], as_json: bool, **options: str | int) -> None:
    """Print the board of all submissions; `neuco leaderboard show geobench-2 --details` tells more of it."""
    yours = [from_folder(folder, f"yours-{number}") for number, folder in enumerate(folders, 1)]
    published = of_submissions([*list_submissions(registry_dir()), *yours])
    if published is None:
        raise DataError("there is no submission", where=registry_dir(), hint="See `neuco geobench import --help`")
    keys = [slug(name) for name in (*CAPABILITIES, "Overall")]
    meant = [key for key in keys if capability and key.startswith(slug(capability))]
    if capability and len(meant) != 1:
        raise UnknownIdError("capability", capability, keys)
    ranked = published.board({**options, "by": "".join(meant)})
    if as_json:
        echo_json(plain(ranked))
        return
    # Without the datasets, and with the interval of the capability that it ranks by alone: that fits a terminal.
    leading, others = ranked.columns[:2], ranked.columns[2:]
    heads = ("Rank", "Method", *(column.label for column in ranked.columns))
    rows = [(*leading_cells(row, leading), *(show(c, row.values.get(c.key)) for c in others)) for row in ranked.shown]
    click.echo(table(heads, rows, right=set(range(len(heads))) - {1}))
    for part in ranked.sections:
        if part.about == "column" and part.title == leading[-1].label:
            click.echo(clean(part.lead))
    for note in notes(ranked):
        if note.startswith(("Ranking:", "Intervals:", "Not ranked:", "Left out", "Mixed:")):
            click.echo(clean(note))


@geobench.command()
@click.argument("suite", shell_complete=ids_of("suite"))
@click.option("--id", "name", required=True, metavar="NAME", help="Its name, with a version: olinda-v1.")
def normaliser(suite: str, name: str) -> None:
    """Pin what becomes 0 and 1 on each task of SUITE: the least and the largest score of a split in the records.

    A suite of the kind "geobench" names it as its option `normaliser`. It is written once and never changed.
    """
    now = current(registry_dir())
    (chosen,) = now.choose([suite])
    cells = from_records(now.records, chosen, now.why_stale)
    scores: dict[str, list[float]] = {}
    for (_, task), cell in cells.cells.items():
        scores.setdefault(task, []).extend(value for value in cell.splits if cell.scored and value is not None)
    path = folders()[0] / f"{name}.json"
    if path.exists():
        raise DataError("there is a normaliser of that name", where=path, hint="Raise the version in its --id")
    if missing := sorted(task for task in chosen.tasks if len(set(scores.get(task, ()))) < 2):
        raise DataError("tasks without scores to normalise by", where=suite, got=", ".join(missing))
    base = tuple(method.id for method in cells.methods)
    ends = {task: (float(min(values)), float(max(values))) for task, values in sorted(scores.items())}
    made = Normaliser(name, ends, base, f"records of the suite {suite}, version {chosen.version}")
    write_atomic(path, dump(msgspec.to_builtins(made)))
    click.echo(f"{path}: {counted(len(ends), 'task')}, {counted(len(base), 'method')}")


@geobench.command(name="table")
@click.argument("submission")
@click.option("--capability", default="Core", show_default=True, help="One of the nine, or 'all'.")
@json_option
def show_table(submission: str, capability: str, as_json: bool) -> None:
    """Print capability scores of SUBMISSION: the leaderboard's own with its ±, and ours with the standard error."""
    if capability not in ("all", *CAPABILITIES):
        raise UnknownIdError("capability", capability, CAPABILITIES)
    chosen = dict(CAPABILITIES) if capability == "all" else {capability: CAPABILITIES[capability]}
    scores = capability_table(load_submission(submission), load_normaliser(GEOBENCH), chosen)
    rows: list[dict[str, Any]] = [
        {"capability": capability, "backbone": backbone, "official": pair.official, "score": pair.ours.value,
         "official_error": pair.official_error, "error": pair.ours.error, "low": pair.ours.low, "high": pair.ours.high}
        for capability in chosen
        for backbone, pairs in scores.items()
        if (pair := pairs.get(capability))
    ]  # fmt: skip
    rows.sort(key=lambda row: (list(chosen).index(row["capability"]), -row["official"]))
    if as_json:
        echo_json(rows)
        return
    form = "{capability} {backbone} {official:.4f} {official_error:.4f} {score:.4f} {error:.4f} {low:.3f}–{high:.3f}"
    heads = ("capability", "backbone", "official", "± official", "ours", "SE", "95 %")
    click.echo(table(heads, [[part.format(**row) for part in form.split()] for row in rows], right=range(2, 7)))
    for backbone, pairs in scores.items():
        if missing := [cap for cap in chosen if cap not in pairs]:
            click.echo(f"{backbone} lacks datasets of {join_names(missing, 9)}")


@geobench.command()
@click.option(
    "--method",
    "methods",
    multiple=True,
    required=True,
    callback=split_commas,
    shell_complete=ids_of("method"),
    metavar="ID|FILE",
    help="A method, or a file of embeddings; repeatable, or separated by commas.",
)
@task_options
@click.option("--protocol", default="neuco-strict", show_default=True, help="Whose probe is tuned.")
@click.option("--trials", type=click.IntRange(min=1), default=16, show_default=True, help="Settings that are tried.")
@click.option("--repeats", type=click.IntRange(min=2), default=5, show_default=True, help="Seeds of what was best.")
@click.option("--seed", type=click.IntRange(0, 2**31), default=0, show_default=True, help="Of the division and search.")
@click.option("--threads", type=click.IntRange(min=1), help="Splits trained side by side.")
@click.option("--engine", metavar="NAME", help="Run on this engine: local, dask, dask://HOST:PORT, or a plugin's.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Workers of the engine.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="A folder for the results."
)
@json_option
def tune(
    methods: Sequence[str],
    protocol: str,
    trials: int,
    repeats: int,
    seed: int,
    threads: int | None,
    engine: str | None,
    jobs: int,
    out: Path,
    as_json: bool,
    **selection: Any,
) -> None:
    """Find settings of a probe inside the training part, and repeat the best with several seeds on the test part.

    Every trial is kept in --out when it is done. After an interruption the same command goes on, and ends with the
    same numbers. The search never gets a row of the test part. On an engine a method on a task is one step, which is
    kept when it ends. `neuco geobench export --tuned` writes a submission.
    """
    plan = TuningPlan(load_protocol(protocol), trials, repeats, seed)
    choice = choose(protocol=protocol, **selection)
    notes: list[str] = []
    work: list[tuple[Source, Task, Labels]] = []
    for text in methods:
        source = open_source(text)
        inputs = gather(choice.tasks, source, same_dataset=choice.same_dataset)
        notes += grouped((item.status, f"{source.name} on {item.task.label}", item.reason) for item in inputs)
        work += [(source, item.task, item.labels) for item in inputs if item.labels is not None]
    if not work:
        raise ScoreError("nothing can be tuned", got=notes[0] if notes else None)
    runs: list[TuningRun] = []
    with prompt_interrupt(), show_progress() as progress:

        def tell(run: TuningRun) -> None:
            share = (len(run.trials) + len(run.repeats)) / (trials + repeats)
            if progress:
                progress((len(runs) + share) / len(work), f"{run.method} on {run.task}")

        def keep(run: TuningRun) -> None:
            write_tuned(out / run.method / f"{run.task}.json", run)
            tell(run)

        if engine:
            pairs = [(source.method, task) for source, task, _ in work if isinstance(source, MethodSource)]
            if len(pairs) < len(work):
                raise UsageError("an engine tunes registered methods only", hint="Leave out --engine for a file")
            for run in tune_on(open_engine(engine, jobs), pairs, plan, out, threads or 1):
                tell(run)
                runs.append(run)
            runs.sort(key=lambda run: (run.method, run.task))
        else:
            for source, task, labels in work:
                name = source.method.id if isinstance(source, MethodSource) else Path(source.name).stem
                begun = read_tuned(out / name / f"{task.id}.json")
                runs.append(tune_pair(name, task, source.embeddings(task), labels, plan, begun, threads, keep))
    _show_tuned(runs, as_json)
    for note in notes:
        click.echo(clean(note), err=True)


def _show_tuned(runs: Sequence[TuningRun], as_json: bool) -> None:
    if as_json:
        echo_json(msgspec.to_builtins(runs))
        return
    rows = []
    for run in runs:
        scores = [repeat.score for repeat in run.repeats]
        interval = score([scores])
        settings = ", ".join(f"{name} {value:.3g}" for name, value in run.best.settings.items())
        between = f"{interval.low:.4f} to {interval.high:.4f}"
        rows.append(
            [run.method, run.task, run.metric, f"{run.best.value:.4f}", f"{fmean(scores):.4f}", between, settings]
        )
    heads = ("method", "task", "metric", "search", "test", "95 % over seeds", "settings")
    click.echo(table(heads, rows, right=(3, 4, 5)))
    trials, repeats = len(runs[0].trials), len(runs[0].repeats)
    click.echo(f"{trials} trials inside the training part, {repeats} seeds on the test part")
