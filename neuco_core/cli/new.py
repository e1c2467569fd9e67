"""``neuco new task`` and ``neuco new method``: the start of a contribution."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neuco_core.cli.complete import ids_of
from neuco_core.cli.options import together

if TYPE_CHECKING:
    from neuco_core.contract.scaffold import Words

words = together(
    click.option("--title", required=True, help="A few words."),
    click.option("--description", required=True, help="One sentence: what it is."),
    click.option("--license", required=True, help="An SPDX expression, e.g. CC-BY-4.0."),
    click.option("--into", type=click.Path(file_okay=False, path_type=Path), help="Write it below this folder."),
    click.option("--package", "as_package", is_flag=True, help="Write a whole distribution for you to publish."),
)


@click.group()
def new() -> None:
    """Start a task or a method: a directory that keeps the contract from the start."""


@new.command()
@click.argument("name")
@click.option("--labels", required=True, metavar="FILE|URL", help="A CSV with the columns id and label.")
@words
@click.option("--citation", required=True, help="A DOI, an arXiv number (arXiv:2510.17914) or a BibTeX entry.")
@click.option("--unit", default="", help="The unit of the labels; 1 for a share.")
@click.option("--kind", type=click.Choice(["regression", "classification"]), help="Guessed if not given.")
@click.option("--metric", default="", shell_complete=ids_of("metric"), help="For example mae; R² or F1 if not given.")
@click.option("--dataset", shell_complete=ids_of("dataset"), help="Guessed from the ids if not given.")
def task(
    name: str, labels: str, title: str, description: str, license: str, citation: str, as_package: bool, **given: Any
) -> None:
    """Make a task from labels: packaged, hashed, with a measured baseline, a card and a test."""
    from neuco_core.contract.baselines import NO_HEADROOM
    from neuco_core.contract.new_task import new_task

    made = new_task(_words(name, title, description, license, citation), labels, as_package=as_package, **given)
    click.echo(f"{made.path}: {made.package.rows} labels")
    click.echo(f"  kind      {made.package.kind} (from {made.package.kind_from})")
    click.echo(f"  dataset   {made.task.dataset} ({made.dataset_from})")
    base = made.baseline
    click.echo(f"  baseline  {base.method} reaches {base.score} ± {base.tolerance} under {base.protocol}")
    if base.source.endswith(NO_HEADROOM):
        click.echo(f"            {NO_HEADROOM}: it proves nothing about the labels")
    _next(name, made.path, as_package)


@new.command()
@click.argument("name")
@click.option("--embeddings", metavar="FILE|URL", help="A CSV, Parquet or NPZ file, or its address; with --dataset.")
@click.option("--encoder", is_flag=True, help="Code that runs on cubes, for you to fill in.")
@words
@click.option("--citation", default="", help="A DOI, an arXiv number or a BibTeX entry, if there is one.")
@click.option("--dataset", shell_complete=ids_of("dataset"), help="The dataset of the embeddings.")
@click.option("--requires", multiple=True, metavar="PACKAGE[==VERSION]", help="Lock this package for the encoder.")
@click.option("--weights", multiple=True, metavar="NAME=URL", help="A file that the encoder is given, verified.")
def method(
    name: str,
    embeddings: str | None,
    encoder: bool,
    title: str,
    description: str,
    license: str,
    citation: str,
    as_package: bool,
    **given: Any,
) -> None:
    """Make a method from a file of embeddings, or a working encoder to be made your own.

    What is at an address is fetched, checked and declared by its sha256, and stays where it is. --requires writes a
    requirements.txt with the hashes of all packages that neuco does not bring; pip finds them as it is configured.
    """
    from neuco_core.contract.new_method import new_method
    from neuco_core.errors import UsageError

    if (embeddings is None) != encoder:
        raise UsageError("what kind of method?", expected="either --embeddings FILE|URL or --encoder")
    said = _words(name, title, description, license, citation, cited=bool(citation))
    made = new_method(said, embeddings=embeddings, as_package=as_package, **given)
    click.echo("\n".join([str(made.path), *(f"  {note}" for note in made.notes)]))
    if given["requires"] and not as_package:
        from neuco_core.encode.lock import FILE as LOCK
        from neuco_core.encode.lock import command

        click.echo(f"for your own machine: {command(made.path / LOCK)}")
    _next(name, made.path, as_package)


def _words(name: str, title: str, description: str, license: str, citation: str, cited: bool = True) -> Words:
    from neuco_core.contract.metadata import check_citation, check_license
    from neuco_core.contract.scaffold import Words

    check_license(license)
    if cited:
        check_citation(citation)
    return Words(name, title, description, license, citation)


def _next(name: str, path: Path, package: bool) -> None:
    click.echo("next:")
    if package:
        click.echo(f"  pip install -e {path}")
    click.echo(f"  edit {path / 'README.md'}: write down the caveats")
    click.echo(f"  neuco check {name}")
