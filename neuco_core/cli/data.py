"""``neuco data``: fetch, verify and pin the files behind tasks and methods, and look after the cache."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neuco_core.cli import CommandTable
from neuco_core.cli.options import ids_of
from neuco_core.cli.output import can_ask, clean, echo_json, echo_rows, json_option, table
from neuco_core.errors import EXIT_CODES, ChecksumError, DataError, NeucoError, UsageError
from neuco_core.fetch import links
from neuco_core.fetch.cache import MADE, cache_dir, discard, entries, files_made, intact, prunable, remove
from neuco_core.fetch.fetch import cached, users
from neuco_core.fetch.fetch import fetch as fetch_file
from neuco_core.fetch.transfer import TransientError
from neuco_core.plugins.catalog import list_tasks, load_dataset, load_method
from neuco_core.progress import show_progress
from neuco_core.specs import Remote, Task
from neuco_core.text import counted

if TYPE_CHECKING:
    from neuco_core.tables.pinning import PinReport

COMMANDS = {name: f"neuco_core.cli.data:{name}" for name in ("check", "fetch", "link", "ls", "pin", "prune")}
COMMANDS |= {name: f"neuco_core.cli.data_publish:{name}" for name in ("package", "upload")}
CODES = ", ".join(f"{code} {EXIT_CODES[code]}" for code in (0, 2, 3, 4, 7))


class Data(CommandTable):
    table = COMMANDS


@click.group(cls=Data, epilog=f"Exit codes: {CODES}.")
def data() -> None:
    """Fetch, check, pin, package and upload data, and look after the cache."""


@click.command()
@click.argument("tasks", nargs=-1, metavar="[TASK|GLOB]...", shell_complete=ids_of("task"))
@click.option("--suite", shell_complete=ids_of("suite"), help="The tasks of this suite.")
@click.option("--method", "methods", multiple=True, shell_complete=ids_of("method"), help="Files of this method.")
@json_option
def fetch(tasks: Sequence[str], suite: str | None, methods: Sequence[str], as_json: bool) -> None:
    """Fetch labels and embedding files.

    The labels of tasks and the files of methods are fetched if they are not here, and each is checked against its
    sha256. All are tried; if some fail, the rest is there, and the command ends with the exit code of the first
    failure.
    """
    rows: list[dict[str, Any]] = []
    errors: list[NeucoError] = []
    for name, dataset, remote in list(_files(tasks, suite, methods)):
        row: dict[str, Any] = {"name": name, "state": "failed", "path": None, "size": None, "error": None}
        try:
            path = links.linked_file(dataset, remote)
            before = "cached" if cached(remote) else "fetched"
            state, path = ("linked", path) if path else (before, fetch_file(remote))
            if state == "fetched" and cache_dir() not in path.parents:
                state = "local"
            row |= {"state": state, "path": str(path), "size": path.stat().st_size}
        except NeucoError as error:
            row["error"] = str(error)
            errors.append(error)
        rows.append(row)
    # A single failure is the error that the command ends with; it is not repeated.
    where = [row["path"] or (row["error"] if len(errors) > 1 else "") for row in rows]
    cells = [(row["name"], row["state"], str(row["size"] or ""), at) for row, at in zip(rows, where, strict=True)]
    echo_rows(as_json, rows, ("file", "state", "bytes", "where"), cells, right=(2,))
    _raise_for(errors, len(rows), "fetched")


def _files(tasks: Sequence[str], suite: str | None, methods: Sequence[str]) -> Iterator[tuple[str, str, Remote]]:
    """A name to show, the dataset, and the file, for all that is asked for."""
    if tasks or suite or not methods:
        for task in _choose(tasks, suite):
            yield task.id, task.dataset, task.source
    for name in methods:
        method = load_method(name)
        if not method.files and not method.weights:
            what = f"method {name!r} has no files: its encoder makes the embeddings"
            raise UsageError(what, hint="See `neuco embed`")
        for part, remote in (*method.files.items(), *method.weights.items()):
            yield f"{name}/{part}", part if method.files else "", remote


def _choose(tasks: Sequence[str], suite: str | None) -> list[Task]:
    """The tasks by id, pattern or suite. Naming none is a mistake, not a request for everything."""
    if not tasks and not suite:
        raise UsageError("no task given", hint="Give tasks, or a suite with --suite; `neuco tasks` lists them")
    return list_tasks(*tasks, suite=suite)


def _raise_for(errors: Sequence[NeucoError], total: int, done: str) -> None:
    """End a command that tried everything: raise the only error, or their number with the only or the first reason."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        first, count = errors[0], f"{len(errors)} of {total} files could not be {done}"
        if len({error.what for error in errors}) == 1:
            raise type(first)(f"{count}: {first.what}", hint=first.hint)
        raise type(first)(f"{count}; the first: {first}")


