"""``neuco data link``: use a local copy of a dataset instead of downloads."""

from __future__ import annotations

from pathlib import Path

import click

from neuco_core.cli.complete import ids_of
from neuco_core.cli.output import echo_json, json_option, table
from neuco_core.errors import UsageError


@click.command()
@click.argument("dataset", required=False, shell_complete=ids_of("dataset"))
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--remove", is_flag=True, help="Forget the link; the files stay.")
@json_option
def link(dataset: str | None, folder: Path | None, remove: bool, as_json: bool) -> None:
    """Use a local copy of a dataset.

    Links the copy of DATASET in FOLDER; without arguments, lists the links. Files are looked for by their path in
    the dataset. The variable NEUCO_DATASET_<ID> does the same for one run, and wins.
    """
    from neuco_core.fetch import links

    if dataset and remove:
        if not links.remove_link(dataset):
            raise UsageError(f"{dataset!r} is not linked", hint="`neuco data link` lists the links")
    elif dataset and folder:
        from neuco_core.plugins.catalog import load_dataset

        links.add_link(load_dataset(dataset).id, folder)
    elif dataset or remove:
        raise UsageError("a link needs a dataset and a folder", hint="neuco data link DATASET FOLDER, or --remove")
    folders = links.read_links()
    if as_json:
        return echo_json(folders)
    click.echo(table(("dataset", "folder"), sorted(folders.items())) if folders else "No dataset is linked.")
    return None
