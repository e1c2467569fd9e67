"""``neuco score``: methods, or files of embeddings, on tasks. One path for one cell and for all of them."""

from __future__ import annotations

import math
import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from neuco_core.boards.published import list_published
from neuco_core.cli.options import (
    Choice,
    batch_option,
    choose,
    engine_option,
    ids_of,
    jobs_option,
    param_option,
    parse_params,
    protocol_options,
    split_commas,
    task_options,
    together,
)
from neuco_core.cli.output import can_ask, clean, say, warn
from neuco_core.cli.score_show import (
    Answer,
    AnswerForm,
    PlannedOutcome,
    answer_form,
    answer_options,
    describe,
    describe_plans,
    outcomes,
    verdict,
)
from neuco_core.env import available_cores, registry_dir, switched_on
from neuco_core.errors import ScoreError, UsageError
from neuco_core.fetch.fetch import NOT_DECLARED
from neuco_core.fetch.links import require_labels, without_labels
from neuco_core.fields import ID
from neuco_core.plugins.catalog import list_methods
from neuco_core.progress import show_progress
from neuco_core.records.model import Record
from neuco_core.records.store import read_all
from neuco_core.runs.engine import EngineError, EngineLike, default_limits, open_engine
from neuco_core.runs.files import ALLOW, EmbeddingsFile, are_parts, find_files, free_names, open_file
from neuco_core.runs.messages import ScoreCell, Step
from neuco_core.runs.plan import make_plan
from neuco_core.runs.preview import Preview, plan_preview
from neuco_core.runs.run import run_plan, shared_folder
from neuco_core.scoring.splits import cut_groups
from neuco_core.specs import Task
from neuco_core.tables.pinning import inspect_labels
from neuco_core.text import counted, join_names

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
# Of the options, which choose the tasks and how they are scored.
SELECTION = ("tasks", "suite", "kind", "tags", "dataset", "protocol", "k", "epochs", "lr", "seed")
# Title → options, in the help.
GROUPS = {
    "What to score": "methods files everything params name strict allow_labels",
    "On which tasks": "tasks suite kind tags dataset limit",
    "How to score": "protocol k epochs lr seed",
    "What to run": "dry_run retry fresh save yes",
    "On which machine": "engine jobs threads batch_size time_limit embed_time_limit memory_limit",
    "What to print": "form as_json out",
}
NAMED = 20  # failures that the last line names one by one


class MemorySize(click.ParamType):  # type: ignore[type-arg]
    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        size = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)b?\s*", str(value), re.IGNORECASE)
        if not size or not float(size[1]):
            self.fail(f"{value!r} is not a size; write 4GB or 500MB", param, ctx)
        return int(float(size[1]) * UNITS[size[2].lower()])


class Seconds(click.types.FloatParamType):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds: float = super().convert(value, param, ctx)
        if not (math.isfinite(seconds) and seconds > 0):
            self.fail(f"{seconds:g} is not a number of seconds above 0", param, ctx)
        return seconds


SECONDS: dict[str, Any] = {"type": Seconds(), "metavar": "SECONDS"}
STEP = "Time for one step: a score, or a method's embeddings of a dataset. [default: 3600 and 86400]"
subject_options = together(
    click.option(
        "--method",
        "methods",
        multiple=True,
        metavar="ID|GLOB",
        callback=split_commas,
        shell_complete=ids_of("method"),
        help="Repeatable, or separated by commas.",
    ),
    click.option(
        "--embeddings",
        "files",
        multiple=True,
        type=click.Path(path_type=Path),
        callback=lambda ctx, param, names: tuple(find_files(names)) if names else (),
        help="A CSV, Parquet, NPZ or NPY file, a pattern or a folder of them, or one of TerraTorch's; repeatable.",
    ),
    click.option("--all", "everything", is_flag=True, help="Every method."),
)
run_options = together(
    click.option("--retry", is_flag=True, help="Also run again what failed before."),
    click.option("--fresh", is_flag=True, help="Run again what is on record, too."),
    click.option("--save", is_flag=True, help="Record the scores of --embeddings files as well."),
    click.option("--name", metavar="ID", help="What to call the --embeddings file. [default: from its name]"),
    click.option("--yes", is_flag=True, help="Download and pin labels that have no published checksum without asking."),
    engine_option,
    jobs_option,
    batch_option,
    click.option("--time-limit", help=STEP, **SECONDS),
    click.option("--embed-time-limit", help="Time for a method's embeddings. [default: --time-limit]", **SECONDS),
    click.option(
        "--memory-limit",
        type=MemorySize(),
        help="Memory of one worker and what it starts, as 4GB. [default: its share of 80 % of the machine]",
    ),
)


