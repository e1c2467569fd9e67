"""``neuco verify`` and ``neuco explain``: can a record be trusted, and why is a cell as it is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from neuco_core.cli.options import engine_option, ids_of, jobs_option
from neuco_core.cli.output import clean, echo_json, json_option, table
from neuco_core.env import available_cores, layers, registry_dir
from neuco_core.errors import DataError, ScoreError, UnknownIdError
from neuco_core.plugins.catalog import load_method, load_protocol, load_task, name_of, task_protocol
from neuco_core.protocol import Protocol
from neuco_core.records.model import Record
from neuco_core.records.store import find_record, read_all, read_method, records_file
from neuco_core.runs.engine import default_limits, open_engine
from neuco_core.runs.plan import STATES, Planner
from neuco_core.runs.run import shared_folder
from neuco_core.runs.verify import TOLERANCE, Verified, verify_records
from neuco_core.specs import Method, Task, exact
from neuco_core.text import counted

MACHINE = "depends on the machine"


@click.command()
@click.argument("names", nargs=-1, metavar="[METHOD[/TASK]]...", shell_complete=ids_of("method"))
@click.option("--cached", is_flag=True, help="Quicker: take embeddings from the cache, if they are there.")
@click.option("--tolerance", type=float, default=TOLERANCE, help="Of a split's score. [default: 0.0001]")
@engine_option
@jobs_option
@json_option
def verify(names: Sequence[str], cached: bool, tolerance: float, engine: str, jobs: int | None, as_json: bool) -> None:
    """Run scores again and compare every field of their records, split by split, with what comes out.

    Name methods, or cells as METHOD/TASK; without a name, all records of the registry are verified.

    Embeddings are made afresh, unless you say --cached: then a wrong file in the cache is not noticed. A record is
    "same" if nothing differs at all and "close" if no split differs by more than the tolerance. One of a method that is
    trained anew "depends on the machine" if its mean is as near as the method declares: it is neither confirmed nor
    refuted. One without a score is "not checked". Records are read strictly first: one that is damaged or edited is an
    error. The exit code is 1 if a record differs, is stale or cannot be scored here, and if none was confirmed.
    """
    records = _records(names)
    count = jobs or available_cores()
    checks: list[Verified] = []
    told: set[str] = set()
    with shared_folder() as shared:
        runner, limits = open_engine(engine, count), default_limits(count)
        for check in verify_records(records, runner, limits, tolerance, fresh=not cached, shared=shared):
            checks.append(check)
            click.echo(f"[{len(checks)}/{len(records)}] {_line(check, told)}", err=True)
    checks.sort(key=lambda check: check.record.key)
    if as_json:
        how = "cached" if cached else "fresh"
        echo_json({"tolerance": tolerance, "embeddings": how, "checks": [check.to_json() for check in checks]})
    else:
        _show(checks, tolerance, cached)
    bad = [check for check in checks if check.confirmed is False]
    if bad:
        first = bad[0].record
        cell = name_of("method", first.key[0]), name_of("task", first.key[1])
        command = shlex.join(["neuco", "explain", *cell, "--protocol", first.protocol])
        what = f"{len(bad)} of {counted(len(checks), 'record')} not confirmed"
        raise ScoreError(what, got=_line(bad[0]), hint=f"Run `{command}`")
    if not any(check.confirmed for check in checks):
        if any(check.verdict == MACHINE for check in checks):
            what, hint = "nothing was confirmed: numbers depend on the machine", "Run it where the record was made"
        else:
            what = "nothing was confirmed: no record could be run again"
            hint = "Run `neuco score --retry` to try again what failed"
        raise ScoreError(what, got=_line(checks[0]), hint=hint)


def _records(names: Sequence[str]) -> list[Record]:
    """The records of these methods and cells, or all; ``x`` is every version of it and ``x@1`` the first."""
    registry = registry_dir()
    records = read_all(registry)
    if not records:
        hint = "Run `neuco score`, or set NEUCO_REGISTRY to a registry that has records"
        raise DataError("no records to verify", where=registry / "records", hint=hint)
    chosen = {} if names else {record.key: record for record in records}
    for name in names:
        method, slash, task = name.partition("/")
        of_method = [r for r in records if method == r.method or exact(method) == exact(r.key[0])]
        if not of_method:
            raise UnknownIdError("record of method", method, {record.method for record in records})
        cells = [r for r in of_method if not slash or task == r.task or exact(task) == exact(r.key[1])]
        if not cells:
            raise UnknownIdError(f"record of {method} on task", task, {record.task for record in of_method})
        chosen |= {record.key: record for record in cells}
    return list(chosen.values())


def _line(check: Verified, told: set[str] | None = None) -> str:
    reason = _once(check.reason, told) if told is not None else check.reason
    name = f"{check.verdict} {check.record.key[0]} on {check.record.key[1]}"
    difference = "" if check.difference is None else f", largest difference {check.difference:.2g}"
    return clean(name + difference + (f": {reason}" if reason else ""))


def _once(reason: str, reasons: set[str]) -> str:
    """A reason, or that it stands above: one changed file concerns every method."""
    if reason and reason in reasons:
        return "as above"
    reasons.add(reason)
    return reason


def _show(checks: Sequence[Verified], tolerance: float, cached: bool) -> None:
    rows = []
    reasons: set[str] = set()
    for check in checks:
        difference = "" if check.difference is None else f"{check.difference:.2g}"
        rows.append([*check.record.key, check.verdict, difference, _once(check.reason, reasons)])
    click.echo(table(["method", "task", "protocol", "verdict", "difference", "reason"], rows, right=(4,)))
    elsewhere = sum(check.verdict == MACHINE for check in checks)
    open_ones = sum(check.confirmed is None for check in checks) - elsewhere
    left = f", {open_ones} not checked (without a score, or made from a file)" if open_ones else ""
    left += f", {elsewhere} that {'depends' if elsewhere == 1 else 'depend'} on the machine" if elsewhere else ""
    how = "embeddings from the cache where it had them" if cached else "embeddings made again"
    confirmed = sum(check.confirmed is True for check in checks)
    click.echo(f"{confirmed} of {len(checks)} confirmed{left}, tolerance {tolerance:g}, {how}")


@click.command()
@click.argument("method", shell_complete=ids_of("method"))
@click.argument("task", shell_complete=ids_of("task"))
@click.option("--protocol", help="See `neuco protocols`. [default: the dataset's]")
@json_option
def explain(method: str, task: str, protocol: str | None, as_json: bool) -> None:
    """Say why a method's score on a task is cached, stale, failed, skipped or not there."""
    registry, asked = registry_dir(), load_task(task)
    chosen = load_protocol(protocol) if protocol else task_protocol(asked)
    cell = _explained(load_method(method), asked, chosen, registry)
    if as_json:
        echo_json(cell)
        return
    click.echo(clean("{method} on {task} under {protocol}: {state} ({meaning})".format_map(cell)))
    if cell["reason"]:
        click.echo(clean(cell["reason"]))
    click.echo(clean(f"record: {cell['record'] or 'none'}"))
    others = sorted(protocol for _, name, protocol in read_method(registry, cell["method"]) if name == cell["task"])
    if others and not cell["record"]:
        click.echo(clean(f"there are records under {', '.join(others)}: give --protocol"))
    rows = []
    for name, value in cell["inputs"].items():
        then, now, changed = value["recorded"], value["now"], ""
        if cell["record"] and then != now:
            # Contents are hashed when they are loaded, and where something comes from may be unknown on this machine.
            changed = "not compared" if now is None else "changed"
        texts = ("–" if content is None else str(content) for content in (then, now))
        rows.append([name, *(text if len(text) <= 34 else text[:12] + "…" for text in texts), changed])
    click.echo(table(["input", "recorded", "now", ""], rows))
    if cell["command"]:
        click.echo(clean(f"next: {cell['command']}"))


