"""``neuco data pin``: verify a source that nobody has verified yet."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from neuco_core.cli.complete import ids_of
from neuco_core.cli.output import echo_json, json_option
from neuco_core.errors import NeucoError, UsageError

if TYPE_CHECKING:
    from neuco_core.tables.pinning import PinReport


@click.command()
@click.argument("tasks", nargs=-1, metavar="[TASK|GLOB]...", shell_complete=ids_of("task"))
@click.option("--suite", shell_complete=ids_of("suite"), help="The tasks of this suite.")
@click.option("--method", "methods", multiple=True, shell_complete=ids_of("method"), help="The weights of this method.")
@click.option("--replace", is_flag=True, help="Accept a file that differs from its pin: its owner has changed it.")
@json_option
def pin(tasks: Sequence[str], suite: str | None, methods: Sequence[str], replace: bool, as_json: bool) -> None:
    """Verify labels, or weights of an encoder, that nobody has verified.

    Fetches them, shows sha256, bytes, rows and range, and pins them: from then on only these bytes are
    accepted. Compare the figures with what the owner of the data says before you rely on them. All are tried; if
    some fail, the others are pinned, and the command ends with the exit code of the first failure. The pin goes
    into registry/pins.json of a checkout, else into your own pins.json; NEUCO_PINS names another file.
    """
    from neuco_core.cli.data_fetch import choose, raise_for
    from neuco_core.plugins.catalog import load_method
    from neuco_core.tables.pinning import pin_task, pin_weights

    reports: dict[str, PinReport | NeucoError] = {}
    for task in choose(tasks, suite) if tasks or suite or not methods else ():
        try:
            reports[task.label] = pin_task(task, replace=replace)
        except NeucoError as error:
            reports[task.label] = error
    for name in methods:
        method = load_method(name)
        if not method.weights:
            raise UsageError(f"method {name!r} has no weights", hint="Files of embeddings are declared by their sha256")
        try:
            reports |= {report.task: report for report in pin_weights(method, replace=replace)}
        except NeucoError as error:
            reports[name] = error
    errors = [report for report in reports.values() if isinstance(report, NeucoError)]
    if as_json:
        echo_json([_as_json(name, report) for name, report in reports.items()])
    else:
        _show(reports)
    raise_for(errors, len(reports), "pinned")


def _as_json(name: str, report: PinReport | NeucoError) -> dict[str, Any]:
    if isinstance(report, NeucoError):
        return {"task": name, "state": "failed", "error": str(report)}
    return dataclasses.asdict(report)


def _show(reports: Mapping[str, PinReport | NeucoError]) -> None:
    good = [report for report in reports.values() if not isinstance(report, NeucoError)]
    for report in good:
        _print(report)
    failed = {name: report for name, report in reports.items() if isinstance(report, NeucoError)}
    for name, error in failed.items():
        # A single failure is the error that the command ends with; it is not said twice.
        click.echo(f"{name}: failed" + (f": {error}" if len(failed) > 1 else ""))
    for file in sorted({report.file for report in good if report.file}):
        click.echo(f"Pins are in {file}")


def _print(report: PinReport) -> None:
    click.echo(f"{report.task}: {report.state}")
    click.echo(f"  sha256  {report.sha256}")
    click.echo(f"  bytes   {report.size}")
    if report.lowest is not None and report.highest is not None:
        click.echo(f"  rows    {report.rows}" + (f", and {report.dropped} without a label" if report.dropped else ""))
        click.echo(f"  labels  from {report.lowest:g} to {report.highest:g}")
