"""``neuco data package`` and ``upload``: put labels or images into canonical form, and publish files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

from neuco_core.cli.options import column_options
from neuco_core.cli.output import echo_json, json_option
from neuco_core.contract.new_dataset import bring_images
from neuco_core.contract.scaffold import ADDRESSES, declare, remote_of
from neuco_core.cubes.archive import pack_images
from neuco_core.cubes.folder import ImageFolder
from neuco_core.errors import UsageError
from neuco_core.fetch.upload import upload as upload_file
from neuco_core.files import write_new
from neuco_core.plugins.catalog import list_tasks
from neuco_core.specs import KINDS, to_json
from neuco_core.tables.package import package_labels


@click.command()
@click.argument("source", metavar="LABELS|IMAGES")
@click.option("--out", type=click.Path(path_type=Path), help="What to write.  [default: TASK__KIND.csv, FOLDER.zip]")
@click.option("--kind", type=click.Choice(KINDS), help="The kind of task.  [default: from the file's name or labels]")
@click.option("--task", metavar="ID", help="The id of the task.  [default: from the file's name]")
@column_options
@click.option("--leave-out-damaged", is_flag=True, help="Pack a folder without damaged images; each is named.")
@click.option("--force", is_flag=True, help="Replace the file that is there.")
@json_option
def package(source: str, out: Path | None, leave_out_damaged: bool, force: bool, as_json: bool, **labels: Any) -> None:
    """Check a CSV of labels or a folder of images, write it in canonical form and print its declaration.

    The same labels always give the same bytes, whatever the order of the rows and the notation of the numbers. Labels
    that another task has already are refused. Images (GeoTIFF, PNG, JPEG, NumPy) become one archive of arrays, with
    their bands and georeference; nothing but NumPy is needed to read it. IMAGES is a folder, a zip of images, or a
    Parquet file of Hugging Face, also at an address; its other columns are written beside the archive.
    """
    if Path(source).is_dir() or source.startswith(ADDRESSES) or source.lower().endswith((".parquet", ".zip")):
        _package_images(source, out, leave_out_damaged, force, as_json)
        return
    made = package_labels(Path(source), out=out, tasks=list_tasks(), replace=force, **labels)
    if as_json:
        echo_json(made.to_json())
        return
    rows = f"{made.rows} rows" + "".join(f", {count} dropped: {reason}" for reason, count in made.dropped.items())
    if made.classes:
        content = f"classes {', '.join(made.classes)}"
    else:
        content = f"labels from {made.lowest:g} to {made.highest:g}"
    click.echo(f"wrote {made.path}: {rows}, {content}, {made.size} bytes")
    click.echo(f"kind {made.kind} (from {made.kind_from})" if made.kind_from != "given" else f"kind {made.kind}")
    unread = f"; {len(made.not_compared)} more are not on this machine" if made.not_compared else ""
    click.echo(f"no other task has these labels ({len(made.compared)} compared{unread})")
    click.echo(f"\n{made.declaration}")


def _package_images(images: str, out: Path | None, leave_out_damaged: bool, force: bool, as_json: bool) -> None:
    path = out or Path(f"{Path(images).resolve().stem}.zip")
    if path.exists() and not force:
        raise UsageError("a file exists there", where=path, hint="Give another name with --out, or --force")
    with tempfile.TemporaryDirectory() as scratch:
        folder, text, _ = bring_images(images, Path(scratch))
        if not folder.is_dir():
            raise UsageError("this is packed already", where=images, hint="neuco new dataset NAME --images takes it")
        source = ImageFolder(folder)
        left_out = pack_images(source, path, leave_out_damaged=leave_out_damaged)
        table = write_new(path.with_suffix(".csv"), text) if text else None
    remote, count = remote_of(path.resolve().as_uri(), path), len(source.files) - len(left_out)
    if as_json:
        facts = {"bands": source.bands, "seasons": source.seasons, "size": source.size, "left_out": left_out}
        files = {"path": str(path), "table": str(table) if table else None}
        echo_json({**to_json(remote), **files, "images": count, **facts})
        return
    height, width = source.size
    click.echo(f"wrote {path}: {count} images of {height} × {width} pixels, {remote.size} bytes")
    click.echo(f"bands {', '.join(source.bands)}")
    for name, reason in left_out.items():
        click.echo(f"left out {name}: {reason}")
    if table:
        click.echo(f"wrote {table}: {text.partition(chr(10))[0]}")
    click.echo(f"\n{declare(remote, 0)}")
    click.echo(f"\nneuco data upload {path} s3://BUCKET/PREFIX/     # or upload it elsewhere; then")
    click.echo("neuco new dataset NAME --images ADDRESS …")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("target", metavar="s3://BUCKET/PREFIX/")
@json_option
def upload(file: Path, target: str, as_json: bool) -> None:
    """Put a file into an S3 bucket, verified.

    The server verifies the sha256, and the file is read back anonymously to prove that others can. Credentials and
    endpoint come from the usual AWS settings. A target that ends with / is a folder. Prints the line for your plugin.
    """
    stored = upload_file(file, target)
    if as_json:
        remote = to_json(stored.remote)
        echo_json({**remote, "version": stored.version or None, "checksum_confirmed": stored.confirmed})
        return
    click.echo(f"version: {stored.version or 'none: this bucket keeps no versions'}")
    click.echo(f"the server {'verified' if stored.confirmed else 'did not confirm'} the sha256")
    click.echo("readable by everyone: yes, read back without credentials")
    click.echo(stored.declaration)
    if file.suffix.lower() in (".npz", ".parquet"):
        click.echo(f"neuco new method NAME --embeddings {stored.remote.url} --dataset DATASET …")
    if file.suffix.lower() == ".zip":
        click.echo(f"neuco new dataset NAME --images {stored.remote.url} …")
