"""``neuco challenge``: a challenge with hidden tasks, from an empty folder to the audit."""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import msgspec

from neuco_core.boards.model import plain
from neuco_core.boards.report import grid
from neuco_core.cli.leaderboard import print_board
from neuco_core.cli.output import can_ask, clean, echo_json, json_option, table
from neuco_core.errors import EXIT_CODES, DataError, UsageError
from neuco_core.progress import show_progress
from neuco_extensions.challenge.audit import CHECKS, public_entry
from neuco_extensions.challenge.audit import audit as run_audit
from neuco_extensions.challenge.audit import close as close_challenge
from neuco_extensions.challenge.board import final_board, first_shown, history, live_board
from neuco_extensions.challenge.evalai.api import FILES, Account
from neuco_extensions.challenge.evalai.export import export as export_files
from neuco_extensions.challenge.evalai.worker import Bridge, EvalAIWorker
from neuco_extensions.challenge.evaluate import check as check_file
from neuco_extensions.challenge.host import Host, sweep
from neuco_extensions.challenge.journal import RefusedError
from neuco_extensions.challenge.rules import AMENDMENTS, ZONED, ChallengeLimits, Moment, load_challenge, read_ids
from neuco_extensions.challenge.seal import SEAL, unsealed
from neuco_extensions.challenge.seal import seal as seal_challenge
from neuco_extensions.challenge.setup import add_team, renew_token, write_example
from neuco_extensions.challenge.workers import evaluate_waiting, start_engine

CODES = ", ".join(f"{code} {EXIT_CODES[code]}" for code in (0, 2, 3, 4, 5))
FAR = timedelta(days=366)  # a deadline that is further ahead is mostly a slip of the pen
TOKEN = "EVALAI_TOKEN"  # noqa: S105 - the name of a variable
FOLDER = click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
FILE = click.argument("file", type=click.Path(path_type=Path))
COUNT = click.IntRange(min=1)
THREADS = click.option("--threads", type=COUNT, default=1, show_default=True, help="Splits side by side.")
ENGINE = click.option("--engine", default="local", show_default=True, help="local, dask (here), or dask://host:port.")


@click.group(epilog=f"Exit codes: {CODES}.")
def challenge() -> None:
    """Run a challenge with hidden tasks: rules, submissions, boards, and proof that nothing was moved."""


@challenge.command()
@FOLDER
def init(folder: Path) -> None:
    """Write a small working challenge on embedded data into DIR, to be run to its end or made your own."""
    write_example(folder)
    click.echo(f"{folder}: challenge.toml, ids.txt, and labels in private/")
    click.echo(f"next:\n  neuco challenge team {folder} alpha --title Alpha\n  neuco challenge seal {folder} --dry-run")


@challenge.command()
@FOLDER
@click.option("--dry-run", is_flag=True, help="Show what would be sealed, and seal nothing.")
def seal(folder: Path, dry_run: bool) -> None:
    """Draw the secret seeds and publish hashes of rules, labels and seeds. After this only teams may be added, and
    deadlines extended."""
    rules = load_challenge(folder)
    phases, tasks = [], []
    for hidden in unsealed(rules):
        phase = rules.phase(hidden.phase)
        phases.append((hidden.phase, f"{phase.start:%F %T%z}", f"{phase.end:%F %T%z}", str(len(hidden.ids))))
        for name, task in hidden.tasks.items():
            labels = rules.tasks[name].labels if name in rules.tasks else task.source.url
            tasks.append((hidden.phase, name, labels, str(len(hidden.labels[name].ids)), task.kind, task.metric))
    click.echo(table(("phase", "start", "end", "ids"), phases, right={3}) + "\n")
    click.echo(table(("phase", "task", "labels", "used", "kind", "metric"), tasks, right={3}) + "\n")
    if dry_run:
        click.echo(f"nothing is sealed yet; next:\n  neuco challenge seal {folder}")
        return
    made = seal_challenge(rules)
    click.echo(f"{rules.published / SEAL}: {len(made.commitments)} commitments; publish this file now")


