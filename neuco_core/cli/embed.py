"""``neuco embed`` and ``neuco validate``: make embeddings of a dataset, and see whether a file covers one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from neuco_core.cli.complete import ids_of
from neuco_core.cli.output import echo_json, json_option

SUFFIXES = (".csv", ".parquet", ".npz")


@click.command()
@click.option("--method", "method_id", required=True, shell_complete=ids_of("method"), help="A registered method.")
@click.option("--dataset", "dataset_id", required=True, shell_complete=ids_of("dataset"), help="What to encode.")
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write: .csv, .parquet or .npz.",
)
@click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="A parameter of the method; repeatable.")
@click.option("--batch-size", type=click.IntRange(min=1), default=64, show_default=True, help="Samples read at once.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@click.option("--fresh", is_flag=True, help="Make the embeddings anew, without the cache.")
@json_option
def embed(
    method_id: str,
    dataset_id: str,
    out: Path,
    params: Sequence[str],
    batch_size: int,
    force: bool,
    fresh: bool,
    as_json: bool,
) -> None:
    """Write the embeddings that a method gives for a dataset.

    Work is saved as it goes: after an interruption the same command continues where it stopped. Embeddings
    that were made before, from the same data, method, parameters and code, are taken from the cache.
    """
    check_target(out, force)
    from neuco_core.encode.run import method_embeddings
    from neuco_core.plugins.catalog import load_method
    from neuco_core.tables.embeddings import write_embeddings

    method = load_method(method_id)
    given = parse_params(params)
    embeddings = method_embeddings(method, dataset_id, given, batch_size=batch_size, cached=not fresh)
    write_embeddings(embeddings, out)
    rows, dim = embeddings.values.shape
    if as_json:
        echo_json({"file": str(out), "rows": rows, "dim": dim, "sha256": embeddings.sha256})
    else:
        click.echo(f"{out}: {rows} rows of {dim} values, sha256 of the content {embeddings.sha256}")


@click.command()
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option("--dataset", "dataset_id", required=True, shell_complete=ids_of("dataset"), help="What it should cover.")
@click.option("--dim", type=click.IntRange(min=1), default=1024, show_default=True, help="Most dimensions allowed.")
@json_option
@click.pass_context
def validate(ctx: click.Context, file: Path, dataset_id: str, dim: int, as_json: bool) -> None:
    """Check that a file of embeddings covers a dataset: ids complete, dimension, finite numbers.

    Rows whose id the dataset does not know are counted, and are no error. The exit code is 4 if the file is unusable.
    """
    from neuco_core.encode.validate import one_line, validate_file
    from neuco_core.errors import DataError
    from neuco_core.plugins.catalog import load_dataset

    validation = validate_file(file, load_dataset(dataset_id), dim)
    problems = validation.problems()
    if as_json:
        echo_json(validation.to_json())
        ctx.exit(DataError.exit_code if problems else 0)
    if problems:
        raise DataError("; ".join(problems), where=file)
    click.echo(f"{file}: ok: {one_line(validation)}")


def check_target(path: Path, force: bool) -> None:
    """Check the output file before an hour of encoding, not after it."""
    from neuco_core.errors import UsageError

    if path.suffix.lower() not in SUFFIXES:
        expected = "a name that ends in " + ", ".join(SUFFIXES)
        raise UsageError("unsupported file type", where=path, expected=expected, got=path.suffix or "no suffix")
    if not path.parent.is_dir():
        raise UsageError("no such folder", where=path.parent)
    if path.exists() and not force:
        raise UsageError("the file already exists", where=path, hint="Use --force to replace it")


def parse_params(texts: Sequence[str]) -> dict[str, str | int | float | bool]:
    """``NAME=VALUE`` pairs; a value that looks like an integer, a number, true or false becomes one."""
    from neuco_core.errors import UsageError

    params: dict[str, str | int | float | bool] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError("bad --param", expected="NAME=VALUE", got=repr(text))
        if name in params:
            raise UsageError(f"--param {name} is given twice")
        params[name] = parse_value(value)
    return params


def parse_value(text: str) -> str | int | float | bool:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
