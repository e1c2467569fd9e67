"""``python -m ci``: everything that continuous integration does, on any machine. Commands are imported one by one."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ci.report import EXIT_CODES, LARGEST, NO_COMMIT, Report, parse
from neuco_core.contract.contract import Finding
from neuco_core.errors import DataError, NeucoError
from neuco_core.files import write_atomic
from neuco_core.text import clean

if TYPE_CHECKING:
    from ci.plugin_sandbox import PluginSandbox

GRACE = 300  # seconds after the deadline
AGAIN = 1.0  # seconds after which a run that was told to end, and goes on, is told again
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
PATH = click.Path(path_type=Path)
SECONDS = click.option("--seconds", type=float, default=600, show_default=True, help="Time limit of each step.")
MEMORY = click.option("--memory", type=int, default=6000, show_default=True, help="Memory limit of each step, in MB.")
REGISTRY = click.option("--registry", type=FOLDER, default=Path("registry"), show_default=True)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """What happens to a pull request, and to main after the merge."""


@cli.command()
@click.option("--repo", type=FOLDER, default=Path(), help="The checkout of the pull request.")
@click.option("--since", default="origin/main", show_default=True, help="The branch that it is meant for.")
def changed(repo: Path, since: str) -> None:
    """List the plugins that a pull request touches, as JSON."""
    from ci.changed import changed as find  # one command, one import
    from ci.git import uncommitted  # one command, one import

    click.echo(json.dumps(asdict(find(repo, since)), ensure_ascii=True, indent=2))
    say(uncommitted(repo), err=True)


@cli.command("score-pr")
@click.option("--head", type=FOLDER, required=True, help="A checkout of the pull request: the code that is judged.")
@click.option("--since", default="origin/main", show_default=True, help="The branch that it is meant for.")
@click.option("--out", type=FILE, required=True, help="Where the report goes.")
@SECONDS
@MEMORY
@click.option("--deadline", type=float, default=150, show_default=True, help="Time limit of the whole, in minutes.")
def score_pr(head: Path, since: str, out: Path, seconds: float, memory: int, deadline: float) -> None:
    """Check, test and score what a pull request touches; the checkout that this runs in judges.

    Exits with 0 if it is green, with 1 if anything failed, and with 3 if it waits for a maintainer: nothing failed, but
    something could not be scored here for a reason that is not the contributor's. A report is written whatever happens,
    and it is red if anything did.
    """
    from ci.comment import summary  # one command, one import
    from ci.git import uncommitted  # one command, one import
    from ci.judge import Judge  # one command, one import
    from ci.sandbox import Limits  # not for `comment` and `post`: they have a right, and run nothing

    # Written first, so that it is there even if this process is killed.
    unfinished = NeucoError(f"it was ended from outside, or long after its deadline of {deadline:g} minutes")
    write_atomic(out.absolute(), _failed(head, unfinished).to_bytes())
    _stop_at(deadline)
    try:
        warnings = sandbox_warnings()
        limits = Limits(seconds=seconds, memory=memory << 20)
        report = Judge(Path(), head, since, limits, deadline, partial(say, err=True)).run()
    except Stopped as stopped:
        signal.setitimer(signal.ITIMER_REAL, 0)
        say(f"ci: stopped by signal {stopped.number}; the report is red", err=True)
        sys.exit(128 + stopped.number)
    except Exception as error:
        write_atomic(out.absolute(), _failed(head, error).to_bytes())
        if isinstance(error, NeucoError):
            raise
        say("".join(traceback.format_exception(error)), err=True)
        sys.exit(1)
    report = msgspec.structs.replace(report, general=(*report.general, *warnings))
    write_atomic(out.absolute(), report.to_bytes())
    say(summary(report))
    say(uncommitted(head), err=True)
    sys.exit(EXIT_CODES[report.verdict])


class Stopped(BaseException):
    """A signal to end: no handler of errors may take it for one, and everything on the way is cleaned up."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _stop_at(minutes: float) -> None:
    """End well at a signal, and some time after the deadline also where no step looks at it, as in a download."""
    numbers: list[int] = []

    def stop(number: int, _: object) -> None:
        """Again each second: Python drops what is raised inside a finaliser, and nothing would ever end this run."""
        numbers.append(number)
        signal.setitimer(signal.ITIMER_REAL, AGAIN, AGAIN)
        error = sys.exception()
        while error is not None and not isinstance(error, Stopped):
            error = error.__context__
        if error is None:  # not on its way out yet: what cleans up must not be disturbed
            raise Stopped(numbers[0])

    def dropped(what: sys.UnraisableHookArgs) -> None:
        if not isinstance(what.exc_value, Stopped):
            sys.__unraisablehook__(what)

    sys.unraisablehook = dropped
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(name, stop)
    signal.setitimer(signal.ITIMER_REAL, 60 * minutes + GRACE)


