"""``neuco data ls | verify | prune``: look after the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from neuco_core.cli.output import echo_json, json_option, table
from neuco_core.errors import ChecksumError

if TYPE_CHECKING:
    from neuco_core.fetch.cache import Entry


@click.command()
@json_option
def ls(as_json: bool) -> None:
    """List the cache: files, and what uses them."""
    from neuco_core.fetch.cache import cache_dir, entries
    from neuco_core.fetch.usage import users

    used = users()
    files = [{**_describe(item), "used_by": used.get(item.sha256, [])} for item in entries()]
    if as_json:
        return echo_json({"cache": str(cache_dir()), "files": files})
    cells = [(f["sha256"][:12], str(f["size"]), f["name"], " ".join(f["used_by"])) for f in files]
    click.echo(table(("sha256", "bytes", "name", "used by"), cells, right=(1,)))
    click.echo(f"{len(files)} files, {sum(f['size'] for f in files)} bytes in {cache_dir()}")
    return None


@click.command()
@json_option
def verify(as_json: bool) -> None:
    """Hash every file in the cache.

    Corrupt ones are removed: the next fetch brings them again. Ends with exit code 4 if there was any.
    """
    from neuco_core.fetch.cache import discard, entries

    checked = [(item, _describe(item), item.intact()) for item in entries()]
    for item, _, intact in checked:
        if not intact:
            discard(item)
    if as_json:
        echo_json([{**description, "intact": intact} for _, description, intact in checked])
    else:
        cells = [(d["sha256"][:12], d["name"], "ok" if intact else "corrupt, removed") for _, d, intact in checked]
        click.echo(table(("sha256", "name", "state"), cells))
    corrupt = sum(not intact for _, _, intact in checked)
    if corrupt:
        what = f"{corrupt} of {len(checked)} files in the cache were corrupt and have been removed"
        raise ChecksumError(what, hint="Fetch them again with `neuco data fetch`")


@click.command()
@click.option("--all", "everything", is_flag=True, help="Empty the cache, with the embeddings that encoders made.")
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
    click.echo(f"{len(paths)} files, {size} bytes {'would be ' * dry_run}removed")
    return None


def _describe(item: Entry) -> dict[str, Any]:
    return {"sha256": item.sha256, "size": item.size, "name": item.name, "path": str(item.path)}