@challenge.command()
@FOLDER
@click.argument("name")
@click.option("--title", help="How people call the team.")
@click.option("--host", is_flag=True, help="A baseline of the hosts: shown, not competing.")
@click.option("--new-token", is_flag=True, help="For a team that has lost its token: the old one ends.")
def team(folder: Path, name: str, title: str | None, host: bool, new_token: bool) -> None:
    """Add the team NAME and print its token, which is stored nowhere: only its hash is."""
    if new_token == (title is not None) or (new_token and host):
        raise click.UsageError("A new team needs --title; one that is there takes --new-token, and nothing else.")
    token = renew_token(folder, name) if title is None else add_team(folder, name, title, host=host)
    click.echo(f"Token of {name}, shown once:", err=True)
    click.echo(token)


@challenge.command()
@FILE
@click.option("--ids", required=True, type=click.Path(path_type=Path), help="The ids that the challenge asks for.")
@click.option("--dim", type=COUNT, default=1024, show_default=True, help="The most dimensions allowed.")
@click.option("--bytes", "size", type=COUNT, default=500_000_000, show_default=True, help="Of the file.")
def check(file: Path, ids: Path, dim: int, size: int) -> None:
    """See whether FILE would be accepted: it is read as the hosts read it. For teams, before they submit."""
    if not file.is_file():
        raise DataError("no such file", where=file)
    embeddings = check_file(file, read_ids(ids), ChallengeLimits(dim=dim, bytes=size))
    click.echo(f"{file}: {len(embeddings)} embeddings of {embeddings.dim} dimensions, with the ids of the challenge")


@challenge.command()
@FOLDER
@FILE
@click.option("--team", required=True, help="Whose submission it is.")
@click.option("--phase", required=True, help="The phase that it is for.")
@click.option("--at", metavar="TIME", help="When it was received, e.g. 2025-01-10T12:00:00Z. [default: now]")
@click.option("--private", is_flag=True, help="Score it, and leave it off the board.")
def submit(folder: Path, file: Path, team: str, phase: str, at: str | None, private: bool) -> None:
    """Enter FILE as a submission. It is stored and in the journal when this ends; `evaluate` scores it."""
    moment = _moment("--at", at) if at is not None else None
    with Host(folder) as host:
        try:
            entry = host.submit(team, phase, file, public=not private, now=moment)
        except RefusedError as error:
            if error.code != "closed":
                raise
            rules = host.challenge.phase(phase)  # a host at a terminal may know more than a team
            expected, got = f"a time from {rules.start} to before {rules.end}", moment or datetime.now(UTC)
            hint = "If the file was received in that time, say when with --at"
            raise DataError(f"phase {phase} is not open", expected=expected, got=f"{got:%F %T%z}", hint=hint) from error
        click.echo(f"submission {entry.id}, {entry.state}; receipt {entry.chain}")


def _moment(option: str, text: str) -> datetime:
    """A time as the rules read it: no zone is guessed, since no amendment brings a deadline forward again."""
    try:
        return msgspec.convert(text, Moment).astimezone(UTC)
    except (msgspec.ValidationError, OverflowError) as error:
        raise UsageError(f"bad {option}", expected=ZONED, got=repr(text)) from error


@challenge.command()
@FOLDER
@click.argument("phase")
@click.option("--end", required=True, metavar="TIME", help="The new deadline, e.g. 2025-03-15T12:00:00Z.")
@click.option("--yes", is_flag=True, help="Do not ask about a deadline that is more than a year ahead.")
def amend(folder: Path, phase: str, end: str, yes: bool) -> None:
    """Extend the deadline of PHASE after the seal: later than now and than the one that was published."""
    moment = _moment("--end", end)
    if moment - datetime.now(UTC) > FAR and not yes:
        question = f"The new deadline is {moment:%F}, and no amendment brings it forward again. Go on?"
        if not (can_ask() and click.confirm(question, err=True)):
            hint = "Correct --end, or go on with --yes: no amendment brings a deadline forward again"
            raise UsageError("the deadline is more than a year ahead", got=f"{moment:%F}", hint=hint)
    with Host(folder) as host:
        made = host.amend(phase, moment)
        path = host.challenge.published / AMENDMENTS
    click.echo(f"phase {phase} ends at {made.end:%F %T%z} instead of {made.old_end:%F %T%z}; receipt {made.chain}")
    click.echo(f"{path}: publish this file now")


