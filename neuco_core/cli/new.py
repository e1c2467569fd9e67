"""``neuco new dataset``, ``task`` and ``method``: the start of a contribution."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neuco_core.cli.complete import ids_of
from neuco_core.cli.options import split_commas, together
from neuco_core.progress import show_progress
from neuco_core.specs import KINDS
from neuco_core.text import counted, join_names

if TYPE_CHECKING:
    from neuco_core.contract.scaffold import Words

WORDS = ("title", "description", "license", "citation", "caveats")
words = together(
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


@new.command()
@click.argument("name")
@click.option("--images", required=True, metavar="FOLDER|FILE|URL", help="A folder of images, or a set of them.")
@words
@click.option("--citation", default="", help="A DOI, an arXiv number or a BibTeX entry, if there is one.")
@click.option(
    "--bands", callback=split_commas, default="", help="Names such as s2l2a/B02,s2l2a/B03.  [default: the files']"
)
@click.option("--seasons", callback=split_commas, default="", help="Names of the first axis of arrays with four.")
@click.option("--protocol", default="ridge", show_default=True, help="How its tasks are scored.")
@click.option("--leave-out-damaged", is_flag=True, help="Pack without damaged images; each is named.")
def dataset(name: str, images: str, **given: Any) -> None:
    """Make a dataset from a folder of images: GeoTIFF, PNG, JPEG or NumPy arrays, at any depth.

    Or of a published set: a Parquet file of Hugging Face (hf://datasets/OWNER/NAME@REVISION/PATH), whose other columns
    are written to NAME.csv as labels to choose from, or a zip of images.

    A file is a sample, and its name without the suffix is the id. Bands, size and georeference are read from the files;
    all must have the same bands and size. They are packed into one verified archive, which needs no library to read. A
    large one is published first (`neuco data package FOLDER`), and declared by its address.
    """
    from neuco_core.contract.new_dataset import new_dataset

    said = _words(name, given, cited=False)
    with show_progress() as progress:
        step = (lambda done, total: progress(done / total, "packing")) if progress else None
        made = new_dataset(said, images, progress=step, **given)
    height, width = made.index.size
    click.echo(f"{made.path}: {len(made.index.samples)} images of {height} × {width} pixels")
    click.echo(f"  bands     {', '.join(made.index.bands)}")
    located = sum(bool(sample.crs) for sample in made.index.samples.values())
    click.echo(f"  places    {located} of {len(made.index.samples)} are georeferenced")
    for sample, reason in made.left_out.items():
        click.echo(f"  left out  {sample}: {reason}")
    if made.others:
        told = ", ".join(f"{count} {suffix or 'without suffix'}" for suffix, count in made.others.items())
        click.echo(f"  no images {told}: not looked at")
    labels = "FILE"
    if made.table:
        from neuco_core.files import write_new

        labels = str(write_new(Path(f"{name}.csv"), made.table))
        click.echo(f"  table     {labels}: {made.table.partition(chr(10))[0]}")
    _next(said, made.path, given)
    click.echo(f"  neuco new task TASK --labels {labels} --dataset {name} …")


@new.command()
@click.argument("name")
@click.option("--labels", required=True, metavar="FILE|URL", help="A CSV with the columns id and label.")
@click.option("--column", "columns", multiple=True, metavar="NAME", help="A label column; repeatable.  [label]")
@click.option("--id-column", default="id", show_default=True, metavar="NAME", help="The column with the ids.")
@click.option("--group-column", metavar="NAME", help="Samples of one group are never on both sides of a split.")
@click.option("--split-column", metavar="NAME", help="A fixed split: the words train and test.")
@words
@click.option("--citation", required=True, help="A DOI, an arXiv number (arXiv:2510.17914) or a BibTeX entry.")
@click.option("--unit", default="", help="The unit of the labels; 1 for a share.")
@click.option("--kind", type=click.Choice(KINDS), help="Told by the labels if not given; asked for if unclear.")
@click.option("--metric", default="", shell_complete=ids_of("metric"), help="For example mae.  [default: the kind's]")
@click.option("--dataset", shell_complete=ids_of("dataset"), help="Told by the ids if not given.")
def task(name: str, labels: str, **given: Any) -> None:
    """Make a task from labels: packaged, hashed, with a measured baseline, a card and a test.

    Kinds: regression (several columns are several outputs), classification (one column of names, or of the numbers 0,
    1, … or 1, 2, …), multilabel (several columns of 0 and 1, or one of lists such as "forest; water"). Labels must be
    of a dataset that is registered: `neuco new dataset` makes one of your images.
    """
    from neuco_core.contract.baselines import NO_HEADROOM
    from neuco_core.contract.new_task import new_task

    said = _words(name, given)
    made = new_task(said, labels, **given)
    click.echo(f"{made.path}: {made.package.rows} labels")
    for reason, count in made.package.dropped.items():
        click.echo(f"  dropped   {counted(count, 'row')}: {reason.replace('_', ' ')}")
    click.echo(f"  kind      {made.package.kind} ({_told(made.package.kind_from)}), metric {made.task.metric}")
    if made.package.columns != ("label",):
        click.echo(f"  columns   {join_names(made.package.columns)}")
    if made.task.splitter:
        click.echo(f"  splits    {made.task.splitter}, in the place of random ones")
    click.echo(f"  dataset   {made.task.dataset} ({made.dataset_from})")
    for note in made.notes:
        click.echo(f"            {note}")
    base = made.baseline
    click.echo(f"  baseline  {base.method} reaches {base.score} ± {base.tolerance} under {base.protocol}")
    if base.source.endswith(NO_HEADROOM):
        click.echo(f"            {NO_HEADROOM}: it proves nothing about the labels")
    _next(said, made.path, given)


@new.command()
@click.argument("name")
@click.option("--embeddings", metavar="FILE|URL", help="A CSV, Parquet or NPZ file, or its address; with --dataset.")
@click.option("--encoder", is_flag=True, help="Code that runs on cubes, for you to fill in.")
@words
@click.option("--citation", default="", help="A DOI, an arXiv number or a BibTeX entry, if there is one.")
@click.option("--dataset", shell_complete=ids_of("dataset"), help="The dataset of the embeddings.")
@click.option("--requires", multiple=True, metavar="PACKAGE[==VERSION]", help="Lock this package for the encoder.")
@click.option("--weights", multiple=True, metavar="NAME=URL", help="A file that the encoder is given, verified.")
def method(name: str, embeddings: str | None, encoder: bool, **given: Any) -> None:
    """Make a method from a file of embeddings, or a working encoder to be made your own.

    What is at an address is fetched, checked and declared by its sha256, and stays where it is. --requires writes a
    requirements.txt with the hashes of all packages that neuco does not bring; pip finds them as it is configured.
    """
    from neuco_core.contract.new_method import new_method
    from neuco_core.errors import UsageError

    if (embeddings is None) != encoder:
        raise UsageError("what kind of method?", expected="either --embeddings FILE|URL or --encoder")
    said = _words(name, given, cited=False)
    made = new_method(said, embeddings=embeddings, **given)
    click.echo("\n".join([str(made.path), *(f"  {note}" for note in made.notes)]))
    if given["requires"] and not given["as_package"]:
        from neuco_core.encode.lock import FILE as LOCK
        from neuco_core.encode.lock import command

        click.echo(f"for your own machine: {command(made.path / LOCK)}")
    _next(said, made.path, given)


def _words(name: str, given: dict[str, Any], *, cited: bool = True) -> Words:
    """What the plugin says of itself, taken out of the options."""
    from neuco_core.contract.metadata import check_citation, check_license
    from neuco_core.contract.scaffold import Words

    said = Words(name, **{field: given.pop(field) for field in WORDS})
    check_license(said.license)
    if cited or said.citation:
        check_citation(said.citation)
    return said


def _on_path(tree: Path) -> bool:
    """Whether plugins in this folder, neuco_tasks or neuco_methods, are found by the next command."""
    return any(Path(place).resolve() == tree.resolve().parent for place in sys.path)


def _told(kind_from: str) -> str:
    return kind_from if kind_from == "given" else f"from {kind_from}"


def _next(said: Words, path: Path, given: Mapping[str, Any]) -> None:
    click.echo("next:")
    if given["as_package"]:
        click.echo(f"  pip install -e {path}")
    elif not _on_path(path.parent):
        click.echo(f"  export PYTHONPATH={path.resolve().parent.parent}  # else neuco does not find it")
    if not said.caveats:
        click.echo(f"  edit {path / 'README.md'}: write down the caveats")
    click.echo(f"  neuco check {said.name}")
