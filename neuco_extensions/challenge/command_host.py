"""``neuco challenge init|seal|team|close|audit``: what begins and ends a challenge."""

from __future__ import annotations

from pathlib import Path

import click

from neuco_core.cli.output import clean, echo_json, json_option, table
from neuco_core.progress import show_progress

FOLDER = click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
THREADS = click.option(
    "--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Splits side by side."
)


@click.command()
@FOLDER
def init(folder: Path) -> None:
    """Write a small working challenge on embedded data into DIR, to be run to its end or made your own."""
    from neuco_extensions.challenge.example import write_example

    write_example(folder)
    click.echo(f"{folder}: challenge.toml, ids.txt, and labels in private/")
    click.echo(f"next:\n  neuco challenge team {folder} alpha --title Alpha\n  neuco challenge seal {folder}")


@click.command()
@FOLDER
def seal(folder: Path) -> None:
    """Draw the secret seeds and publish hashes of rules, labels and seeds. After this only teams may be added."""
    from neuco_extensions.challenge.rules import load_challenge
    from neuco_extensions.challenge.seal import SEAL
    from neuco_extensions.challenge.seal import seal as make

    challenge = load_challenge(folder)
    made = make(challenge)
    click.echo(f"{challenge.published / SEAL}: {len(made.commitments)} commitments; publish this file now")


@click.command()
@FOLDER
@click.argument("name")
@click.option("--title", help="How people call the team.")
@click.option("--host", is_flag=True, help="A baseline of the hosts: shown, not competing.")
@click.option("--new-token", is_flag=True, help="For a team that has lost its token: the old one ends.")
def team(folder: Path, name: str, title: str | None, host: bool, new_token: bool) -> None:
    """Add the team NAME and print its token, which is stored nowhere: only its hash is."""
    from neuco_extensions.challenge.teams import add_team, renew_token

    if new_token == (title is not None) or (new_token and host):
        raise click.UsageError("A new team needs --title; one that is there takes --new-token, and nothing else.")
    click.echo(renew_token(folder, name) if title is None else add_team(folder, name, title, host=host))


@click.command()
@FOLDER
def close(folder: Path) -> None:
    """Publish exact boards, all submissions and what the commitments are of, when all phases are over."""
    from neuco_extensions.challenge.close import close as end
    from neuco_extensions.challenge.host import Host

    with Host(folder) as host:
        for path in end(host):
            click.echo(path)


@click.command()
@FOLDER
@THREADS
@json_option
def audit(folder: Path, threads: int, as_json: bool) -> None:
    """Prove that nothing was moved, and score every submission again. Exits with 4 if anything is not as it was."""
    from neuco_core.errors import DataError
    from neuco_extensions.challenge.audit import CHECKS
    from neuco_extensions.challenge.audit import audit as prove

    with show_progress() as tell:
        told = (lambda done, total: tell(done / total, "submissions")) if tell else None
        checks = prove(folder, threads=threads, told=told)
    if as_json:
        named = ("wrong", "about", "skipped")
        echo_json([{"check": own.name, "ok": own.ok} | {name: getattr(own, name) for name in named} for own in checks])
    else:
        marks = {own.name: "FAILED" if own.wrong else "–" if own.skipped else "ok" for own in checks}
        rows = [(own.name, marks[own.name], clean(own.wrong or own.skipped or CHECKS[own.name])) for own in checks]
        click.echo(table(("check", "", "what"), rows))
    wrong = [own.name for own in checks if not own.ok]
    if wrong:
        skipped = [name for name in CHECKS if name not in {own.name for own in checks}]
        more = f"; not checked: {', '.join(skipped)}" if skipped else ""
        raise DataError(f"the audit failed: {', '.join(wrong)}{more}", where=folder)
