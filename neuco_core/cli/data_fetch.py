"""``neuco data fetch``: fetch the files of tasks and methods, each verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from neuco_core.cli.complete import ids_of
from neuco_core.cli.output import echo_json, json_option, table
from neuco_core.errors import NeucoError, UsageError

if TYPE_CHECKING:
    from neuco_core.specs import Remote, Task

# What is wanted: a name to show, the dataset it belongs to, and the file.
Wanted = tuple[str, str, "Remote"]


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
    rows, errors = [], []
    for name, dataset, remote in [*_of_tasks(tasks, suite, bool(methods)), *_of_methods(methods)]:
        try:
            rows.append({"name": name, **_fetch(dataset, remote)})
        except NeucoError as error:
            rows.append({"name": name, "state": "failed", "path": None, "size": None, "error": str(error)})
            errors.append(error)
    _print(rows, as_json)
    raise_for(errors, len(rows), "fetched")


def raise_for(errors: Sequence[NeucoError], total: int, done: str) -> None:
    """End a command that tried everything: raise the only error, or the first with their number."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise type(errors[0])(f"{len(errors)} of {total} files could not be {done}; the first: {errors[0]}")


def choose(tasks: Sequence[str], suite: str | None) -> list[Task]:
    """The tasks by id, pattern or suite. Naming none is a mistake, not a request for everything."""
    from neuco_core.plugins.catalog import list_tasks

    if not tasks and not suite:
        raise UsageError("no task given", hint="Give tasks, or a suite with --suite; `neuco tasks` lists them")
    return list_tasks(*tasks, suite=suite)


def _of_tasks(tasks: Sequence[str], suite: str | None, others: bool) -> Iterator[Wanted]:
    if tasks or suite or not others:
        for task in choose(tasks, suite):
            yield task.id, task.dataset, task.source


def _of_methods(methods: Sequence[str]) -> Iterator[Wanted]:
    from neuco_core.plugins.catalog import load_method

    for name in methods:
        method = load_method(name)
        if not method.files and not method.weights:
            raise UsageError(
                f"method {name!r} has no files: its encoder makes the embeddings", hint="See `neuco embed`"
            )
        for part, remote in (*method.files.items(), *method.weights.items()):
            yield f"{name}/{part}", part if method.files else "", remote


def _fetch(dataset: str, remote: Remote) -> dict[str, Any]:
    from neuco_core.fetch.fetch import cached, fetch, is_local
    from neuco_core.fetch.links import linked_file

    path = linked_file(dataset, remote)
    state = "linked" if path else "local" if is_local(remote.url) else "cached" if cached(remote) else "fetched"
    path = path or fetch(remote)
    return {"state": state, "path": str(path), "size": path.stat().st_size, "error": None}


def _print(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        return echo_json(rows)
    # A single failure is the error that the command ends with; it is not said twice.
    several = sum(row["error"] is not None for row in rows) > 1
    cells = [
        (row["name"], row["state"], str(row["size"] or ""), row["path"] or (row["error"] if several else ""))
        for row in rows
    ]
    click.echo(table(("file", "state", "bytes", "where"), cells, right=(2,)))
    return None
