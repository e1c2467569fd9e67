"""``neuco data pin``: verify a source that nobody has verified yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from neuco_core.cli.complete import ids_of
from neuco_core.cli.output import echo_json, json_option

if TYPE_CHECKING:
    from neuco_core.data.pinning import PinReport


@click.command()
@click.argument("tasks", nargs=-1, metavar="[TASK|GLOB]...", shell_complete=ids_of("task"))
@click.option("--suite", shell_complete=ids_of("suite"), help="The tasks of this suite.")
@click.option("--replace", is_flag=True, help="Accept a file that differs from its pin: its owner has changed it.")
@json_option
def pin(tasks: Sequence[str], suite: str | None, replace: bool, as_json: bool) -> None:
    """Verify labels that nobody has verified.

    Fetches the labels, shows sha256, bytes, rows and range, and pins them: from then on only these bytes are
    accepted. Compare the figures with what the owner of the data says before you rely on them. The pin goes into
    registry/pins.json of a checkout, else into your own pins.json; NEUCO_PINS names another file.
    """
    import dataclasses

    from neuco_core.cli.data_fetch import choose
    from neuco_core.data.pinning import pin_task

    reports = [pin_task(task, replace=replace) for task in choose(tasks, suite)]
    if as_json:
        return echo_json([dataclasses.asdict(report) for report in reports])
    for report in reports:
        _print(report)
    for file in sorted({report.file for report in reports if report.file}):
        click.echo(f"Pins are in {file}")
    return None


def _print(report: PinReport) -> None:
    click.echo(f"{report.task}: {report.state}")
    click.echo(f"  sha256  {report.sha256}")
    click.echo(f"  bytes   {report.size}")
    click.echo(f"  rows    {report.rows}" + (f", and {report.dropped} without a label" if report.dropped else ""))
    click.echo(f"  labels  from {report.lowest:g} to {report.highest:g}")
