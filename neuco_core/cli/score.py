"""``neuco score``: methods, or files of embeddings, on tasks. One path for one cell and for all of them."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from neuco_core.cli.complete import ids_of
from neuco_core.cli.options import (
    choose_tasks,
    exact_ids,
    param_option,
    parse_params,
    protocol_options,
    split_commas,
    task_options,
)
from neuco_core.cli.score_answer import Answer, answer_options, choose_form
from neuco_core.cli.score_show import describe, describe_plans, tell_columns
from neuco_core.progress import show_progress
from neuco_core.text import counted, join_names

if TYPE_CHECKING:
    from neuco_core.protocol import Protocol
    from neuco_core.records.model import Record
    from neuco_core.runs.engine import EngineLike
    from neuco_core.runs.messages import Step, StepLimits
    from neuco_core.runs.plan import Plan
    from neuco_core.runs.preview import Preview
    from neuco_core.runs.run import PlannedOutcome
    from neuco_core.runs.sources import EmbeddingsFile
    from neuco_core.specs import Task

F = TypeVar("F", bound=Callable[..., Any])
Given = Mapping[str, Any]
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
NAMED = 20  # failures that the last line names one by one


def _bytes(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A size such as 500MB or 4G."""
    if value is None:
        return None
    size = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)b?\s*", value, re.IGNORECASE)
    if not size or not float(size[1]):
        raise click.BadParameter(f"{value!r} is not a size; write 4GB or 500MB", ctx, param)
    return int(float(size[1]) * UNITS[size[2].lower()])