@click.command()
@click.argument("tasks", nargs=-1, metavar="[TASK|GLOB]...", shell_complete=ids_of("task"))
@click.option("--suite", shell_complete=ids_of("suite"), help="The tasks of this suite.")
@click.option("--method", "methods", multiple=True, shell_complete=ids_of("method"), help="The weights of this method.")
@click.option("--replace", is_flag=True, help="Accept a file that differs from its pin: its owner has changed it.")
@click.option("--yes", is_flag=True, help="Pin without asking.")
@json_option
def pin(
    tasks: Sequence[str], suite: str | None, methods: Sequence[str], replace: bool, yes: bool, as_json: bool
) -> None:
    """Download and confirm labels, or weights of an encoder, that have no published checksum.

    Shows sha256, bytes, rows and range, and pins the files after a yes: from then on only these bytes are
    accepted. Compare the figures with what the owner of the data says before you rely on them. All are tried; if
    some fail, the others can be pinned, and the command ends with the exit code of the first failure. The pin goes
    into registry/pins.json of a checkout, else into your own pins.json; NEUCO_PINS names another file.
    """
    from neuco_core.tables.pinning import inspect_labels, inspect_weights  # heavy: reads tables

    reports: dict[str, PinReport] = {}
    failed: dict[str, NeucoError] = {}
    for task in _choose(tasks, suite) if tasks or suite or not methods else ():
        try:
            reports[task.label] = inspect_labels(task, replace=replace)
        except TransientError as error:  # the server cannot be reached: nor will the others be
            failed[task.label] = error
            break
        except NeucoError as error:
            failed[task.label] = error
    for name in methods:
        method = load_method(name)
        if not method.weights:
            raise UsageError(f"method {name!r} has no weights", hint="Files of embeddings are declared by their sha256")
        try:
            reports |= {report.task: report for report in inspect_weights(method, replace=replace)}
        except NeucoError as error:
            failed[name] = error
    if as_json:
        rows = [dataclasses.asdict(report) for report in reports.values()]
        echo_json(rows + [{"task": name, "state": "failed", "error": str(reason)} for name, reason in failed.items()])
    else:
        show_reports(list(reports.values()))
        reasons = {error.what for error in failed.values()}
        for name, reason in failed.items():
            # A single reason is the error that the command ends with; it is not repeated.
            click.echo(f"{name}: failed" + (f": {reason}" if len(reasons) > 1 else ""))
    if not confirm(list(reports.values()), yes=yes):
        hint = "Compare the figures with what the owner of the data says, then run the command again with --yes"
        raise UsageError("nothing is pinned", hint=hint)
    _raise_for(list(failed.values()), len(reports) + len(failed), "pinned")


# What a user reads for the state of a report.
PIN_STATES = {
    "declared": "already has a checksum",
    "unchanged": "already pinned, and unchanged",
    "new": "not pinned yet",
    "changed": "differs from its pin",
}


def show_reports(reports: Sequence[PinReport]) -> None:
    """What was found, so that somebody can compare it with what the owner of the data says."""
    for report in reports:
        click.echo(f"{report.task}: {PIN_STATES[report.state]}\n  from    {report.seen}")
        click.echo(f"  sha256  {report.sha256}\n  bytes   {report.size}")
        if report.lowest is not None and report.highest is not None:
            dropped = f", and {report.dropped} without a label" if report.dropped else ""
            click.echo(f"  rows    {report.rows}{dropped}")
            click.echo(f"  labels  from {report.lowest:g} to {report.highest:g}")


def confirm(reports: Sequence[PinReport], *, yes: bool = False) -> bool:
    """Pin what is not pinned yet if the user says yes; whether nothing is left to pin."""
    from neuco_core.tables.pinning import accept  # as above

    count = counted(sum(report.open for report in reports), "file")
    if any(report.open for report in reports):
        question = f"Pin {count}? From then on only these bytes are accepted."
        if not yes and not (can_ask() and click.confirm(question, err=True)):
            return False
        click.echo(f"{count} pinned in {accept(reports)}", err=True)
    return True


