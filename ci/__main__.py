"""``python -m ci``: everything that continuous integration does, on any machine."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from ci.report import LARGEST
from neuco_core.errors import DataError, NeucoError
from neuco_core.text import one_line

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """What happens to a pull request, step by step."""


@cli.command()
@click.option("--repo", type=FOLDER, default=Path(), help="The checkout of the pull request.")
@click.option("--since", default="origin/main", show_default=True, help="The branch that it is meant for.")
def changed(repo: Path, since: str) -> None:
    """List the plugins that a pull request touches, as JSON."""
    from ci.changed import changed as find

    click.echo(json.dumps(find(repo, since).to_json(), ensure_ascii=True, indent=2))


@cli.command("score-pr")
@click.option("--base", type=FOLDER, default=Path(), help="A checkout of main: the code that judges.")
@click.option("--head", type=FOLDER, required=True, help="A checkout of the pull request: the code that is judged.")
@click.option("--since", default="origin/main", show_default=True, help="The branch that it is meant for.")
@click.option("--out", type=FILE, required=True, help="Where the report goes.")
@click.option("--seconds", type=float, default=600, show_default=True, help="Time limit of each step.")
@click.option("--memory", type=int, default=6000, show_default=True, help="Memory limit of each step, in MB.")
def score_pr(base: Path, head: Path, since: str, out: Path, seconds: float, memory: int) -> None:
    """Check, test and score what a pull request touches; exits with 1 if anything fails."""
    from ci.comment import summary
    from ci.sandbox import Limits
    from ci.score_pr import score_pr as run
    from neuco_core.files import write_atomic

    report = run(base, head, since, Limits(seconds=seconds, memory=memory << 20))
    write_atomic(out.absolute(), report.to_bytes())
    click.echo(summary(report))
    sys.exit(0 if report.green else 1)


@cli.command()
@click.option("--report", "path", type=FILE, required=True, help="The report that score-pr wrote.")
@click.option("--registry", type=FOLDER, default=Path("registry"), show_default=True)
def comment(path: Path, registry: Path) -> None:
    """Print a report as Markdown for the pull request. The report is not trusted."""
    from ci.comment import render
    from ci.report import parse

    report, records = parse(_read(path))
    click.echo(render(report, records, registry), nl=False)


@cli.command()
@click.option("--registry", type=FOLDER, default=Path("registry"), show_default=True)
def post(registry: Path) -> None:
    """In a workflow: comment on a pull request with the report of its run, or update the comment."""
    from ci.github import GitHub
    from ci.github import post as run

    names = ("HEAD_OWNER", "HEAD_BRANCH", "HEAD_SHA", "RUN_ID", "RUN_URL")
    click.echo(run(GitHub.from_environment(), registry, {name: os.environ.get(name, "") for name in names}))


@cli.command()
@click.option("--sha", required=True, help="A commit on main.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Where reports go.")
def merged(sha: str, out: Path) -> None:
    """In a workflow: fetch the reports of the pull requests whose merge made a commit."""
    from ci.github import GitHub

    github = GitHub.from_environment()
    out.mkdir(parents=True, exist_ok=True)
    heads = github.merged_heads(sha)
    for head in heads:
        (out / f"{head}.json").write_bytes(github.report_of(head))
    click.echo(f"{len(heads)} merged pull requests: {', '.join(heads) or 'main was pushed to directly'}")


@cli.command()
@click.option("--repo", type=FOLDER, default=Path(), help="A checkout of main.")
@click.option("--report", "paths", type=FILE, multiple=True, help="Reports of merged pull requests.")
@click.option("--site", type=click.Path(path_type=Path), help="Also write the website to this folder.")
@click.option("--push/--no-push", default=False, help="Commit and push; try again if somebody else was faster.")
@click.option("--reports", type=FOLDER, help="A folder of reports, each named after the commit that it must be about.")
@click.option("--since", default="", help="The commit before the merge: only what it touched may be in the reports.")
def publish(
    repo: Path, paths: tuple[Path, ...], reports: Path | None, site: Path | None, push: bool, since: str
) -> None:
    """On main: add the records, withdraw those of removed plugins, rebuild boards and site."""
    from ci.publish import publish as run

    given = [(_read(path), "") for path in paths]
    given += [(_read(path), path.stem) for path in sorted(reports.glob("*.json"))] if reports else []
    for line in run(repo, given, site=site, push=push, since=since):
        click.echo(one_line(line))


def _read(path: Path) -> bytes:
    """A report, up to one byte more than is allowed."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except OSError as error:
        raise DataError(f"cannot read the report: {error.strerror}", where=path) from error


def main() -> None:
    try:
        cli.main(prog_name="python -m ci", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except NeucoError as error:
        click.echo(f"ci: error: {error}", err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
