"""``neuco rate``: curves of Q against bytes for methods and files, and the board that ranks them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from neuco_core.boards.model import Board, Section, plain
from neuco_core.boards.report import grid, to_csv
from neuco_core.boards.stats.rank_intervals import percentiles
from neuco_core.boards.stats.uncertainty import LEVEL
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
from neuco_core.cli.output import echo_json, json_option, table, warn
from neuco_core.env import available_cores, registry_dir
from neuco_core.errors import ScoreError, UsageError
from neuco_core.figures import write_figure
from neuco_core.files import jsonable, write_atomic
from neuco_core.plugins.catalog import list_methods
from neuco_core.progress import show_progress
from neuco_core.protocol import Protocol
from neuco_core.records.model import Record
from neuco_core.runs.engine import default_limits, open_engine
from neuco_core.runs.files import find_files, free_names, open_file
from neuco_core.runs.plan import Plan, make_plan
from neuco_core.runs.run import run_plan, shared_folder
from neuco_core.site.write import standalone
from neuco_core.specs import Method, Suite, Task
from neuco_core.tables.embeddings import read_embeddings
from neuco_core.text import clean, counted
from neuco_extensions.coded.probe import Chain, coded_protocol, fits
from neuco_extensions.rate.board import POINTS
from neuco_extensions.rate.curves import ALL, CODERS, WHOLE, Curves, rate_cells
from neuco_extensions.rate.figure import drawing
from neuco_extensions.rate.signed_square import read_linearly

WIDE = 4  # with more tasks the table is too wide for a terminal


def _shares(ctx: click.Context, param: click.Parameter, value: str) -> tuple[float, ...]:
    """Shares such as 0.1, or 10%."""
    try:
        texts = split_commas(ctx, param, value)
        shares = tuple(float(text.removesuffix("%")) / (100 if text.endswith("%") else 1) for text in texts)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of shares such as 1%,10%,100%") from None
    if any(not 0 < share <= 1 for share in shares):
        raise click.BadParameter("a share of the labels is above 0 and at most 1, or 100 %")
    return shares


@click.group()
def rate() -> None:
    """How good are embeddings in fewer bytes? Curves of methods and files, and the board that ranks them."""


@rate.command()
@click.option(
    "--method",
    "names",
    multiple=True,
    metavar="ID|GLOB",
    callback=split_commas,
    shell_complete=ids_of("method"),
    help="Repeatable, or separated by commas.",
)
@click.option("--all", "everything", is_flag=True, help="Every method.")
@click.option(
    "--embeddings",
    "paths",
    multiple=True,
    type=click.Path(path_type=Path),
    callback=lambda ctx, param, names: tuple(find_files(names)) if names else (),
    help="A file, a pattern or a folder of files; repeatable.",
)
@task_options
@protocol_options
@click.option(
    "--coders",
    callback=split_commas,
    default=",".join(CODERS),
    show_default=True,
    help="Coders, chained by +: `neuco show coded` lists them.",
)
@click.option("--label-shares", "shares", callback=_shares, default="", help="Also learn from this much of the labels.")
@click.option("--fit-all", is_flag=True, help="Also learn each coder from all samples, to see what that flatters.")
@click.option("--retry", is_flag=True, help="Also run again what failed before.")
@click.option("--save", is_flag=True, help="Record the scores of --embeddings files as well.")
@engine_option
@jobs_option
@json_option
def curve(
    names: tuple[str, ...],
    everything: bool,
    paths: tuple[Path, ...],
    coders: tuple[str, ...],
    shares: tuple[float, ...],
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
    if not names and not paths and not everything:
        raise UsageError("nothing to score", hint="Give --method ID, --embeddings FILE or --all")
    for coder in coders:
        Chain(coder)  # raises
    choice = choose(**selection)
    if len(choice.groups) > 1:
        got = ", ".join(protocol.name for protocol, _ in choice.groups)
        raise UsageError("the tasks are scored under several protocols", got=got, hint="Say --suite, or --protocol")
    [(base, tasks)] = choice.groups
    protocols = [coded_protocol(base, coder) for coder in coders if coder != WHOLE]
    protocols += [coded_protocol(base, coder, fit="all") for coder in coders if fit_all and Chain(coder).learns]
    protocols += [coded_protocol(base, WHOLE, share=share) for share in shares if share < 1]
    with shared_folder() as shared:
        files = []
        for path, name in free_names(paths).items():
            files.append(open_file(path, tasks, name=name, shared=shared))
            for sentence in (*files[-1].warnings, read_linearly(read_embeddings(path).values)):
                if sentence:
                    warn(f"{path.name}: {sentence}")
        methods = list_methods(*names) if names or everything else []
        jobs = jobs or available_cores()
        options = {"engine": open_engine(engine, jobs), "shared": shared, "save": save}
        again: dict[str, bool] = {"retry": retry, "save": save}
        whole = list(
            _records([make_plan(methods, tasks, base, registry_dir(), files=files, **again)], jobs, threads, **options)
        )
        dims = {record.method: record.dim for record in whole if record.ok}
        plans = []
        for protocol in protocols:
            fitting = [m for m in methods if _fits(protocol, dims, m)]
            chosen = [file for file in files if _fits(protocol, dims, file.method)]
            plans.append(make_plan(fitting, tasks, protocol, registry_dir(), files=chosen, **again))
        records = [*whole, *_records(plans, jobs, threads, **options)]
    failed = [record for record in records if record.status == "failed"]
    _show(base, tasks, [record for record in records if record.ok], as_json=as_json)
    for reason in dict.fromkeys(f"failed {r.method} on {r.task}, {r.protocol}: {r.reason}" for r in failed):
        click.echo(clean(reason), err=True)
    if failed or not dims:
        raise ScoreError(f"{counted(len(failed), 'score')} failed" if failed else "nothing could be scored")


def _fits(protocol: Protocol, dims: dict[str, int | None], method: Method) -> bool:
    return method.id in dims and not fits(str(protocol.params["coder"]), dims[method.id])


def _records(plans: Sequence[Plan], jobs: int, threads: int | None, **options: Any) -> Iterator[Record]:
    """Those on record, and then those that are made: all plans at once, so that embeddings stay with one worker."""
    cells = [cell for plan in plans for cell in plan.cells]
    yield from (cell.record for cell in cells if not cell.to_run and cell.record is not None)
    work = tuple(cell for cell in cells if cell.to_run)
    if not work:
        return
    threads = threads or (available_cores() if len(work) < 4 * jobs else 1)
    run = run_plan(
        replace(plans[0], cells=work), registry_dir(), limits=default_limits(jobs), threads=threads, **options
    )
    with show_progress(lines=False) as bar, closing(run):
        for number, record in enumerate(run, 1):
            if bar is not None:
                bar(number / len(work), f"{record.method} on {record.task}")
            yield record


def _show(base: Protocol, tasks: Sequence[Task], records: Sequence[Record], *, as_json: bool) -> None:
    """The points of each method, by bytes."""
    suite = Suite(id="curve", tasks={task.id: task.version for task in tasks}, protocol=base.name)
    cells = rate_cells(records, suite, more=True)
    curves = Curves(cells, [m for m in cells.methods if cells.complete(m) and m.dim], cells.tasks)
    mean, again, rows = curves.q.mean(axis=0), curves.again, list[dict[str, Any]]()
    for at, point in enumerate(curves.points):
        by_task = {task.id: float(curves.q[t, at]) for t, task in enumerate(curves.tasks)}
        ends = percentiles(again[:, :, at].mean(axis=1), LEVEL) if again is not None else (None, None)
        price = next((mean[k] - mean[at] for k, other in enumerate(curves.points)
                      if (other.method, other.coder) == (point.method, point.coder + ALL)), None)  # fmt: skip
        row: dict[str, Any] = {"method": curves.methods[point.method].id, "coder": point.coder}
        row |= {"bytes_per_sample": point.size.sample, "shared_bytes": point.size.shared, "q": by_task}
        rows.append({**row, "mean_q": mean[at], "interval": list(ends), "learned_from_all": price})
    if as_json:
        echo_json(jsonable({"protocol": base.name, "points": rows}))
        return
    several, narrow = len(curves.methods) > 1, len(tasks) <= WIDE
    priced = any(row["learned_from_all"] is not None for row in rows)
    headers = [*(["method"] if several else []), "coder", "bytes/sample", "shared"]
    headers += [f"Q {task.id}" for task in curves.tasks] if narrow else []
    headers += ["mean Q", f"{LEVEL:.0%} interval", *(["from all samples"] if priced else [])]
    lines = []
    for row in sorted(rows, key=lambda row: (row["method"], -row["bytes_per_sample"])):
        if row["coder"].endswith(ALL):
            continue
        line = [row["method"]] if several else []
        line += [row["coder"], f"{row['bytes_per_sample']:.1f}", f"{row['shared_bytes']:.0f}"]
        line += [f"{value:.2f}" for value in row["q"].values()] if narrow else []
        low, high = row["interval"]
        line += [f"{row['mean_q']:.2f}", f"{low:.2f} to {high:.2f}" if low is not None else "–"]
        line += [f"{row['learned_from_all']:+.2f}" if row["learned_from_all"] is not None else ""] if priced else []
        lines.append(line)
    click.echo(table(headers, lines, right=set(range(1 + several, len(headers)))))
    click.echo(f"protocol {base.name}; shared: bytes that all samples share, such as codebooks")


@rate.command()
@click.argument("suite", shell_complete=ids_of("suite"))
@click.option("--against", default="", metavar="METHOD", help="Compare curves with this method's. [default: the first]")
@click.option("--footprint", type=click.FloatRange(min=0), default=0.0, metavar="METRES", help="Width of a sample.")
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
        for section in board.sections:
            if section.title != POINTS:
                click.echo()
                print_section(board, section)
    if out is not None:
        _write(board, out)


def _write(board: Board, out: Path) -> None:
    if out.suffix.lower() == ".svg":
        write_figure(out, standalone(drawing(board, str)).encode())
    else:
        write_atomic(out.absolute(), points_csv(board).encode())
    click.echo(f"written: {out}", err=True)


def points_csv(board: Board) -> str:
    section = next((section for section in board.sections if section.title == POINTS), Section("", (), ()))
    rows = [tuple("" if value is None else str(value) for value in row) for row in section.rows]
    return to_csv(replace(grid(board), plain=(tuple(column.key for column in section.columns), *rows)))