@dataclass(frozen=True, kw_only=True)
class ScoreRequest:
    """What ``neuco score`` was asked for."""

    methods: tuple[str, ...]
    files: tuple[Path, ...]
    everything: bool
    threads: int | None
    strict: bool
    allow_labels: bool
    params: tuple[str, ...]
    limit: int | None
    # What to do about records
    dry_run: bool
    retry: bool
    fresh: bool
    save: bool
    name: str | None
    yes: bool
    # How to run
    engine: str
    jobs: int | None
    batch_size: int
    time_limit: float | None
    embed_time_limit: float | None
    memory_limit: int | None

    def preview(self) -> Preview:
        """How the run departs from what records are of; refused where that cannot be had or recorded."""
        preview = Preview(parse_params(self.params), self.limit, self.batch_size, self.fresh)
        if preview.params and self.files:
            raise UsageError("--param is for methods with an encoder", got="--embeddings")
        if self.dry_run:
            raise UsageError("--dry-run lists what records there are, and a look has none", got=str(preview))
        if self.save:
            hint = "Leave out --limit"
            if preview.limit is None:
                hint = "Write the embeddings with `neuco embed --param …`, and score that file with --save"
            raise UsageError(f"a look at {preview} is never recorded", got="--save", hint=hint)
        return preview


