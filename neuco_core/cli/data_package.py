"""``neuco data package``: check labels, write them in canonical form, print their declaration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from neuco_core.cli.output import echo_json, json_option
from neuco_core.specs import KINDS

if TYPE_CHECKING:
    from neuco_core.tables.package import Package


@click.command()
@click.argument("labels", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="The file to write.  [default: TASK__regr.csv or __cls]")
@click.option("--kind", type=click.Choice(KINDS), help="The kind of task.  [default: from the file's name or labels]")
@click.option("--task", metavar="ID", help="The id of the task.  [default: from the file's name]")
@click.option(
    "--column", "columns", multiple=True, metavar="NAME", help="A label column; repeatable.  [default: label]"
)
@click.option("--group-column", metavar="NAME", help="The column with the groups for splits.")
@click.option("--force", is_flag=True, help="Replace the file that is there.")
@json_option
def package(
    labels: Path,
    out: Path | None,
    kind: str | None,
    task: str | None,
    columns: tuple[str, ...],
    group_column: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Check a CSV of labels, write it in canonical form and print its declaration.

    The same labels always give the same bytes, whatever the order of the rows and the notation of the numbers. Labels
    that another task has already are refused.
    """
    from neuco_core.plugins.catalog import list_tasks
    from neuco_core.tables.package import package_labels

    made = package_labels(
        labels,
        out=out,
        kind=kind,
        task=task,
        columns=columns or ("label",),
        group_column=group_column,
        tasks=list_tasks(),
        replace=force,
    )
    if as_json:
        echo_json(made.to_json())
    else:
        _show(made)


def _show(made: Package) -> None:
    rows = f"{made.rows} rows" + "".join(f", {count} dropped: {reason}" for reason, count in made.dropped.items())
    content = (
        f"classes {', '.join(made.classes)}" if made.classes else f"labels from {made.lowest:g} to {made.highest:g}"
    )
    click.echo(f"wrote {made.path}: {rows}, {content}, {made.size} bytes")
    click.echo(f"kind {made.kind} (from {made.kind_from})" if made.kind_from != "given" else f"kind {made.kind}")
    unread = f"; {len(made.not_compared)} more are not on this machine" if made.not_compared else ""
    click.echo(f"no other task has these labels ({len(made.compared)} compared{unread})")
    click.echo(f"\n{made.declaration}")
