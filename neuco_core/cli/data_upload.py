"""``neuco data upload``: publish a file in an S3 bucket."""

from __future__ import annotations

from pathlib import Path

import click

from neuco_core.cli.output import echo_json, json_option


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("target", metavar="s3://BUCKET/PREFIX/")
@json_option
def upload(file: Path, target: str, as_json: bool) -> None:
    """Put a file into an S3 bucket, verified.

    The server verifies the sha256, and the file is read back anonymously to prove that others can. Credentials and
    endpoint come from the usual AWS settings. A target that ends with / is a folder. Prints the line for your plugin.
    """
    from neuco_core.fetch.upload import upload as put
    from neuco_core.specs import to_json

    stored = put(file, target)
    if as_json:
        remote = to_json(stored.remote)
        return echo_json({**remote, "version": stored.version or None, "checksum_confirmed": stored.confirmed})
    click.echo(f"version: {stored.version or 'none: this bucket keeps no versions'}")
    click.echo(f"the server {'verified' if stored.confirmed else 'did not confirm'} the sha256")
    click.echo("readable by everyone: yes, read back without credentials")
    click.echo(stored.declaration)
    if file.suffix.lower() in (".npz", ".parquet"):
        click.echo(f"neuco new method NAME --embeddings {stored.remote.url} --dataset DATASET …")
    if file.suffix.lower() == ".zip":
        click.echo(f"neuco new dataset NAME --images {stored.remote.url} …")
    return None
