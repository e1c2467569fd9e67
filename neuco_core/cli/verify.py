"""``neuco verify`` and ``neuco explain``: can a record be trusted, and why is a cell as it is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import click

from neuco_core.cli.complete import ids_of
from neuco_core.cli.output import clean, echo_json, json_option, table
from neuco_core.text import counted

MACHINE = "depends on the machine"

if TYPE_CHECKING:
    from neuco_core.records.model import Record
    from neuco_core.runs.verify import Verified


@click.command()
@click.argument("files", nargs=-1, metavar="[RECORD]...", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--all", "everything", is_flag=True, help="All records of the registry.")
@click.option("--cached", is_flag=True, help="Quicker: take embeddings from the cache, if they are there.")
@click.option("--tolerance", type=float, help="Of a split's score. [default: 0.0001]")
@click.option("--engine", default="local", show_default=True, help="local, dask (here) or dask://host:port.")
@click.option("--jobs", type=click.IntRange(min=1), help="Worker processes. [default: one per core]")
@json_option
def verify(
    files: Sequence[Path],
    everything: bool,
    cached: bool,
    tolerance: float | None,
    engine: str,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Run scores again and compare every field of their records, split by split, with what comes out.

    Embeddings are made afresh, unless you say --cached: then a wrong file in the cache is not noticed. A record is
    "same" if nothing differs at all and "close" if no split differs by more than the tolerance. One of a method that is
    trained anew "depends on the machine" if its mean is as near as the method declares: it is neither confirmed nor
    refuted. One without a score is "not checked". Records are read strictly first: one that is damaged or edited is an
    error. The exit code is 1 if a record differs, is stale or cannot be scored here, and if none was confirmed.
    """
    from neuco_core.env import available_cores
    from neuco_core.errors import ScoreError
    from neuco_core.plugins.catalog import name_of
    from neuco_core.runs.engine import open_engine
    from neuco_core.runs.run import default_limits, shared_folder
    from neuco_core.runs.verify import TOLERANCE, verify_records

    if everything == bool(files):
        raise click.UsageError("say which records, or --all")
    limit = TOLERANCE if tolerance is None else tolerance
    records = _records(files)
    twice = len({record.key for record in records.values()}) < len(records)
    count = jobs or available_cores()
    checks = []
    with shared_folder() as shared:
        runner = open_engine(engine, count)
        for check in verify_records(records, runner, default_limits(count), limit, fresh=not cached, shared=shared):
            checks.append(check)
            click.echo(f"[{len(checks)}/{len(records)}] {_line(check, twice)}", err=True)
    checks.sort(key=lambda check: (check.record.key, str(check.path)))
    if as_json:
        how = "cached" if cached else "fresh"
        echo_json({"tolerance": limit, "embeddings": how, "checks": [check.to_json() for check in checks]})
    else:
        _show(checks, limit, twice, cached)
    bad = [check for check in checks if check.confirmed is False]
    if bad:
        first = bad[0].record
        names = name_of("method", first.key[0]), name_of("task", first.key[1])
        told = shlex.join(["neuco", "explain", *names, "--protocol", first.protocol])
        what = f"{len(bad)} of {counted(len(checks), 'record')} not confirmed"
        raise ScoreError(what, got=_line(bad[0], twice), hint=f"Run `{told}`")
    if not any(check.confirmed for check in checks):
        if any(check.verdict == MACHINE for check in checks):
            what, hint = "nothing was confirmed: numbers depend on the machine", "Run it where the record was made"
        else:
            what = "nothing was confirmed: no record could be run again"
            hint = "Run `neuco score --retry` to try again what failed"
        raise ScoreError(what, got=_line(checks[0], twice), hint=hint)


def _records(files: Sequence[Path]) -> dict[Path, Record]:
    from neuco_core.errors import DataError
    from neuco_core.paths import registry_dir
    from neuco_core.plugins.catalog import list_tasks
    from neuco_core.records.store import read_record, record_files

    if files:
        return {path: read_record(path, expect_place=False) for path in files}
    registry = registry_dir()
    known = {task.id for task in list_tasks()}
    records = {path: read_record(path) for path in record_files(registry)}
    for path, record in records.items():
        if record.task not in known:
            raise DataError(f"a record of the unknown task {record.task!r}", where=path, hint="See `neuco tasks`")
    if not records:
        hint = "Run `neuco score`, or set NEUCO_REGISTRY to a registry that has records"
        raise DataError("no records to verify", where=registry / "results", hint=hint)
    return records