@challenge.command()
@FOLDER
@click.option("--retry", type=int, metavar="ID", help="First have this submission, which failed, evaluated again.")
@ENGINE
@click.option("--jobs", type=COUNT, default=1, show_default=True, help="Evaluations side by side.")
@THREADS
def evaluate(folder: Path, retry: int | None, engine: str, jobs: int, threads: int) -> None:
    """Score all submissions that wait. Any number of these may run at once, and be killed at any time."""
    with Host(folder) as host:
        sweep(host.challenge.private)
        if retry is not None:
            host.journal.retry(retry)
        counts = Counter[str]()
        for entry in evaluate_waiting(host, start_engine(engine, jobs), jobs, threads=threads):
            counts[entry.state] += 1
            result = f"mean Q {entry.mean_q:.3f}" if entry.mean_q is not None else clean(entry.detail)
            click.echo(f"submission {entry.id} of {entry.team} in {entry.phase}: {entry.state}, {result}")
        click.echo(f"{counts['scored']} scored, {counts['failed']} failed")


@challenge.command()
@FOLDER
@click.option("--team", help="Only of this team.")
@click.option("--phase", help="Only of this phase.")
@json_option
def status(folder: Path, team: str | None, phase: str | None, as_json: bool) -> None:
    """List the submissions with all that the hosts may know of them."""
    with Host(folder) as host:
        host.challenge.require(phase=phase, team=team)  # a name that nothing has is an error, and not an empty list
        entries = host.journal.submissions(phase, team)
    if as_json:
        echo_json([public_entry(entry) | {"detail": entry.detail} for entry in entries])
        return
    rows = []
    for entry in entries:
        numbers = ["" if q is None else f"{q:.3f}" for q in (entry.mean_q, entry.feedback.get("mean_q"))]
        about = [str(entry.id), entry.received[:19], entry.team, entry.phase, entry.state]
        rows.append([*about, *numbers, clean(entry.detail)])
    click.echo(table(("id", "received", "team", "phase", "state", "mean Q", "told", "detail"), rows, right={0, 5, 6}))


@challenge.command()
@FOLDER
@click.argument("phase")
@click.option("--final", is_flag=True, help="The exact board with scores by task: for hosts until the end.")
@click.option("--site", type=click.Path(file_okay=False, path_type=Path), help="Write it as web pages to this folder.")
@click.option("--history", "past", is_flag=True, help="Who moved, when, and because of whom.")
@json_option
def board(folder: Path, phase: str, final: bool, site: Path | None, past: bool, as_json: bool) -> None:
    """Show the board of PHASE: while it is open, what anybody may see."""
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
        first = None if final or made.rows else first_shown(host, phase)
        if site is not None:
            from neuco_core.site.page_data import About  # heavy: only for pages
            from neuco_core.site.write import write_site  # heavy: only for pages
            from neuco_extensions.challenge.past_page import ChallengePage  # heavy: only for pages

            teams = {row.method: About(title=row.title) for row in made.rows}
            dated = {phase: history(host, phase, final=final)}
            write_site([ChallengePage(made.about.id, made.about.title, made, methods=teams, past=dated)], site)
    if as_json:
        echo_json(plain(made))
    elif not made.rows:
        since = f"; the first may be seen from {first:%F %T%z}" if first else ""
        click.echo(f"{made.about.title}: no team has a score that may be seen yet{since}")
    else:
        print_board(made, grid(made, "q") if final else grid(made))


@challenge.command()
@FOLDER
def close(folder: Path) -> None:
    """Publish exact boards, all submissions and what the commitments are of, when all phases are over."""
    with Host(folder) as host:
        for path in close_challenge(host):
            click.echo(path)