class ScoreCommand(click.Command):
    """Help that shows the options in groups; what is in none comes last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = {param.name: row for param in self.get_params(ctx) if (row := param.get_help_record(ctx))}
        sections = {title: [rows.pop(name) for name in names.split()] for title, names in GROUPS.items()}
        for title, listed in {**sections, "Other options": [*rows.values()]}.items():
            with formatter.section(title):
                formatter.write_dl(listed)


@click.command(cls=ScoreCommand)
@subject_options
@click.argument("strays", nargs=-1, metavar="")
@task_options
@protocol_options
@click.option("--strict", is_flag=True, help="Refuse a file with missing values instead of taking them as 0.")
@click.option(ALLOW, is_flag=True, help="Score a file although a column of it is the label of a task.")
@click.option("--dry-run", is_flag=True, help="Only list what would be done.")
@param_option
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="A quick look at N samples of each task: no scores to compare, never recorded.",
)
@run_options
@answer_options
def score(strays: tuple[str, ...], form: str | None, as_json: bool, out: Path | None, **options: Any) -> None:
    """Score methods (--method, --all) or files of embeddings (--embeddings) on tasks.

    Without --task, --suite or another condition on every task, each under its dataset's protocol. Scores on record
    whose inputs have not changed come from the registry; the others are run, and each is saved at once, so a run that
    was stopped goes on where it was. A file is scored on the tasks whose ids it holds, and recorded with --save only; a
    method with other parameters (--param) is never recorded. The exit code is 1 if a score failed, if a task given by
    its id has no score, or if nothing was scored.
    """
    if strays:
        hint = "Write `neuco score --method ID --task ID`, or --embeddings FILE"
        raise UsageError("words that belong to no option", got=" ".join(strays), hint=hint)
    selection = {name: options.pop(name) for name in SELECTION}
    request = ScoreRequest(**options)
    if not request.methods and not request.files and not request.everything:
        hint = "Give --method ID, --embeddings FILE or --all; see `neuco methods`"
        raise UsageError("nothing to score", hint=hint)
    if request.name and not ID.fullmatch(request.name):
        raise UsageError("bad --name", expected="1 to 64 of a-z, 0-9, _ and -", got=repr(request.name))
    if request.name and len(request.files) != 1:
        raise UsageError("--name is for one --embeddings file", got=counted(len(request.files), "file"))
    preview = request.preview() if request.params or request.limit is not None else None
    answer = answer_form(form, as_json, out)
    choice = choose(**selection)
    with shared_folder() as shared:
        _score(request, choice, preview, answer, shared)


def _score(request: ScoreRequest, choice: Choice, preview: Preview | None, form: AnswerForm, shared: str) -> None:
    jobs, registry = request.jobs or available_cores(), registry_dir()
    engine = open_engine(request.engine, jobs)  # before the plan: a wrong name costs no time
    limits = default_limits(jobs, request.time_limit, request.memory_limit, request.embed_time_limit)
    if request.files and not request.dry_run and (request.yes or can_ask()):
        _offer_labels(choice, yes=request.yes)
    if choice.suite and not (request.dry_run or request.methods or request.everything):
        require_labels(choice.suite, choice.tasks, choice.suite)
    files = _open_files(request, choice.tasks, shared) if request.files else []
    methods = list_methods(*request.methods) if request.methods or request.everything else []
    if preview:
        plans = plan_preview(preview, methods, files, choice.groups, shared)
    else:
        retry, fresh, save = request.retry, request.fresh, request.save
        plans = [
            make_plan(methods, tasks, protocol, registry, retry=retry, fresh=fresh, files=files, save=save)
            for protocol, tasks in choice.groups
        ]
    if request.dry_run:
        describe_plans(plans, as_json=form.form == "json")
        return
    # The last of few cells would leave cores idle; the numbers are the same for any number of threads.
    work = sum(cell.to_run for plan in plans for cell in plan.cells)
    threads = request.threads or (available_cores() if work < 4 * jobs else 1)
    made: list[Record] = []
    try:
        with _progress(engine, work) as ended:
            for plan in plans:
                run = run_plan(
                    plan,
                    registry,
                    engine,
                    limits,
                    threads=threads,
                    shared=shared,
                    save=request.save,
                    batch_size=request.batch_size,
                )
                # Closed at once when interrupted, so that the workers end before the last word is said.
                with closing(run) as records:
                    for record in records:
                        made.append(record)
                        ended(len(made), record)
    except EngineError as error:
        error.hint += f"{'. Then go' if error.hint else 'Go'} on with: {_again()}"
        raise
    results = [outcome for plan in plans for outcome in outcomes(plan, made, registry)]
    protocols = {protocol.name: protocol for protocol, _ in choice.groups}
    for warning in cut_groups((o.cell.task, protocols[o.record.protocol]) for o in results if o.record and o.record.ok):
        warn(warning)
    Answer(plans, results, made, preview, save=request.save).give(form)
    if choice.suite and without_labels(choice.tasks):
        say(f"The labels of the whole suite: `neuco data pin --suite {choice.suite}`.")
    # A file with a score missing, or scored on fewer samples than others, would have no rank.
    whole = all(o.record and o.record.ok and o.record.samples["used"] == o.record.samples["labels"] for o in results)
    if request.files and choice.suite and whole and form.form == "table":
        board, by, tasks = choice.suite, "", {task.id for task in choice.tasks}
        if not any(record.task in tasks and record.ok for record in read_all(registry_dir())):
            # Nobody has scores on it: a published board of its tasks, if a file can be placed on one.
            published = (item for item in list_published(registry_dir()) if item.protocol and tasks <= {*item.tasks})
            item = next(published, None)
            if item is not None:
                board, by = item.id, f" (by that board's protocol, {item.protocol})"
        command = ["neuco", "leaderboard", "show", board, "--with", str(request.files[0])]
        click.echo(f"where it would stand: {shlex.join(command)}{by}")
    _end(results, request, () if request.everything else choice.asked)


def _offer_labels(choice: Choice, *, yes: bool) -> None:
    """Let the user download and confirm labels that have no published checksum: with a file they are all it needs."""
    from neuco_core.cli.data import confirm, show_reports  # all that fetches and packages data: only where it is asked

    if switched_on("NEUCO_OFFLINE") or not (choice.suite or choice.same_dataset):  # nobody is asked about all there is
        return
    if missing := without_labels(choice.tasks):
        count = counted(len(missing), "task")
        click.echo(f"Downloading the labels of {count}, whose owner publishes no checksums:", err=True)
        reports = [inspect_labels(task) for task in missing]
        with redirect_stdout(sys.stderr):
            show_reports(reports)
        confirm(reports, yes=yes)


def _open_files(request: ScoreRequest, tasks: Sequence[Task], shared: str) -> list[EmbeddingsFile]:
    """The files, with a line on which columns are taken for values, and warnings about those that seem to be labels."""
    files = []
    for path, name in free_names(request.files, request.name or "").items():
        allowed = request.allow_labels
        file = open_file(path, tasks, name=name, strict=request.strict, shared=shared, allow_labels=allowed)
        click.echo(clean(f"{path.name}: {file.columns}"), err=True)
        files.append(file)
    parts = are_parts(files)
    if parts:
        warn(f"these {len(files)} files hold parts of one set of ids, and each is scored by itself: join them first")
    for file in files:
        for sentence in file.warnings:
            if not (parts and sentence in file.gaps):
                warn(f"{file.path.name}: {sentence}")
    return files


@contextmanager
def _progress(engine: EngineLike, total: int) -> Iterator[Callable[[int, Record], None]]:
    """A bar on a terminal, moved by what the workers report; elsewhere a line for each record."""
    with show_progress(lines=False) as bar:
        shares: dict[str, float] = {}  # of the cells under way, by their labels
        reasons: set[tuple[str, str]] = set()  # reasons of failures
        count = 0

        def moved(step: Step, share: float) -> None:
            # Making the embeddings is shown, and counts for nothing: how many cells it is for is not known here.
            if isinstance(step, ScoreCell):
                shares[step.label] = share
            if bar is not None:
                bar((count + sum(shares.values())) / max(total, 1), step.label)

        def ended(number: int, record: Record) -> None:
            nonlocal count
            count, label = number, "{} on {}".format(*record.key)
            shares.pop(label, None)
            if bar is not None:
                bar(number / max(total, 1), label)
            else:
                click.echo(f"[{number}/{total}] {describe(record, reasons)}", err=True)

        engine.progress = moved if bar is not None else None
        yield ended


def _again(*more: str) -> str:
    """The command that goes on: the very same one, since what is done is served from records."""
    arguments = click.get_current_context().obj or ("score",)
    kept = [argument for argument in arguments if argument not in ("--fresh", *more)]
    return shlex.join(["neuco", *kept, *more])


def _end(results: Sequence[PlannedOutcome], request: ScoreRequest, asked: Collection[str]) -> None:
    """No evidence is no success: what failed earlier and was not tried again counts too."""
    lost = [outcome for outcome in results if outcome.status == "failed"]
    if lost:
        kinds = [str(outcome.record.failure if outcome.record else outcome.reason) for outcome in lost]
        cells = [f"{o.cell.method.label} on {o.cell.task.label} ({kind})" for o, kind in zip(lost, kinds, strict=True)]
        hints = []
        if "method" in kinds:
            hints.append("`neuco --debug …` shows a method's own traceback.")
        # Another file is no better at the second try; a new declaration is a new input, which needs no --retry.
        if any(NOT_DECLARED not in outcome.reason for outcome in lost if not outcome.cell.file):
            hints.append(f"Try again: {_again('--retry')}")
        what = f"{len(lost)} of {counted(len(results), 'cell')} failed: {join_names(cells, NAMED)}"
        raise ScoreError(what, hint=" ".join(hints))
    problem = verdict(results, asked)
    if problem:
        reasons = {outcome.reason for outcome in results if outcome.status != "ok"}
        why = reasons.pop() if len(reasons) == 1 else "the lines above say why"
        # A file has no record to explain.
        hint = "" if request.files else "`neuco explain METHOD TASK` says more"
        raise ScoreError(f"{problem}: {why}", hint=hint)
