"""``neuco data ls | verify | prune``: look after the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from neuco_core.cli.complete import ids_of
from neuco_core.cli.output import clean, echo_json, json_option, table
from neuco_core.errors import ChecksumError, DataError
from neuco_core.progress import show_progress
from neuco_core.text import counted

if TYPE_CHECKING:
    from neuco_core.fetch.cache import Entry


@click.command()
@json_option
def ls(as_json: bool) -> None:
    """List the cache: files, what uses them, and what encoders made."""
    from neuco_core.fetch.cache import cache_dir, entries
    from neuco_core.fetch.usage import made_here, users

    used = users()
    files = [{**_describe(item), "used_by": used.get(item.sha256, [])} for item in entries()]
    made = made_here()
    if as_json:
        return echo_json({"cache": str(cache_dir()), "files": files, "made": made})
    cells = [(f["sha256"][:12], str(f["size"]), f["name"], " ".join(f["used_by"])) for f in files]
    click.echo(table(("sha256", "bytes", "name", "used by"), cells, right=(1,)))
    size = sum(item["size"] for item in files)
    click.echo(f"{counted(len(cells), 'file')}, {size} bytes in {cache_dir()}")
    if made:
        told = ", ".join(f"{name} {size} bytes" for name, size in made.items())
        click.echo(f"made here, and made again if removed (`neuco data prune --all`): {told}")
    return None


@click.command()
@click.argument("datasets", nargs=-1, metavar="[DATASET]...", shell_complete=ids_of("dataset"))
@json_option
def verify(datasets: Sequence[str], as_json: bool) -> None:
    """Hash every file in the cache, or read every byte of a dataset's cubes.

    Corrupt files in the cache are removed: the next fetch brings them again.
    Of each DATASET all files are read and compared with the CRC-32s in them, and the version is shown by which scores
    know the data: it is the same for every copy. Damaged cubes are named and stay. Ends with exit code 4 if anything is
    corrupt or damaged.
    """
    if datasets:
        _verify_datasets(datasets, as_json)
    else:
        _verify_cache(as_json)


def _verify_datasets(names: Sequence[str], as_json: bool) -> None:
    from neuco_core.cubes.cubes import damaged, source_of
    from neuco_core.plugins.catalog import load_dataset

    rows: list[dict[str, Any]] = []
    for dataset in [load_dataset(name) for name in names]:
        source = source_of(dataset)
        samples = len(source.ids())
        bad: dict[str, str] = {}
        with show_progress(lines=False) as tell:
            for number, (name, reason) in enumerate(damaged(source), 1):
                if reason:
                    bad[name] = reason
                if tell is not None:
                    tell(number / samples, f"{dataset.id}: {name}")
        rows.append({"dataset": dataset.id, "version": source.version, "samples": samples, "damaged": bad})
    if as_json:
        echo_json(rows)
    else:
        cells = [
            (r["dataset"], r["version"], str(r["samples"]), f"{len(r['damaged'])} damaged" if r["damaged"] else "ok")
            for r in rows
        ]
        click.echo(table(("dataset", "version", "samples", "state"), cells, right=(2,)))
    problems = [f"{name}: {reason}" for row in rows for name, reason in row["damaged"].items()]
    for problem in problems:
        click.echo(clean(problem), err=True)
    if problems:
        raise DataError(f"{counted(len(problems), 'cube')} damaged", hint="Download them again")


def _verify_cache(as_json: bool) -> None:
    from neuco_core.fetch.cache import discard, entries

    checked = [(item, _describe(item), item.intact()) for item in entries()]
    for item, _, intact in checked:
        if not intact:
            discard(item)
    rows = [{**description, "intact": intact} for _, description, intact in checked]
    if as_json:
        echo_json(rows)
    else:
        cells = [(r["sha256"][:12], r["name"], "ok" if r["intact"] else "corrupt, removed") for r in rows]
        click.echo(table(("sha256", "name", "state"), cells))
    corrupt = sum(not row["intact"] for row in rows)
    if corrupt:
        what = f"{corrupt} of {counted(len(rows), 'file')} in the cache corrupt, and removed"
        raise ChecksumError(what, hint="Fetch them again with `neuco data fetch`")


@click.command()
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Empty the cache, with embeddings that encoders made.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@json_option
def prune(everything: bool, dry_run: bool, as_json: bool) -> None:
    """Remove what is no longer used.

    That is: fetched files that no registered task or method uses, and what killed downloads left behind. A download
    that was written to during the last hour is left alone: it may still be running.
    """
    from neuco_core.fetch.usage import prunable, remove

    paths = prunable(everything=everything)
    size = sum(path.stat().st_size for path in paths)
    if not dry_run:
        remove(paths)
    if as_json:
        return echo_json({"bytes": size, "files": [str(path) for path in paths], "removed": not dry_run})
    for path in paths:
        click.echo(path)
    click.echo(f"{counted(len(paths), 'file')}, {size} bytes {'would be ' * dry_run}removed")
    return None


def _describe(item: Entry) -> dict[str, Any]:
    return {"sha256": item.sha256, "size": item.size, "name": item.name, "path": str(item.path)}