@click.command()
@click.argument("dataset", required=False, shell_complete=ids_of("dataset"))
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--remove", "forget", is_flag=True, help="Forget the link; the files stay.")
@json_option
def link(dataset: str | None, folder: Path | None, forget: bool, as_json: bool) -> None:
    """Use a local copy of a dataset.

    Links the copy of DATASET in FOLDER, which must hold one of its files or its cubes; without arguments, lists the
    links. The variable NEUCO_DATASET_<ID> does the same for one run, and wins.
    """
    if dataset and forget:
        if not links.remove_link(dataset):
            raise UsageError(f"{dataset!r} is not linked", hint="`neuco data link` lists the links")
    elif dataset and folder:
        chosen = load_dataset(dataset)
        if folder.is_dir():
            links.require_copy(chosen, folder)
        links.add_link(chosen.id, folder)
    elif dataset or forget:
        raise UsageError("a link needs a dataset and a folder", hint="neuco data link DATASET FOLDER, or --remove")
    folders = links.read_links()
    if as_json:
        echo_json(folders)
    else:
        click.echo(table(("dataset", "folder"), sorted(folders.items())) if folders else "No dataset is linked.")


@click.command()
@json_option
def ls(as_json: bool) -> None:
    """List the cache: files, what uses them, and what encoders made."""
    used = users()
    files = [{**_describe(item), "used_by": used.get(item.parent.name, [])} for item in entries()]
    sizes = {name: sum(path.stat().st_size for path in files_made(name)) for name in MADE}
    made = {name: size for name, size in sizes.items() if size}
    if as_json:
        echo_json({"cache": str(cache_dir()), "files": files, "made": made})
        return
    cells = [(f["sha256"][:12], str(f["size"]), f["name"], " ".join(f["used_by"])) for f in files]
    click.echo(table(("sha256", "bytes", "name", "used by"), cells, right=(1,)))
    click.echo(f"{counted(len(cells), 'file')}, {sum(item['size'] for item in files)} bytes in {cache_dir()}")
    if made:
        listed = ", ".join(f"{name} {size} bytes" for name, size in made.items())
        click.echo(f"made here, and made again if removed (`neuco data prune --all`): {listed}")


def _describe(item: Path) -> dict[str, Any]:
    return {"sha256": item.parent.name, "size": item.stat().st_size, "name": item.name, "path": str(item)}


@click.command()
@click.argument("datasets", nargs=-1, metavar="[DATASET]...", shell_complete=ids_of("dataset"))
@json_option
def check(datasets: Sequence[str], as_json: bool) -> None:
    """Hash every file in the cache, or read every byte of a dataset's cubes.

    Corrupt files in the cache are removed: the next fetch brings them again.
    Of each DATASET all files are read and compared with the CRC-32s in them, and the version is shown by which scores
    know the data: it is the same for every copy. Damaged cubes are named and stay. Ends with exit code 4 if anything is
    corrupt or damaged.
    """
    if not datasets:
        _check_cache(as_json)
        return
    from neuco_core.cubes.cubes import damaged, source_of  # heavy: reads cubes

    rows: list[dict[str, Any]] = []
    cells, problems = [], []
    for dataset in [load_dataset(name) for name in datasets]:
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
        cells.append((dataset.id, source.version, str(samples), f"{len(bad)} damaged" if bad else "ok"))
        problems += [f"{name}: {reason}" for name, reason in bad.items()]
    echo_rows(as_json, rows, ("dataset", "version", "samples", "state"), cells, right=(2,))
    for problem in problems:
        click.echo(clean(problem), err=True)
    if problems:
        raise DataError(f"{counted(len(problems), 'cube')} damaged", hint="Download them again")


def _check_cache(as_json: bool) -> None:
    rows = []
    for item in entries():
        rows.append({**_describe(item), "intact": intact(item)})
        if not rows[-1]["intact"]:
            discard(item)
    cells = [(r["sha256"][:12], r["name"], "ok" if r["intact"] else "corrupt, removed") for r in rows]
    echo_rows(as_json, rows, ("sha256", "name", "state"), cells)
    if corrupt := sum(not row["intact"] for row in rows):
        what = f"{corrupt} of {counted(len(rows), 'file')} in the cache corrupt, and removed"
        raise ChecksumError(what, hint="Fetch them again with `neuco data fetch`")


@click.command()
@click.option("--all", "everything", is_flag=True, help="Empty the cache, with embeddings that encoders made.")
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@json_option
def prune(everything: bool, dry_run: bool, as_json: bool) -> None:
    """Remove what is no longer used.

    That is: fetched files that no registered task or method uses, and what killed downloads left behind. A download
    that was written to during the last hour is left alone: it may still be running.
    """
    paths = prunable(None if everything else users())
    size = sum(path.stat().st_size for path in paths)
    if not dry_run:
        remove(paths)
    if as_json:
        echo_json({"bytes": size, "files": [str(path) for path in paths], "removed": not dry_run})
        return
    for path in paths:
        click.echo(path)
    click.echo(f"{counted(len(paths), 'file')}, {size} bytes {'would be removed' if dry_run else 'removed'}")
