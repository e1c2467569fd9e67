"""``neuco rate ablate``: quality against the size of an embedding, in dimensions and in bits, and against labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from neuco_core.boards.model import rounded
from neuco_core.cli.options import choose, ids_of, prompt_interrupt, protocol_options, split_commas, task_options
from neuco_core.cli.output import echo_json, json_option, table
from neuco_core.env import registry_dir
from neuco_core.errors import ScoreError, UsageError
from neuco_core.figures import check_target, save
from neuco_core.files import jsonable
from neuco_core.plugins.catalog import load_method, load_suite
from neuco_core.progress import show_progress
from neuco_core.protocol import Protocol
from neuco_core.specs import Suite, Task, to_json
from neuco_core.studies.sources import FileSource, MethodSource, Source
from neuco_core.text import counted
from neuco_extensions.rate.coders import CODERS, expand, installed_rates
from neuco_extensions.rate.curves import ablation_figure
from neuco_extensions.rate.stored import Ablation, AblationPoint, write_ablation
from neuco_extensions.rate.variants import DIMS, REDUCTIONS, VariantScore, plan, score_variants, usable

DEFAULT = click.core.ParameterSource.DEFAULT
WIDE = 4  # with more tasks the table is too wide for a terminal


def _numbers(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        return tuple(int(item) for item in split_commas(ctx, param, value))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of whole numbers separated by commas") from None


def _shares(ctx: click.Context, param: click.Parameter, value: str) -> tuple[float, ...]:
    """Shares such as 0.1, or 10%."""
    try:
        texts = split_commas(ctx, param, value)
        return tuple(float(text.removesuffix("%")) / (100 if text.endswith("%") else 1) for text in texts)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of shares such as 1%,10%,100%") from None


@click.group()
def rate() -> None:
    """Quality against the size of an embedding, in dimensions and in bits, and against labels."""


@rate.command()
@click.option("--method", shell_complete=ids_of("method"), help="A registered method.")
@click.option("--embeddings", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A file instead.")
@task_options
@protocol_options
@click.option(
    "--dims", callback=_numbers, default=",".join(map(str, DIMS)), show_default=True, help="Sizes to reduce to."
)
@click.option("--reduce", "reductions", callback=split_commas, default=",".join(REDUCTIONS), show_default=True)
@click.option(
    "--rates",
    callback=split_commas,
    default=",".join(CODERS),
    show_default=True,
    help="How values are coded; entropy=STEP for one step in standard deviations.",
)
@click.option(
    "--label-shares",
    "shares",
    callback=_shares,
    default="",
    help="Learn from these shares of the training labels, such as 1%,10%,100%; without --dims, --reduce and --rates "
    "from nothing else.",
)
@click.option("--grid", is_flag=True, help="Every rate at every size, instead of the two axes.")
@click.option("--projection-seed", default=0, show_default=True, help="Seed of the random projection.")
@click.option("--keep", is_flag=True, help="Keep it for the page of the --suite's board.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Also draw it: FILE.png, .svg or .pdf.")
@json_option
def ablate(
    method: str | None,
    embeddings: Path | None,
    threads: int | None,
    dims: tuple[int, ...],
    reductions: tuple[str, ...],
    rates: tuple[str, ...],
    shares: tuple[float, ...],
    grid: bool,
    projection_seed: int,
    keep: bool,
    plot: Path | None,
    as_json: bool,
    **selection: Any,
) -> None:
    """How small can an embedding get? Score it with fewer dimensions, with fewer bits, or with fewer labels.

    All tasks must be of one dataset. The bits are those a coder really wrote, with everything the decoder needs.
    """
    if (method is None) == (embeddings is None):
        raise UsageError("give either --method ID or --embeddings FILE")
    if keep and (method is None or not selection["suite"] or shares or grid):
        raise UsageError("--keep is for a board", expected="--method and --suite, without --label-shares and --grid")
    if shares and plot:
        raise UsageError("the plot is of bits, not of labels", expected="--label-shares without --plot; --json has all")
    missing: list[str] = []
    source_of = click.get_current_context().get_parameter_source
    if shares and all(source_of(name) is DEFAULT for name in ("dims", "reductions", "rates")):
        dims, rates = (), ("float32",)
    elif source_of("rates") is DEFAULT:
        rates, missing = installed_rates()
    if plot:
        check_target(plot)
    rates = expand(rates)
    choice = choose(**selection)
    source: Source = FileSource(embeddings) if embeddings else MethodSource(load_method(str(method)))
    tasks, notes = usable(source, choice.tasks)
    protocol = choice.protocol_of(tasks[0][0])
    suite = load_suite(selection["suite"]) if keep else None
    if suite is not None:
        _check_whole(suite, [task for task, _ in tasks], protocol)
    whole = source.embeddings(tasks[0][0])
    variants, left_out = plan(
        whole.dim, len(whole), dims=dims, reductions=reductions, rates=rates, shares=shares, grid=grid
    )
    with prompt_interrupt(), show_progress() as progress:
        run = score_variants(whole, tasks, protocol, variants, seed=projection_seed, threads=threads, progress=progress)
        points = list(run)
    scored = [point for point in points if not point.problem]
    notes += [*missing, *(f"left out {text}" for text in left_out)]
    if as_json:
        head = {"source": source.describe(), "protocol": to_json(protocol), "left_out": notes}
        echo_json(jsonable({**head, "points": [point.to_json() for point in points]}))
    else:
        if scored:
            _show(scored)
        click.echo(f"protocol {protocol.name}; {source.name}")
        for note in (*notes, *(f"failed {p.variant}: {p.problem}" for p in points if p.problem)):
            click.echo(note)
    if plot and scored:
        save(ablation_figure(scored, f"{source.name}, protocol {protocol.name}"), plot)
    if len(scored) < len(points):
        raise ScoreError(f"{len(points) - len(scored)} of {len(points)} variants failed")
    if suite is not None:
        path = _keep(suite, str(method), [task for task, _ in tasks], points, projection_seed)
        click.echo(f"kept in {path}", err=True)


def _check_whole(suite: Suite, tasks: Sequence[Task], protocol: Protocol) -> None:
    """What is kept must be of all tasks of the board, under its protocol: it is shown beside its scores."""
    if {task.id: task.version for task in tasks} != dict(suite.tasks) or protocol.name != suite.protocol:
        expected = f"all {counted(len(suite.tasks), 'task')} under {suite.protocol}"
        got = f"{counted(len(tasks), 'task')} under {protocol.name}"
        raise UsageError(f"--keep is for the whole of suite {suite.id!r}", expected=expected, got=got)


def _keep(suite: Suite, method: str, tasks: Sequence[Task], points: Sequence[VariantScore], seed: int) -> Path:
    kept = []
    for p in points:
        q = {task.id: rounded(p.scores[task.label].q) for task in tasks}
        kept.append(AblationPoint(p.variant.reduction, p.variant.dim, p.variant.rate, p.bits, q))
    spec = load_method(method)
    about = {"suite": suite.id, "method": spec.id, "version": spec.version, "protocol": suite.protocol}
    ablation = Ablation(schema=1, **about, projection_seed=seed, points=tuple(kept))  # type: ignore[arg-type]
    return write_ablation(registry_dir(), ablation)


def _show(points: Sequence[VariantScore]) -> None:
    """Q of each task, as many as a terminal has room for, and their mean."""
    tasks = list(points[0].scores)
    shown = tasks if len(tasks) <= WIDE else []
    rows = []
    for p in points:
        variant = p.variant
        row = {"reduction": variant.reduction, "dims": str(variant.dim), "rate": variant.rate}
        row["bits/sample"] = f"{p.bits:.1f}"
        if any(point.variant.share < 1 for point in points):
            row["labels"] = f"{100 * variant.share:g} %"
        row |= {f"Q {task}": f"{p.scores[task].q:.2f}" for task in shown}
        if len(tasks) > 1:
            row["mean Q"] = f"{p.mean_q:.2f}"
        rows.append(row)
    columns = list(rows[0])
    click.echo(table(columns, [list(row.values()) for row in rows], right=(1, *range(3, len(columns)))))
    if not shown:
        click.echo(f"mean of {counted(len(tasks), 'task')}; --json has each of them")
