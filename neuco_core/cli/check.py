"""``neuco check``: the contract of tasks and methods."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neuco_core.cli.complete import ids_of
from neuco_core.cli.output import echo_json, json_option, table

if TYPE_CHECKING:
    from neuco_core.contract.contract import Finding
    from neuco_core.contract.subjects import Subject


class ContractHelp(click.Command):
    """Help that lists the checks that are run: it is made from the contract itself."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from neuco_core.contract.contract import all_checks

        with formatter.section("Checks"):
            formatter.write_dl([(item.id, item.asks) for item in all_checks()])


@click.command(cls=ContractHelp)
@click.argument("names", nargs=-1, metavar="[NAME|PATH]...", shell_complete=ids_of("task", "method"))
@click.option("--all", "everything", is_flag=True, help="Check every task and method that is registered.")
@click.option("--only", multiple=True, metavar="CHECK", help="Run only this check; may be repeated.")
@click.option("--allow-unpinned", is_flag=True, help="Skip a source that is not pinned yet, instead of failing.")
@json_option
def check(names: Sequence[str], everything: bool, only: Sequence[str], allow_unpinned: bool, as_json: bool) -> None:
    """Check tasks and methods against the contract. NAME is an id, PATH the directory of a plugin.

    Exits with 1 if a check failed, or if none completed.
    """
    import msgspec

    from neuco_core.contract.contract import run_checks
    from neuco_core.errors import UsageError

    if bool(names) == everything or not all(names):
        raise UsageError("what should be checked?", expected="names, paths, or --all")
    _known(only)
    subjects = [item for name in (names or ("",)) for item in _subjects(name)]
    findings: list[Finding] = []
    for noun, subject in subjects:
        own = run_checks(noun, subject, only or None, allow_unpinned=allow_unpinned)
        findings += own
        if not as_json:
            _print(subject.id, own)
    if as_json:
        echo_json(msgspec.to_builtins(findings))
    _end(findings, len(subjects))


def _known(only: Sequence[str]) -> None:
    from neuco_core.contract.contract import all_checks
    from neuco_core.errors import UnknownIdError

    known = [item.id for item in all_checks()]
    for name in only:
        if name not in known:
            raise UnknownIdError("check", name, known)


def _subjects(name: str) -> list[tuple[str, Subject]]:
    """The tasks and methods behind an id or a plugin's directory; all of them for an empty name."""
    from neuco_core.contract.subjects import MethodSubject, TaskSubject
    from neuco_core.errors import PluginError, UnknownIdError
    from neuco_core.plugins.catalog import catalog
    from neuco_core.specs import Method, Task

    tasks, methods = catalog().all(Task), catalog().all(Method)
    known = name in tasks or name in methods
    folder = Path(name).resolve() if name and not known and Path(name).is_dir() else None

    def wanted(spec: Task | Method) -> bool:
        inside = folder is not None and spec.origin is not None and Path(spec.origin.source).resolve() == folder
        return not name or inside or (spec.id == name and folder is None)

    subjects: list[tuple[str, Subject]] = [("task", TaskSubject(spec)) for spec in tasks.values() if wanted(spec)]
    subjects += [("method", MethodSubject(spec)) for spec in methods.values() if wanted(spec)]
    if subjects:
        return subjects
    for problem in catalog().problems():
        if problem.name in (name, Path(name).name):
            raise PluginError(problem.error, where=problem.file or problem.source, hint="Repair it, then check again")
    if folder is not None:
        raise PluginError("no task or method is registered from this directory", where=folder, hint=_PATH_HINT)
    raise UnknownIdError("entry", name, {*tasks, *methods})


_PATH_HINT = "Put it into a folder neuco_tasks or neuco_methods on the Python path"


def _print(name: str, findings: Sequence[Finding]) -> None:
    click.echo(table((name, "", ""), [(f.check, f.status, f.detail) for f in findings]))
    for finding in findings:
        if finding.cure:
            click.echo(f"  {finding.check}: {finding.cure}")
    click.echo()


def _end(findings: Sequence[Finding], subjects: int) -> None:
    from neuco_core.contract.contract import passed

    counts = {status: sum(f.status == status for f in findings) for status in ("ok", "warning", "skipped", "failed")}
    words = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    click.echo(f"{subjects} checked: {words or 'nothing'}", err=True)
    if not passed(findings):
        sys.exit(1)
