"""``neuco embed`` and ``neuco validate``: make embeddings of a dataset, and see whether a file covers one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from neuco_core.cli.options import batch_option, engine_option, ids_of, jobs_option, param_option, parse_params
from neuco_core.cli.output import clean, echo_json, json_option
from neuco_core.encode.estimate import estimate
from neuco_core.encode.run import EncodeOptions, method_embeddings
from neuco_core.encode.validate import one_line, validate_file
from neuco_core.env import available_cores
from neuco_core.errors import DataError, UsageError
from neuco_core.plugins.catalog import load_dataset, load_method
from neuco_core.runs.engine import open_engine
from neuco_core.runs.run import default_limits
from neuco_core.runs.shards import encode_shards
from neuco_core.tables.embeddings import Embeddings, write_embeddings

SUFFIXES = (".csv", ".parquet", ".npz")


@dataclass(frozen=True, kw_only=True)
class EmbedRequest:
    """What ``neuco embed`` was asked for."""

    method_id: str
    dataset_id: str
    out: Path | None
    params: tuple[str, ...]
    batch_size: int
    threads: int | None
    device: str
    engine: str
    jobs: int | None
    dry_run: bool
    leave_out_damaged: bool
    force: bool
    fresh: bool
    as_json: bool


@click.command()
@click.option("--method", "method_id", required=True, shell_complete=ids_of("method"), help="A registered method.")
@click.option("--dataset", "dataset_id", required=True, shell_complete=ids_of("dataset"), help="What to encode.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write: .csv, .parquet or .npz; needed unless --dry-run.",
)
@param_option
@batch_option
@click.option("--threads", type=click.IntRange(min=1), help="Batches encoded side by side. [default: one per core]")
@click.option("--device", default="", help="For networks: cuda, cuda:NUMBER, mps or cpu. [default: the best there is]")
@engine_option
@jobs_option
@click.option("--dry-run", is_flag=True, help="Only try a few samples, and say how long all of them would take.")
@click.option("--leave-out-damaged", is_flag=True, help="Leave samples out that cannot be read; each is named.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@click.option("--fresh", is_flag=True, help="Make the embeddings again, without the cache.")
@json_option
def embed(**options: Any) -> None:
    """Write the embeddings that a method gives for a dataset.

    Work is saved as it goes: after an interruption the same command continues where it stopped. Embeddings
    that were made before, from the same data, method, parameters and code, are taken from the cache. With
    another --engine than local, workers encode shards of 256 samples; a worker that dies costs the shard it had.
    """
    request = EmbedRequest(**options)
    if request.dry_run:
        _estimate(request)
        return
    out = request.out
    if out is None:
        raise UsageError("no file to write", expected="--out FILE", hint="Or only estimate the time with --dry-run")
    check_target(out, request.force)
    embeddings, left_out = _embeddings(request)
    write_embeddings(embeddings, out)
    rows, dim = embeddings.values.shape
    if request.as_json:
        answer = {"file": str(out), "rows": rows, "dim": dim, "sha256": embeddings.sha256}
        echo_json(answer | ({"left_out": left_out} if request.leave_out_damaged else {}))
        return
    click.echo(f"{out}: {rows} rows of {dim} values, sha256 of the content {embeddings.sha256}")
    if left_out:
        click.echo(f"left out: {len(left_out)} of {rows + len(left_out)} samples, which cannot be read")
    for name, reason in left_out.items():
        click.echo(clean(f"  {name}: {reason}"))


def check_target(path: Path, force: bool) -> None:
    """Check the output file before an hour of encoding, not after it."""
    if path.suffix.lower() not in SUFFIXES:
        expected = "a name that ends in " + ", ".join(SUFFIXES)
        raise UsageError("unsupported file type", where=path, expected=expected, got=path.suffix or "no suffix")
    if not path.parent.is_dir():
        raise UsageError("no such folder", where=path.parent)
    if path.exists() and not force:
        raise UsageError("the file already exists", where=path, hint="Use --force to replace it")


def _embeddings(request: EmbedRequest) -> tuple[Embeddings, dict[str, str]]:
    """The embeddings, and the samples that were left out with the reasons."""
    method, params = load_method(request.method_id), parse_params(request.params)
    left_out: dict[str, str] = {}
    if request.engine == "local":
        options = EncodeOptions(
            batch_size=request.batch_size,
            device=request.device,
            cached=not request.fresh,
            threads=request.threads,
            left_out=left_out if request.leave_out_damaged else None,
        )
        return method_embeddings(method, request.dataset_id, params, options), left_out
    if request.leave_out_damaged:
        raise UsageError("--leave-out-damaged works with the local engine only", got=f"--engine {request.engine}")
    jobs = request.jobs or available_cores()
    embeddings = encode_shards(
        open_engine(request.engine, jobs),
        default_limits(jobs),
        method,
        request.dataset_id,
        params,
        batch_size=request.batch_size,
        device=request.device,
        cached=not request.fresh,
    )
    return embeddings, left_out


def _estimate(request: EmbedRequest) -> None:
    """Try a few samples, and print how long all of them would take."""
    method = load_method(request.method_id)
    if method.files:
        raise UsageError(f"method {method.id!r} reads a file: there is nothing to estimate")
    times = estimate(
        method,
        load_dataset(request.dataset_id),
        parse_params(request.params),
        batch_size=request.batch_size,
        threads=request.threads,
        device=request.device,
    )
    if request.as_json:
        echo_json(times.to_json())
    else:
        click.echo("\n".join(times.lines()))


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
    validation = validate_file(file, load_dataset(dataset_id), dim)
    problems = validation.problems()
    if as_json:
        echo_json(validation.to_json())
        ctx.exit(DataError.exit_code if problems else 0)
    if problems:
        raise DataError("; ".join(problems), where=file)
    click.echo(f"{file}: ok: {one_line(validation)}")