def _line(check: Verified, with_file: bool) -> str:
    name = f"{check.verdict} {check.record.key[0]} on {check.record.key[1]}"
    name += f" in {check.path}" if with_file else ""
    difference = "" if check.difference is None else f", largest difference {check.difference:.2g}"
    return clean(name + difference + (f": {check.reason}" if check.reason else ""))


def _show(checks: Sequence[Verified], tolerance: float, with_file: bool, cached: bool) -> None:
    """A table; files are named where two are of one cell."""
    rows = [
        [
            *check.record.key,
            check.verdict,
            "" if check.difference is None else f"{check.difference:.2g}",
            *([str(check.path)] if with_file else []),
            check.reason,
        ]
        for check in checks
    ]
    head = ["method", "task", "protocol", "verdict", "difference", *(["file"] if with_file else []), "reason"]
    click.echo(table(head, rows, right=(4,)))
    elsewhere = sum(check.verdict == MACHINE for check in checks)
    open_ones = sum(check.confirmed is None for check in checks) - elsewhere
    left = f", {open_ones} not checked (without a score, or made from a file)" if open_ones else ""
    left += f", {elsewhere} that {'depends' if elsewhere == 1 else 'depend'} on the machine" if elsewhere else ""
    how = "embeddings from the cache where it had them" if cached else "embeddings made afresh"
    confirmed = sum(check.confirmed is True for check in checks)
    click.echo(f"{confirmed} of {len(checks)} confirmed{left}, tolerance {tolerance:g}, {how}")


@click.command()
@click.argument("method", shell_complete=ids_of("method"))
@click.argument("task", shell_complete=ids_of("task"))
@click.option("--protocol", help="See `neuco protocols`. [default: the dataset's]")
@json_option
def explain(method: str, task: str, protocol: str | None, as_json: bool) -> None:
    """Say why a method's score on a task is cached, stale, failed, skipped or not there."""
    from neuco_core.paths import registry_dir
    from neuco_core.plugins.catalog import load_method, load_protocol, load_task, task_protocol
    from neuco_core.runs.verify import explain_cell

    asked = load_task(task)
    chosen = load_protocol(protocol) if protocol else task_protocol(asked)
    found = explain_cell(load_method(method), asked, chosen, registry_dir())
    if as_json:
        echo_json(found.to_json())
        return
    click.echo(clean(f"{found.method} on {found.task} under {found.protocol}: {found.state} ({found.meaning})"))
    if found.reason:
        click.echo(clean(found.reason))
    click.echo(clean(f"record: {found.record or 'none'}"))
    if not found.record and (others := _protocols(registry_dir(), found.method, found.task)):
        click.echo(clean(f"there are records under {', '.join(others)}: give --protocol"))
    rows = [
        [name, _short(then), _short(now), _changed(name, then, now, bool(found.record))]
        for name, then, now in found.inputs
    ]
    click.echo(table(["input", "recorded", "now", ""], rows))
    if found.command:
        click.echo(clean(f"next: {found.command}"))


def _protocols(registry: Path, method: str, task: str) -> list[str]:
    """The protocols other than the usual one under which the cell has a record."""
    from neuco_core.records.store import folder_name, record_names

    start = f"{folder_name(task)}@"
    names = {name.removesuffix(".json") for name in record_names(registry, method) if name.startswith(start)}
    return sorted(unquote(name.partition("@")[2]) for name in names)


def _short(value: object) -> str:
    text = "–" if value is None else str(value)
    return text if len(text) <= 34 else text[:12] + "…"


def _changed(name: str, then: object, now: object, recorded: bool) -> str:
    if not recorded or then == now:
        return ""
    # Contents are hashed when they are loaded, and where something comes from may be unknown on this machine.
    return "not compared" if now is None else "changed"