def sandbox_warnings() -> list[Finding]:
    """Say what protects this machine from the code that will run; what a sandbox lacks is for the report, too.

    Without cgroup the limits hold all the same. Without bubblewrap it is an error.
    """
    from ci.sandbox import protections  # not for `comment` and `post`: they have a right, and run nothing

    active = protections()
    say("sandbox: bubblewrap, " + ", ".join(f"{'' if on else 'NO '}{name}" for name, on in active.items()))
    lacking = ", ".join(name for name, on in active.items() if not on and "cgroup" not in name)
    cure = "Use bubblewrap 0.8 or newer on x86_64 or aarch64"
    return [Finding("sandbox", "machine", "warning", f"bubblewrap lacks here: {lacking}", cure)] if lacking else []


def _failed(head: Path, error: Exception) -> Report:
    """A red report about a run that could not be completed."""
    from ci.git import git  # one command, one import

    try:
        commit = git(head, "rev-parse", "HEAD").strip()
    except (NeucoError, OSError):
        commit = NO_COMMIT
    message = str(error) if isinstance(error, NeucoError) else f"{type(error).__name__}: {error}"
    cure = "Read the log of the run; if it is not your plugin's fault, open an issue"
    finding = Finding("judge", "pull request", "failed", f"the run was not completed: {message[:2000]}", cure)
    return Report(NO_COMMIT, commit, "bubblewrap", (), (finding,), (), (), 0.0, 1)


def on_main(command: Callable[..., None]) -> Any:
    """A command that is given sandboxes for the plugins of a checkout of main."""

    @click.option("--repo", type=FOLDER, default=Path(), help="A checkout of main.")
    @SECONDS
    @MEMORY
    @click.option("--deadline", type=float, default=150, show_default=True, help="No longer, in minutes.")
    @wraps(command)
    def run(repo: Path, seconds: float, memory: int, deadline: float, **options: Any) -> None:
        from ci.plugin_sandbox import PluginSandbox  # not for `comment` and `post`, which run nothing
        from ci.sandbox import Limits  # not for `comment` and `post`, which run nothing

        sandbox_warnings()
        limits, end = Limits(seconds=seconds, memory=memory << 20), time.monotonic() + 60 * deadline
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            command(PluginSandbox(repo.resolve(), Path(scratch), limits, end, partial(say, err=True)), **options)

    return run


@cli.command()
@on_main
@click.option("--push", is_flag=True, help="Also commit it to main, or propose it where main takes no push.")
@click.option("--most", type=click.IntRange(min=0), default=2000, show_default=True, help="Cells of one run.")
@click.option("--retry", is_flag=True, help="Also score what failed for a reason of the machine or of a download.")
@click.option("--withdraw", default="", help="A maintainer's word: ids that may leave the boards that compare them.")
@click.option("--accept", default="", help="A maintainer's word: methods whose records are not to be held back.")
@click.option("--site", type=PATH, help="Also write the website to this folder.")
def reconcile(
    boxes: PluginSandbox, push: bool, most: int, retry: bool, withdraw: str, accept: str, site: Path | None
) -> None:
    """On main: score what has no record that holds, make boards and site, write it to the registry.

    It may be ended and run again at any time; a second run finds nothing to do. Exits with 1 if somebody must look
    after something; the rest is written all the same.
    """
    from ci.git import deliver, require_main  # one command, one import
    from ci.github import GitHub  # one command, one import
    from ci.reconcile import MESSAGE, Reconciling  # one command, one import

    if push:
        require_main(boxes.base)
    # Else what somebody scored in this checkout lies over its registry, and would be on main's boards.
    os.environ["NEUCO_REGISTRY"] = str(boxes.base / "registry")
    update = Reconciling(boxes, withdraw.split(), accept.split())
    update.run(most, retry=retry, site=site)
    say("\n".join(update.lines))
    if push:
        in_workflow = {"GITHUB_TOKEN", "GITHUB_REPOSITORY"} <= os.environ.keys()
        propose = GitHub.from_environment().propose if in_workflow else None
        say(deliver(boxes.base, MESSAGE, update.write, propose))
    if update.loud:
        say("\n".join(f"ci: {line}" for line in update.loud), err=True)
        sys.exit(1)


