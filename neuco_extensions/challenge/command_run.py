"""``neuco challenge check|submit|evaluate|status|board``: submissions come in, are scored and ranked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neuco_core.cli.output import clean, echo_json, json_option, table
from neuco_core.errors import UsageError
from neuco_extensions.challenge.command_host import FOLDER, THREADS

if TYPE_CHECKING:
    from neuco_core.boards.model import Board
    from neuco_core.boards.replay import Version
    from neuco_extensions.challenge.host import Host
    from neuco_extensions.challenge.journal import Submission

FILE = click.argument("file", type=click.Path(path_type=Path))


@click.command()
@FILE
@click.option("--ids", required=True, type=click.Path(path_type=Path), help="The ids that the challenge asks for.")
@click.option("--dim", type=click.IntRange(min=1), default=1024, show_default=True, help="The most dimensions allowed.")
@click.option(
    "--bytes", "size", type=click.IntRange(min=1), default=500_000_000, show_default=True, help="Of the file."
)
def check(file: Path, ids: Path, dim: int, size: int) -> None:
    """See whether FILE would be accepted: it is read as the hosts read it. For teams, before they submit."""
    from neuco_core.errors import DataError
    from neuco_extensions.challenge.evaluate import check as read
    from neuco_extensions.challenge.rules import Limits, read_ids

    if not file.is_file():
        raise DataError("no such file", where=file)
    found = read(file, read_ids(ids), Limits(dim=dim, bytes=size))
    click.echo(f"{file}: {len(found)} embeddings of {found.dim} dimensions, with the ids of the challenge")


@click.command()
@FOLDER
@FILE
@click.option("--team", required=True, help="Whose submission it is.")
@click.option("--phase", required=True, help="The phase that it is for.")
@click.option("--at", metavar="TIME", help="When it was received, e.g. 2025-01-10T12:00:00Z. [default: now]")
@click.option("--private", is_flag=True, help="Score it, and leave it off the board.")
def submit(folder: Path, file: Path, team: str, phase: str, at: str | None, private: bool) -> None:
    """Enter FILE as a submission. It is stored and in the journal when this ends; `evaluate` scores it."""
    from neuco_core.errors import DataError
    from neuco_extensions.challenge.host import Host
    from neuco_extensions.challenge.journal import RefusedError

    moment = _moment(at)
    with Host(folder) as host:
        try:
            own = host.submit(team, phase, file, public=not private, now=moment)
        except RefusedError as error:
            if error.code != "closed":
                raise
            rules = host.challenge.phase(phase)  # a host at a terminal may know more than a team
            expected, got = f"a time from {rules.start} to before {rules.end}", moment or datetime.now(UTC)
            hint = "If the file was received in that time, say when with --at"
            raise DataError(f"phase {phase} is not open", expected=expected, got=f"{got:%F %T%z}", hint=hint) from error
        click.echo(f"submission {own.id}, {own.state}; receipt {own.chain}")


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError("bad --at", expected="a time such as 2025-01-10T12:00:00Z", got=repr(text)) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@click.command()
@FOLDER
@click.option("--retry", type=int, metavar="ID", help="First have this submission, which failed, evaluated again.")
@click.option("--engine", default="local", show_default=True, help="local, dask (here), or dask://host:port.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Evaluations side by side.")
@THREADS
def evaluate(folder: Path, retry: int | None, engine: str, jobs: int, threads: int) -> None:
    """Score all submissions that wait. Any number of these may run at once, and be killed at any time."""
    from neuco_extensions.challenge.files import sweep
    from neuco_extensions.challenge.host import Host

    with Host(folder) as host:
        sweep(host.challenge.private)
        if retry is not None:
            _retry(host, retry)
        count = 0
        for own in _evaluated(host, engine, jobs, threads):
            count += 1
            told = f"mean Q {own.mean_q:.3f}" if own.mean_q is not None else clean(own.detail)
            click.echo(f"submission {own.id} of {own.team} in {own.phase}: {own.state}, {told}")
        click.echo(f"{count} evaluated")


def _retry(host: Host, number: int) -> None:
    own = host.journal.get(number)
    if own.state != "failed":
        what = f"submission {number} has not failed"
        raise UsageError(what, where=host.challenge.folder, expected="one whose state is failed", got=own.state)
    host.journal.retry(number)


def _evaluated(host: Host, engine: str, jobs: int, threads: int) -> Iterator[Submission]:
    if engine == "local" and jobs == 1:
        while own := host.work(threads=threads):
            yield own
        return
    from neuco_extensions.challenge.pool import work_on, workers

    with workers(engine, jobs) as pool:
        yield from work_on(host, pool, jobs)


@click.command()
@FOLDER
@click.option("--team", help="Only of this team.")
@click.option("--phase", help="Only of this phase.")
@json_option
def status(folder: Path, team: str | None, phase: str | None, as_json: bool) -> None:
    """List the submissions with all that the hosts may know of them."""
    from neuco_extensions.challenge.close import submission
    from neuco_extensions.challenge.host import Host

    with Host(folder) as host:
        if phase is not None:
            host.challenge.phase(phase)  # a name that nothing has is an error, and not an empty list
        if team is not None:
            host.challenge.team(team)
        found = host.journal.submissions(phase, team)
    if as_json:
        echo_json([submission(own) | {"detail": own.detail} for own in found])
        return
    rows = [
        (str(own.id), own.received[:19], own.team, own.phase, own.state, _number(own.mean_q),
         _number(own.feedback.get("mean_q")), clean(own.detail))
        for own in found
    ]  # fmt: skip
    click.echo(table(("id", "received", "team", "phase", "state", "mean Q", "told", "detail"), rows, right={0, 5, 6}))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


@click.command()
@FOLDER
@click.argument("phase")
@click.option("--final", is_flag=True, help="The exact board with scores by task: for hosts until the end.")
@click.option("--site", type=click.Path(file_okay=False, path_type=Path), help="Write it as web pages to this folder.")
@click.option("--history", "past", is_flag=True, help="Who moved, when, and because of whom.")
@json_option
def board(folder: Path, phase: str, final: bool, site: Path | None, past: bool, as_json: bool) -> None:
    """Show the board of PHASE: while it is open, what anybody may see."""
    from neuco_core.boards.model import plain
    from neuco_core.boards.views.report import grid
    from neuco_core.cli.board_show import print_board
    from neuco_extensions.challenge.board import final_board, history, live_board
    from neuco_extensions.challenge.host import Host

    with Host(folder) as host:
        if past:
            versions = history(host, phase, final=final)
            if as_json:
                echo_json(plain(versions))
                return
            for version in versions:
                click.echo(f"{version.at}\n  " + "\n  ".join(str(change) for change in version.changes))
            return
        made = final_board(host, phase) if final else live_board(host, phase)
        if site is not None:
            _write_site(made, {phase: history(host, phase, final=final)}, site)
    if as_json:
        echo_json(plain(made))
    elif not made.rows:
        click.echo(f"{made.about.title}: no team has a score that may be seen yet")
    else:
        print_board(made, grid(made, "q") if final else grid(made))


def _write_site(made: Board, past: dict[str, tuple[Version, ...]], out: Path) -> None:
    from neuco_core.boards.views.site.source import BoardSource, Words
    from neuco_core.boards.views.site.write import write_site

    teams = {row.method: Words(title=row.title) for row in made.rows}
    about = made.about
    write_site([BoardSource(id=about.id, title=about.title, board=made, methods=teams, past=past)], out)