def _seconds(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise click.BadParameter(f"{value:g} is not a number of seconds above 0", ctx, param)
    return value


SECONDS: dict[str, Any] = {"type": float, "metavar": "SECONDS", "callback": _seconds}
STEP = "Time for one step: a score, or a method's embeddings of a dataset. [default: 3600 and 86400]"
BATCH = "Samples encoded at once, at most; the numbers are the same."
OPTIONS = (
    click.option("--retry", is_flag=True, help="Also run again what failed before."),
    click.option("--fresh", is_flag=True, help="Run again what is on record, too."),
    click.option("--save", is_flag=True, help="Record the scores of --embeddings files as well."),
    click.option("--name", metavar="ID", help="What to call the --embeddings file. [default: from its name]"),
    click.option("--engine", default="local", show_default=True, help="local, dask (here), or dask://host:port."),
    click.option("--jobs", type=click.IntRange(min=1), help="Worker processes. [default: one per core]"),
    click.option("--batch-size", type=click.IntRange(min=1), default=64, show_default=True, help=BATCH),
    click.option("--time-limit", help=STEP, **SECONDS),
    click.option("--embed-time-limit", help="Time for a method's embeddings. [default: --time-limit]", **SECONDS),
    click.option(
        "--memory-limit",
        metavar="SIZE",
        callback=_bytes,
        help="Memory of one worker and what it starts, as 4GB. [default: its share of 80 % of the machine]",
    ),
)


def run_options(command: F) -> F:
    """How to run: engine, workers, limits, and what to do about records."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@click.command()
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="ID|GLOB",
    callback=split_commas,
    shell_complete=ids_of("method"),
    help="Repeatable, or separated by commas.",
)
@click.option(
    "--embeddings",
    "files",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A CSV, Parquet, NPZ or NPY file, or a folder of TerraTorch's; repeatable.",
)
@click.option("--all", "everything", is_flag=True, help="Every method.")
@click.argument("words", nargs=-1, metavar="")
@task_options
@protocol_options
@click.option("--strict", is_flag=True, help="Refuse a file with missing values instead of taking them as 0.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@param_option
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="A quick look at N samples of each task: no scores to compare, never recorded.",
)
@run_options
@answer_options
def score(**given: Any) -> None:
    """Score methods or files on tasks; without conditions, on every task, each as its dataset says.

    What is on record and has not changed since is served from the registry; the rest is run, and each record is saved
    when it is made, so that a run that was stopped goes on where it was. A file is scored on the tasks whose ids it
    holds, and not recorded unless you say --save. A method with other parameters (--param) would be another method, so
    that is never recorded. The exit code is 1 if a score failed, if a task given by its id has
    no score, or if nothing was scored.
    """
    from neuco_core._validate import ID
    from neuco_core.errors import UsageError
    from neuco_core.plugins.catalog import protocols_for
    from neuco_core.runs.run import shared_folder

    if given["words"]:
        hint = "Say `neuco score --method ID --task ID`, or --embeddings FILE"
        raise UsageError("words that belong to no option", got=" ".join(given["words"]), hint=hint)
    if not given["methods"] and not given["files"] and not given["everything"]:
        hint = "Say --method ID, --embeddings FILE or --all; see `neuco methods`"
        raise UsageError("nothing to score", hint=hint)
    if given["name"] and not ID.fullmatch(given["name"]):
        raise UsageError("bad --name", expected="1 to 64 of a-z, 0-9, _ and -", got=repr(given["name"]))
    if given["name"] and len(given["files"]) != 1:
        raise UsageError("--name is for one --embeddings file", got=counted(len(given["files"]), "file"))
    look, given["form"] = _look(given), choose_form(given)
    tasks = choose_tasks(given["tasks"], given["suite"], given["kind"], given["tags"], given["dataset"])
    settings = {name: given[name] for name in ("k", "epochs", "lr", "seed")}
    with shared_folder() as shared:
        _score(given, protocols_for(tasks, given["protocol"], given["suite"], **settings), shared, look)


def _look(given: Given) -> Preview:
    """What departs from what records are of; refused where it could not be had, or is to be recorded."""
    from neuco_core.errors import UsageError
    from neuco_core.runs.preview import Preview

    look = Preview(parse_params(given["params"]), given["limit"], given["batch_size"], given["fresh"])
    if look.params and given["files"]:
        raise UsageError("--param is for methods with an encoder", got="--embeddings")
    if look and given["dry_run"]:
        raise UsageError("--dry-run tells what records there are, and a look has none", got=str(look))
    if look and given["save"]:
        own = "Write the embeddings with `neuco embed --param …`, and score that file with --save"
        hint = own if look.limit is None else "Leave out --limit"
        raise UsageError(f"a look at {look} is never recorded", got="--save", hint=hint)
    return look


def _score(given: Given, chosen: Sequence[tuple[Protocol, list[Task]]], shared: str, look: Preview) -> None:
    from neuco_core.env import available_cores
    from neuco_core.paths import registry_dir
    from neuco_core.plugins.catalog import list_methods
    from neuco_core.runs.engine import EngineError, open_engine
    from neuco_core.runs.plan import make_plan
    from neuco_core.runs.preview import check_params, plan_preview
    from neuco_core.runs.run import default_limits, outcomes

    jobs = given["jobs"] or available_cores()
    engine = open_engine(given["engine"], jobs)  # before the plan: a wrong name costs no time
    limits = default_limits(jobs, given["time_limit"], given["memory_limit"], given["embed_time_limit"])
    files = _files(given, [task for _, own in chosen for task in own], shared)
    methods = list_methods(*given["methods"]) if given["methods"] or given["everything"] else []
    choice = {"retry": given["retry"], "fresh": given["fresh"], "files": files, "save": given["save"]}
    if look:
        check_params(methods, look)
        plans = plan_preview(look, methods, files, chosen, shared)
    else:
        plans = [make_plan(methods, own, protocol, registry_dir(), **choice) for protocol, own in chosen]
    if given["dry_run"]:
        describe_plans(plans, as_json=given["form"] == "json")
        return
    # The last of few cells would leave cores idle; the numbers are the same for any number of threads.
    work = sum(len(plan.work) for plan in plans)
    threads = given["threads"] or (available_cores() if work < 4 * jobs else 1)
    made: list[Record] = []
    try:
        _run(
            plans, engine, limits, made, threads=threads, shared=shared, save=given["save"], batch_size=look.batch_size
        )
    except EngineError as error:
        go_on = f"{'. Then go' if error.hint else 'Go'} on with: {_again()}"
        error.hint += go_on
        raise
    results = [outcome for plan in plans for outcome in outcomes(plan, made, registry_dir())]
    answer = Answer(plans, results, made, look, save=given["save"])
    answer.give(given["form"], given["out"])
    if given["files"] and given["suite"] and given["form"] == "table":
        words = shlex.join(["neuco", "leaderboard", "show", given["suite"], "--with", str(given["files"][0])])
        click.echo(f"where it would stand: {words}")
    _end(results, given)


def _files(given: Given, tasks: Sequence[Task], shared: str) -> list[EmbeddingsFile]:
    from neuco_core.runs.sources import free_names, open_file

    names = free_names(given["files"], given["name"] or "")
    options = {"strict": given["strict"], "shared": shared}
    opened = [open_file(path, tasks, name=name, **options) for path, name in names.items()]
    for file in opened:
        tell_columns(file)
    return opened


def _run(plans: Sequence[Plan], engine: EngineLike, limits: StepLimits, made: list[Record], **options: Any) -> None:
    """Run the plans and tell of each record, which is then in ``made``, too."""
    from neuco_core.paths import registry_dir
    from neuco_core.runs.run import run_plan

    with _progress(engine, sum(len(plan.work) for plan in plans)) as ended:
        for plan in plans:
            # Closed at once when interrupted, so that the workers end before the last word is said.
            with closing(run_plan(plan, registry_dir(), engine, limits, **options)) as records:
                for record in records:
                    made.append(record)
                    ended(len(made), record)


@contextmanager
def _progress(engine: EngineLike, total: int) -> Iterator[Callable[[int, Record], None]]:
    """A bar on a terminal, moved by what the workers tell; elsewhere a line for each record."""
    from neuco_core.runs.messages import ScoreCell

    with show_progress(lines=False) as bar:
        shares: dict[str, float] = {}  # of the cells under way, by their labels

        def moved(step: Step, share: float) -> None:
            # Making the embeddings is shown, and counts for nothing: how many cells it is for is not known here.
            if isinstance(step, ScoreCell):
                shares[step.label] = share
            if bar is not None:
                bar((count + sum(shares.values())) / max(total, 1), step.label)

        count = 0
        engine.progress = moved if bar else None

        def ended(number: int, record: Record) -> None:
            nonlocal count
            count = number
            shares.pop("{} on {}".format(*record.key), None)
            if bar:
                bar(number / max(total, 1), "{} on {}".format(*record.key))
            else:
                click.echo(f"[{number}/{total}] {describe(record)}", err=True)

        yield ended


def _again(*more: str) -> str:
    """The command that goes on: the very same one, since what is done is served from records."""
    words = [word for word in click.get_current_context().obj or ("score",) if word not in ("--fresh", *more)]
    return shlex.join(["neuco", *words, *more])


def _end(results: Sequence[PlannedOutcome], given: Given) -> None:
    """No evidence is no success: what failed earlier and was not tried again counts too."""
    from neuco_core.errors import ScoreError
    from neuco_core.runs.run import verdict

    lost = [outcome for outcome in results if outcome.status == "failed"]
    kinds = [o.record.failure if o.record else o.reason for o in lost]
    failed = [(o.cell.method.label, o.cell.task.label, str(kind)) for o, kind in zip(lost, kinds, strict=True)]
    if failed:
        names = join_names([f"{method} on {task} ({kind})" for method, task, kind in failed], NAMED)
        crashed = any(kind == "method" for _, _, kind in failed)
        hint = "`neuco --debug …` shows a method's own traceback. " * crashed
        hint += "" if all(o.cell.file for o in lost) else f"Try again: {_again('--retry')}"
        raise ScoreError(f"{len(failed)} of {counted(len(results), 'cell')} failed: {names}", hint=hint)
    problem = verdict(results, () if given["everything"] else exact_ids(given["tasks"]))
    if problem:
        reasons = {outcome.reason for outcome in results if outcome.status != "ok"}
        why = reasons.pop() if len(reasons) == 1 else "the lines above say why"
        raise ScoreError(f"{problem}: {why}", hint="`neuco explain METHOD TASK` says more")
