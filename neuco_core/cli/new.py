"""``neuco new dataset``, ``task`` and ``method``: the start of a contribution."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from neuco_core.cli.options import column_options, ids_of, split_commas, together
from neuco_core.contract.new_dataset import DatasetRequest, new_dataset
from neuco_core.contract.new_method import MethodRequest, lock_command, new_method
from neuco_core.contract.new_task import TaskRequest, new_task
from neuco_core.contract.scaffold import PluginRequest
from neuco_core.errors import UsageError
from neuco_core.files import write_new
from neuco_core.progress import show_progress
from neuco_core.specs import KINDS
from neuco_core.text import join_names


class AllMissing(click.Command):
    """Names every option that is missing, where click names the first."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            values, _, _ = self.make_parser(ctx).parse_args(given)
            missing = [p.opts[0] for p in self.params if p.required and p.param_type_name == "option"]
            missing = [option for option in missing if values.get(option.lstrip("-")) is None]
            if len(missing) < 2:
                raise
            raise click.UsageError(f"Missing options {join_names(missing)}.", ctx) from error


plugin_options = together(
    click.option("--title", required=True, help="A few words."),
    click.option("--description", required=True, help="One sentence: what it is."),
    click.option("--license", required=True, help="An SPDX expression, e.g. CC-BY-4.0."),
    click.option("--caveats", default="", help="What to beware of, for the card; CI refuses a card without any."),
    click.option("--into", type=click.Path(file_okay=False, path_type=Path), help="Write it below this folder."),
    click.option("--package", "as_package", is_flag=True, help="Write a whole distribution for you to publish."),
)


@click.group()
def new() -> None:
    """Start a dataset, a task or a method: a directory that keeps the contract from the start."""


@new.command(cls=AllMissing)
@click.argument("name")
@click.option("--images", required=True, metavar="FOLDER|FILE|URL", help="A folder of images, or a set of them.")
@plugin_options
@click.option("--citation", default="", help="A DOI, an arXiv number or a BibTeX entry, if there is one.")
@click.option(
    "--bands", callback=split_commas, default="", help="Names such as s2l2a/B02,s2l2a/B03.  [default: the files']"
)
@click.option("--seasons", callback=split_commas, default="", help="Names of the first axis of arrays with four.")
@click.option("--protocol", default="ridge", show_default=True, help="How its tasks are scored.")
@click.option("--leave-out-damaged", is_flag=True, help="Pack without damaged images; each is named.")
def dataset(**options: Any) -> None:
    """Make a dataset from a folder of images: GeoTIFF, PNG, JPEG or NumPy arrays, at any depth.

    Or of a published set: a Parquet file of Hugging Face (hf://datasets/OWNER/NAME@REVISION/PATH), whose other columns
    are written to NAME.csv as labels to choose from, or a zip of images.

    A file is a sample, and its name without the suffix is the id. Bands, size and georeference are read from the files;
    all must have the same bands and size. They are packed into one verified archive, which needs no library to read. A
    large one is published first (`neuco data package FOLDER`), and declared by its address.
    """
    request = DatasetRequest(**options)
    with show_progress() as progress:
        step = (lambda done, total: progress(done / total, "packing")) if progress else None
        path, lines, table = new_dataset(request, step)
    click.echo("\n".join(lines))
    labels = "FILE"
    if table:
        labels = str(write_new(Path(f"{request.name}.csv"), table))
        click.echo(f"  table     {labels}: {table.partition(chr(10))[0]}")
    _show_next(request, path)
    click.echo(f"  neuco new task TASK --labels {labels} --dataset {request.name} …")


@new.command(cls=AllMissing)
@click.argument("name")
@click.option("--labels", required=True, metavar="FILE|URL", help="A CSV with the columns id and label.")
@column_options
@plugin_options
@click.option("--citation", required=True, help="A DOI, an arXiv number (arXiv:2510.17914) or a BibTeX entry.")
@click.option("--unit", default="", help="The unit of the labels; 1 for a share.")
@click.option("--kind", type=click.Choice(KINDS), help="[default: from the labels, if they leave no doubt]")
@click.option("--metric", default="", shell_complete=ids_of("metric"), help="For example mae.  [default: the kind's]")
@click.option("--dataset", shell_complete=ids_of("dataset"), help="[default: the one that has all the ids]")
def task(**options: Any) -> None:
    """Make a task from labels: packaged, hashed, with a measured baseline, a card and a test.

    Kinds: regression (several columns are several outputs), classification (one column of names, or of the numbers 0,
    1, … or 1, 2, …), multilabel (several columns of 0 and 1, or one of lists such as "forest; water"). Labels must be
    of a dataset that is registered: `neuco new dataset` makes one of your images.
    """
    request = TaskRequest(**options)
    path, lines = new_task(request)
    click.echo("\n".join(lines))
    _show_next(request, path)


@new.command(cls=AllMissing)
@click.argument("name")
@click.option("--embeddings", metavar="FILE|URL", help="A CSV, Parquet or NPZ file, or its address; with --dataset.")
@click.option("--encoder", is_flag=True, help="Code that runs on cubes, for you to fill in.")
@plugin_options
@click.option("--citation", default="", help="A DOI, an arXiv number or a BibTeX entry, if there is one.")
@click.option("--dataset", shell_complete=ids_of("dataset"), help="Of the embeddings; or whose bands an encoder needs.")
@click.option("--requires", multiple=True, metavar="PACKAGE[==VERSION]", help="A package that the encoder needs.")
@click.option("--weights", multiple=True, metavar="NAME=URL", help="A file that the encoder is given, verified.")
def method(embeddings: str | None, encoder: bool, **options: Any) -> None:
    """Make a method from a file of embeddings, or a working encoder to be made your own.

    What is at an address is fetched, checked and declared by its sha256, and stays where it is. Packages of --requires
    are declared; the command that locks them, with all that they need, is printed.
    """
    if (embeddings is None) != encoder:
        raise UsageError("Give either --embeddings FILE|URL or --encoder")
    request = MethodRequest(embeddings=embeddings, **options)
    path, lines = new_method(request)
    click.echo("\n".join(lines))
    _show_next(request, path, f"{lock_command(request.requires, path)}  # needs uv" if request.requires else "")


def _show_next(request: PluginRequest, path: Path, step: str = "") -> None:
    click.echo("next:")
    if request.as_package:
        click.echo(f"  pip install -e {path}")
    elif not any(Path(entry).resolve() == path.resolve().parent.parent for entry in sys.path):
        click.echo(f"  export PYTHONPATH={path.resolve().parent.parent}  # else neuco does not find it")
    if step:
        click.echo(f"  {step}")
    if not request.caveats:
        click.echo(f"  edit {path / 'README.md'}: write down the caveats")
    click.echo(f"  neuco check {request.name}")
