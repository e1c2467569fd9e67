"""``neuco rate``: curves of Q against bytes for methods and files, and the board that ranks them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from neuco_core.boards.build import build_board
from neuco_core.boards.model import Board, plain
from neuco_core.boards.report import grid
from neuco_core.cli.leaderboard import one_board, print_board, print_section
from neuco_core.cli.options import (
    choose,
    engine_option,
    ids_of,
    jobs_option,
    protocol_options,
    split_commas,
    task_options,
)
from neuco_core.cli.output import clean, echo_json, json_option, say, warn
from neuco_core.cli.score import subject_options
from neuco_core.env import available_cores, registry_dir
from neuco_core.errors import ScoreError, UsageError
from neuco_core.figures import write_figure
from neuco_core.plugins.catalog import list_methods
from neuco_core.progress import show_progress
from neuco_core.records.model import Record
from neuco_core.runs.engine import default_limits, open_engine
from neuco_core.runs.files import free_names, open_file
from neuco_core.runs.plan import Plan, make_plan
from neuco_core.runs.run import run_plan, shared_folder
from neuco_core.site.write import standalone
from neuco_core.specs import Suite
from neuco_core.tables.embeddings import read_embeddings
from neuco_core.text import counted
from neuco_extensions.coded.probe import Chain, coded_protocol
from neuco_extensions.rate.curves import CODERS, WHOLE
from neuco_extensions.rate.figure import drawing
from neuco_extensions.rate.signed_square import read_linearly


@click.group()
def rate() -> None:
    """How good are embeddings in fewer bytes? Curves of methods and files, and the board that ranks them."""


@rate.command()
@subject_options
@task_options
@protocol_options
@click.option(
    "--coders",
    callback=split_commas,
    default=",".join(CODERS),
    show_default=True,
    help="Coders, chained by +: `neuco show coded` lists them.",
)
@click.option("--fit-all", is_flag=True, help="Also learn each coder from all samples, to see what that flatters.")
@click.option("--retry", is_flag=True, help="Also run again what failed before.")
@click.option("--save", is_flag=True, help="Record the scores of --embeddings files as well.")
@engine_option
@jobs_option
@json_option
def curve(
    methods: tuple[str, ...],
    files: tuple[Path, ...],
    coders: tuple[str, ...],
    *,
    everything: bool,
    fit_all: bool,
    retry: bool,
    save: bool,
    engine: str,
    jobs: int | None,
    threads: int | None,
    as_json: bool,
    **selection: Any,
) -> None:
    """Score embeddings as they come back from coders. All tasks must be scored under one protocol.

    Each coder learns in every split from the training part alone; bytes are those that it wrote. Scores of methods are
    recorded, so a run that was stopped goes on where it was, and `neuco rate show SUITE` ranks them.
    """
    if not methods and not files and not everything:
        raise UsageError("nothing to score", hint="Give --method ID, --embeddings FILE or --all")
    choice, chains = choose(**selection), [Chain(coder) for coder in coders if coder != WHOLE]
    if len(choice.groups) > 1:
        got = ", ".join(protocol.name for protocol, _ in choice.groups)
        raise UsageError("the tasks are scored under several protocols", got=got, hint="Say --suite, or --protocol")
    [(base, tasks)] = choice.groups
    variants = [(coded_protocol(base, chain.text), chain) for chain in chains]
    variants += [(coded_protocol(base, chain.text, fit="all"), chain) for chain in chains if fit_all and chain.learns]
    jobs, registry = jobs or available_cores(), registry_dir()
    with shared_folder() as shared:
        opened = []
        for path, name in free_names(files).items():
            opened.append(open_file(path, tasks, name=name, shared=shared))
            for sentence in (*opened[-1].warnings, read_linearly(read_embeddings(path).values)):
                if sentence:
                    warn(f"{path.name}: {sentence}")
        listed = list_methods(*methods) if methods or everything else []
        options: dict[str, Any] = {"engine": open_engine(engine, jobs), "shared": shared, "save": save}
        again = {"retry": retry, "save": save}
        records = list(
            _records([make_plan(listed, tasks, base, registry, files=opened, **again)], threads, jobs, options)
        )
        dims = {record.method: record.dim or 0 for record in records if record.ok}
        plans = []
        for protocol, chain in variants:
            fitting = [method for method in listed if chain.is_for(dims.get(method.id, 0))]
            fitting_files = [file for file in opened if chain.is_for(dims.get(file.method.id, 0))]
            plans.append(make_plan(fitting, tasks, protocol, registry, files=fitting_files, **again))
        records += _records(plans, threads, jobs, options)
    suite = Suite(id="curve", tasks={task.id: task.version for task in tasks}, protocol=base.name, kind="rate")
    board = build_board([record for record in records if record.ok], suite)
    if as_json:
        echo_json(plain(board))
    else:
        for section in board.sections[-1:]:
            print_section(board, section)
        say(f"Protocol {base.name}. Shared: bytes that all samples share, such as codebooks.")
    failed = [record for record in records if record.status == "failed"]
    for reason in dict.fromkeys(f"failed {r.method} on {r.task}, {r.protocol}: {r.reason}" for r in failed):
        click.echo(clean(reason), err=True)
    if failed or not dims:
        raise ScoreError(f"{counted(len(failed), 'score')} failed" if failed else "nothing could be scored")


def _records(plans: Sequence[Plan], threads: int | None, jobs: int, options: dict[str, Any]) -> Iterator[Record]:
    """Those on record, and then those that are made: all plans at once, so that embeddings stay with one worker."""
    cells = [cell for plan in plans for cell in plan.cells]
    yield from (cell.record for cell in cells if not cell.to_run and cell.record is not None)
    work = tuple(cell for cell in cells if cell.to_run)
    if not work:
        return
    threads = threads or (available_cores() if len(work) < 4 * jobs else 1)
    plan = replace(plans[0], cells=work)
    run = run_plan(plan, registry_dir(), limits=default_limits(jobs), threads=threads, **options)
    with show_progress(lines=False) as bar, closing(run):
        for number, record in enumerate(run, 1):
            if bar is not None:
                bar(number / len(work), f"{record.method} on {record.task}")
            yield record


@rate.command()
@click.argument("suite", shell_complete=ids_of("suite"))
@click.option("--against", default="", metavar="METHOD", help="Compare curves with this method's. [default: the first]")
@click.option(
    "--footprint",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="METRES",
    help="Width of a sample on the ground. [default: what the dataset says]",
)
@click.option("--only", multiple=True, callback=split_commas, metavar="METHOD|GLOB", help="Rank only these methods.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write FILE.svg or FILE.csv as well.")
@json_option
def show(suite: str, against: str, footprint: float, only: tuple[str, ...], out: Path | None, as_json: bool) -> None:
    """Rank the methods of a suite by their curves: the best form at each budget, areas, differences, fronts."""
    if out is not None and out.suffix.lower() not in (".svg", ".csv"):
        raise UsageError("not a form of curves", where=out, expected=".svg or .csv", got=out.suffix or "no suffix")
    board = one_board(suite, {"against": against, "footprint": str(footprint)}, only, kind="rate")
    if as_json:
        echo_json(plain(board))
    else:
        print_board(board, grid(board))
        for section in board.sections[:-1]:
            click.echo()
            print_section(board, section)
    if out is not None:
        drawn = out.suffix.lower() == ".svg"
        write_figure(out, (standalone(drawing(board, str)) if drawn else points_csv(board)).encode())
        click.echo(f"written: {out}", err=True)


def points_csv(board: Board) -> str:
    """All points, which are the last section."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    for section in board.sections[-1:]:
        lines.writerows([[column.key for column in section.columns], *section.rows])
    return text.getvalue()