def _explained(method: Method, task: Task, protocol: Protocol, registry: Path) -> dict[str, Any]:
    """Why a cell is cached, stale, failed, skipped or not there; nothing is computed.

    ``inputs`` are as recorded and as they are now, ``record`` is the file of its record, ``command`` the next one.
    """
    record = find_record(registry, (method.label, task.label, protocol.name))
    cell = Planner(protocol, {record.key: record} if record else {}).cell(method, task)
    then = record.inputs if record else {}
    command = []
    if cell.state == "cached":
        command = ["neuco", "verify", f"{method.label}/{task.label}"]
    elif cell.to_run or cell.state == "failed":
        command = ["neuco", "score", "--method", name_of("method", method.label), "--task", name_of("task", task.label)]
        if protocol != task_protocol(task):
            command += ["--protocol", protocol.name]
        if cell.state == "failed":
            command.append("--retry")
    names = sorted(then.keys() | cell.inputs.keys())
    kept = [records_file(layer, method.label) for layer in layers(registry)]
    return {
        **cell.to_json(),
        "meaning": STATES[cell.state],
        "record": next((str(path) for path in kept if path.exists()), "") if record else "",
        "inputs": {name: {"recorded": then.get(name), "now": cell.inputs.get(name)} for name in names},
        "command": shlex.join(command),
    }