@cli.command()
@on_main
@click.option("--sample", type=click.IntRange(min=1), default=20, show_default=True, help="How many records.")
def verify(boxes: PluginSandbox, sample: int) -> None:
    """On main: score a sample of records again and compare.

    Nothing is written. Exits with 1 if a score does not come again.
    """
    from ci.reconcile import verify as run  # one command, one import

    findings = run(boxes, sample)
    for finding in findings:
        say(f"{finding.status} {finding.check} {finding.subject}: {finding.detail}")
    sys.exit(1 if any(finding.status == "failed" for finding in findings) else 0)


@cli.command()
@click.option("--report", "path", type=FILE, required=True, help="The report that score-pr wrote.")
@REGISTRY
def comment(path: Path, registry: Path) -> None:
    """Print a report: as text on a terminal, else as Markdown for the pull request. The report is not trusted."""
    from rich.console import Console  # one command, one import

    from ci.comment import plain, render  # one command, one import

    try:
        with path.open("rb") as file:
            report, records = parse(file.read(LARGEST + 1))
    except OSError as error:
        raise DataError(f"cannot read the report: {error.strerror}", where=path) from error
    markdown = render(report, records, registry)
    if sys.stdout.isatty():
        Console().print(plain(markdown))
    else:
        click.echo(markdown, nl=False)


@cli.command()
@REGISTRY
def post(registry: Path) -> None:
    """In a workflow: comment on a pull request with the report of its run, or update the comment."""
    from ci.github import GitHub  # one command, one import
    from ci.github import post as run  # one command, one import

    names = ("HEAD_OWNER", "HEAD_BRANCH", "HEAD_SHA", "RUN_ID", "RUN_PATH", "RUN_URL")
    say(run(GitHub.from_environment(), registry, {name: os.environ.get(name, "") for name in names}))


@cli.command()
@click.option("--repo", type=FOLDER, default=Path(), help="The checkout that it was built from.")
@click.option("--dist", type=FOLDER, default=Path("dist"), show_default=True, help="Wheel and source distribution.")
@click.option("--tag", default="", help="The tag of the release, e.g. v0.1.0; without it only the wheel's size counts.")
@click.option("--notes", type=FILE, help="Write the changelog's section of this version there.")
def release(repo: Path, dist: Path, tag: str, notes: Path | None) -> None:
    """Refuse a distribution that must not be released; `python -m build` makes it."""
    from ci.release import LARGEST, check, the_wheel  # one command, one import

    wheel = the_wheel(dist)
    say(f"{wheel.name}: {wheel.stat().st_size:,} bytes, fewer than {LARGEST:,}")
    if tag:
        text = check(dist, repo, tag)
        if notes:
            notes.write_text(text, encoding="utf-8")
        say(f"{tag}: ready to be released")


def say(text: str, err: bool = False) -> None:
    """Print lines that a workflow's runner does not take for commands: ``::…`` at their start, ``##[`` anywhere."""
    for line in text.splitlines():
        click.echo(re.sub(r"^(\s*):(?=:)", r"\1: ", clean(line)).replace("##[", "## ["), err=err)


def main() -> None:
    try:
        cli.main(prog_name="python -m ci", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except NeucoError as error:
        say(f"ci: error: {error}", err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
