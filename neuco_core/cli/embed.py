"""``neuco embed`` and ``neuco validate``: make embeddings of a dataset, and see whether a file covers one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neuco_core.cli.complete import ids_of
from neuco_core.cli.options import param_option, parse_params
from neuco_core.cli.output import clean, echo_json, json_option

if TYPE_CHECKING:
    from neuco_core.specs import Method
    from neuco_core.tables.embeddings import Embeddings

SUFFIXES = (".csv", ".parquet", ".npz")


@click.command()
@click.option("--method", "method_id", required=True, shell_complete=ids_of("method"), help="A registered method.")
@click.option("--dataset", "dataset_id", required=True, shell_complete=ids_of("dataset"), help="What to encode.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write: .csv, .parquet or .npz; needed unless --dry-run.",
)
@param_option
@click.option(
    "--batch-size", type=click.IntRange(min=1), default=64, show_default=True, help="Samples encoded at once, at most."
)
@click.option("--threads", type=click.IntRange(min=1), help="Batches encoded side by side. [default: one per core]")
@click.option("--device", default="", help="For networks: cuda, cuda:NUMBER, mps or cpu. [default: the best there is]")
@click.option("--engine", default="local", show_default=True, help="local, dask (here), or dask://host:port.")
@click.option("--jobs", type=click.IntRange(min=1), help="Worker processes of --engine dask. [default: one per core]")
@click.option("--dry-run", is_flag=True, help="Only try a few samples, and say how long all of them would take.")
@click.option("--leave-out-damaged", is_flag=True, help="Leave samples out that cannot be read; each is named.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@click.option("--fresh", is_flag=True, help="Make the embeddings anew, without the cache.")
@json_option
def embed(method_id: str, dataset_id: str, out: Path | None, params: Sequence[str], **given: Any) -> None:
    """Write the embeddings that a method gives for a dataset.

    Work is saved as it goes: after an interruption the same command continues where it stopped. Embeddings
    that were made before, from the same data, method, parameters and code, are taken from the cache. With
    --engine dask workers encode shards of 256 samples; a worker that dies costs the shard it had.
    """
    from neuco_core.errors import UsageError
    from neuco_core.plugins.catalog import load_method

    if given["dry_run"]:
        _say_how_long(load_method(method_id), dataset_id, params, given)
        return
    if out is None:
        raise UsageError("no file to write", expected="--out FILE", hint="Or only estimate the time with --dry-run")
    check_target(out, given["force"])
    from neuco_core.tables.embeddings import write_embeddings

    left_out: dict[str, str] = {}
    embeddings = _embeddings(load_method(method_id), dataset_id, parse_params(params), given, left_out)
    write_embeddings(embeddings, out)
    rows, dim = embeddings.values.shape
    if given["as_json"]:
        told = {"file": str(out), "rows": rows, "dim": dim, "sha256": embeddings.sha256}
        echo_json(told | ({"left_out": left_out} if given["leave_out_damaged"] else {}))
    else:
        click.echo(f"{out}: {rows} rows of {dim} values, sha256 of the content {embeddings.sha256}")
        if left_out:
            click.echo(f"left out: {len(left_out)} of {rows + len(left_out)} samples, which cannot be read")
        for name, reason in left_out.items():
            click.echo(clean(f"  {name}: {reason}"))


def _embeddings(
    method: Method,
    dataset_id: str,
    params: Mapping[str, Any],
    given: Mapping[str, Any],
    left_out: dict[str, str],
) -> Embeddings:
    options = {"batch_size": given["batch_size"], "device": given["device"], "cached": not given["fresh"]}
    if given["engine"] == "local":
        from neuco_core.encode.run import EncodeOptions, method_embeddings

        options |= {"threads": given["threads"], "left_out": left_out if given["leave_out_damaged"] else None}
        return method_embeddings(method, dataset_id, params, EncodeOptions(**options))
    if given["leave_out_damaged"]:
        from neuco_core.errors import UsageError

        raise UsageError("--leave-out-damaged works with the local engine only", got=f"--engine {given['engine']}")
    from neuco_core.env import available_cores
    from neuco_core.runs.engine import open_engine
    from neuco_core.runs.run import default_limits
    from neuco_core.runs.shards import encode_shards

    jobs = given["jobs"] or available_cores()
    engine = open_engine(given["engine"], jobs)
    return encode_shards(engine, default_limits(jobs), method, dataset_id, params, **options)


def _say_how_long(method: Method, dataset_id: str, params: Sequence[str], given: Mapping[str, Any]) -> None:
    from neuco_core.encode.estimate import estimate
    from neuco_core.errors import UsageError
    from neuco_core.plugins.catalog import load_dataset

    if method.files:
        raise UsageError(f"method {method.id!r} reads a file: there is nothing to estimate")
    options = {name: given[name] for name in ("batch_size", "threads", "device")}
    found = estimate(method, load_dataset(dataset_id), parse_params(params), **options)
    if given["as_json"]:
        echo_json(found.to_json())
    else:
        click.echo("\n".join(found.lines()))


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