@challenge.command()
@FOLDER
@THREADS
@json_option
def audit(folder: Path, threads: int, as_json: bool) -> None:
    """Prove that nothing was moved, and score every submission again. Exits with 4 if anything is not as it was."""
    with show_progress() as progress:
        checks = run_audit(folder, start_engine("local", 1), threads=threads, progress=progress)
    if as_json:
        echo_json([{"check": c.name, "ok": c.ok, "wrong": c.wrong, "skipped": c.skipped} for c in checks])
    else:
        rows = []
        for one in checks:
            mark = "FAILED" if one.wrong else "–" if one.skipped else "ok"
            rows.append((one.name, mark, clean(one.wrong or one.skipped or CHECKS[one.name])))
        click.echo(table(("check", "", "what"), rows))
    wrong = [one.name for one in checks if not one.ok]
    if wrong:
        skipped = list(CHECKS)[len(checks) :]
        more = f"; not checked: {', '.join(skipped)}" if skipped else ""
        raise DataError(f"the audit failed: {', '.join(wrong)}{more}", where=folder)


@challenge.command()
@FOLDER
@click.option("--format", "platform", type=click.Choice(["evalai"]), default="evalai", help="For whom.")
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="A new folder.")
def export(folder: Path, platform: str, out: Path) -> None:
    """Write what a platform needs to set the challenge up: dates, phases, quotas, the board; nothing that is hidden."""
    files = export_files(load_challenge(folder), out)
    click.echo(f"{files[0]} and {len(files) - 1} more files; put your own words into its pages and your own logo")


@challenge.command()
@FOLDER
@click.option("--queue", required=True, help="The name of the challenge's queue.")
@click.option("--challenge", "number", type=int, required=True, help="The challenge's number on EvalAI.")
@click.option(
    "--server", envvar="EVALAI_SERVER", default="https://eval.ai", show_default=True, help="The EvalAI server."
)
@click.option("--files", multiple=True, metavar="ORIGIN", help="Where else files of submissions may be; repeatable.")
@click.option("--once", is_flag=True, help="End when the queue is empty.")
@THREADS
def worker(
    folder: Path, queue: str, number: int, server: str, files: tuple[str, ...], once: bool, threads: int
) -> None:
    """Evaluate what teams submit on EvalAI. The token of a host is read from the variable EVALAI_TOKEN.

    Each submission is answered once, also if workers are killed or several run on this machine. They share DIR.
    """
    with closing(Bridge(folder, threads=threads)) as bridge:
        rules = bridge.host.challenge
        account = Account(
            server=server,
            queue=queue,
            challenge=number,
            token=os.environ.get(TOKEN, ""),
            files=(FILES, *files),
            max_bytes=rules.limits.bytes,
            hold=float(rules.limits.tick),
        )
        made = EvalAIWorker(account, rules.private / "evalai", bridge, tell=lambda line: click.echo(clean(line)))
        made.run(once=once)


@challenge.command()
@FOLDER
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes a free one.")
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Evaluations side by side; with 0 run `neuco challenge evaluate` beside it.",
)
@ENGINE
@click.option("--uploads", type=COUNT, default=32, show_default=True, help="The most at once.")
@click.option("--proxy", metavar="ADDRESS", default="", help="Believe the X-Forwarded headers of this proxy.")
def serve(folder: Path, host: str, port: int, workers: int, engine: str, uploads: int, proxy: str) -> None:
    """Let teams upload embeddings, see their own state and the board, at a web address.

    Put a proxy before it that speaks TLS, for tokens must not travel in the clear, and that limits how often anybody
    may ask. Ends at Ctrl-C or SIGTERM; all that was accepted is on disk, also after kill -9.
    """
    from neuco_extensions.challenge.serve import serve as run  # optional extra
    from neuco_extensions.challenge.web.uploads import ServerLimits  # optional extra

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")

    run(
        folder,
        host=host,
        port=port,
        workers=workers,
        engine=engine,
        proxy=proxy,
        limits=ServerLimits(uploads=uploads),
        ready=lambda address: click.echo(f"serving at {address}"),
    )
