"""``neuco embed``: make embeddings of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from neuco_core.cli.options import batch_option, engine_option, ids_of, jobs_option, param_option, parse_params
from neuco_core.cli.output import clean, echo_json, json_option
from neuco_core.encode.estimate import estimate
from neuco_core.encode.run import EncodeOptions, method_embeddings
from neuco_core.env import available_cores
from neuco_core.errors import UsageError
from neuco_core.plugins.catalog import load_dataset, load_method
from neuco_core.runs.engine import default_limits, open_engine
from neuco_core.runs.shards import encode_shards
from neuco_core.tables.embeddings import write_embeddings

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
def embed(
    method_id: str,
    dataset_id: str,
    out: Path | None,
    params: Sequence[str],
    batch_size: int,
    threads: int | None,
    device: str,
    engine: str,
    jobs: int | None,
    dry_run: bool,
    leave_out_damaged: bool,
    force: bool,
    fresh: bool,
    as_json: bool,
) -> None:
    """Write the embeddings that a method gives for a dataset.

    Work is saved as it goes: after an interruption the same command continues where it stopped. Embeddings
    that were made before, from the same data, method, parameters and code, are taken from the cache. With
    another --engine than local, workers encode shards of 256 samples; a worker that dies costs the shard it had.
    """
    encoder_params = parse_params(params)
    left_out: dict[str, str] = {}
    options = EncodeOptions(
        batch_size=batch_size,
        threads=threads,
        device=device,
        cached=not fresh,
        left_out=left_out if leave_out_damaged else None,
    )
    method = load_method(method_id)
    if dry_run:
        if method.files:
            raise UsageError(f"method {method.id!r} reads a file: there is nothing to estimate")
        times = estimate(method, load_dataset(dataset_id), encoder_params, options)
        if as_json:
            echo_json(times.to_json())
        else:
            click.echo("\n".join(times.lines()))
        return
    # Before an hour of encoding, not after it.
    if out is None:
        raise UsageError("no file to write", expected="--out FILE", hint="Or only estimate the time with --dry-run")
    if out.suffix.lower() not in SUFFIXES:
        expected = "a name that ends in " + ", ".join(SUFFIXES)
        raise UsageError("unsupported file type", where=out, expected=expected, got=out.suffix or "no suffix")
    if not out.parent.is_dir():
        raise UsageError("no such folder", where=out.parent)
    if out.exists() and not force:
        raise UsageError("the file already exists", where=out, hint="Use --force to replace it")
    if engine == "local":
        embeddings = method_embeddings(method, dataset_id, encoder_params, options)
    elif leave_out_damaged:
        raise UsageError("--leave-out-damaged works with the local engine only", got=f"--engine {engine}")
    else:
        jobs = jobs or available_cores()
        runner, limits = open_engine(engine, jobs), default_limits(jobs)
        embeddings = encode_shards(runner, limits, method, dataset_id, encoder_params, options)
    write_embeddings(embeddings, out)
    rows, dim = embeddings.values.shape
    if as_json:
        answer = {"file": str(out), "rows": rows, "dim": dim, "sha256": embeddings.sha256}
        echo_json(answer | ({"left_out": left_out} if leave_out_damaged else {}))
        return
    click.echo(f"{out}: {rows} rows of {dim} values, sha256 of the content {embeddings.sha256}")
    if left_out:
        click.echo(f"left out: {len(left_out)} of {rows + len(left_out)} samples, which cannot be read")
    for name, reason in left_out.items():
        click.echo(clean(f"  {name}: {reason}"))
