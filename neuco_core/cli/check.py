"""``neuco check``: the contract of tasks, methods and datasets."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import click
import msgspec

from neuco_core.cli.options import ids_of
from neuco_core.cli.output import clean, echo_json, json_option, table, warn_of_suites
from neuco_core.contract.contract import FAILED, OK, SKIPPED, Finding, all_checks, run_checks
from neuco_core.contract.subjects import Subject, subject_of
from neuco_core.encode.coverage import coverage
from neuco_core.errors import LACKING, DataError, FetchError, PluginError, UnknownIdError, UnpinnedError, UsageError
from neuco_core.plugins.catalog import catalog, list_tasks, load_dataset
from neuco_core.runs.files import ALLOW, refuse_labels
from neuco_core.scoring.leaks import leaks
from neuco_core.specs import Dataset, Method, Task, resolve
from neuco_core.tables.embeddings import read_embeddings
from neuco_core.tables.embeddings_files import as_file
from neuco_core.text import counted, join_names

NAME_HINT = "See `neuco tasks` and `neuco methods`, or give the directory of a plugin"
PATH_HINT = "Put it into a folder neuco_tasks or neuco_methods on the Python path"
Checked = Task | Method | Dataset


class ContractHelp(click.Command):
    """Help that lists the checks that are run: it is made from the contract itself."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Checks"):
            formatter.write_dl([(item.id, item.asks) for item in all_checks()])


@click.command(cls=ContractHelp)
@click.argument("names", nargs=-1, metavar="[NAME|PATH]...", shell_complete=ids_of("task", "method", "dataset"))
@click.option("--all", "everything", is_flag=True, help="Check every task and method that is registered.")
@click.option("--only", multiple=True, metavar="CHECK", help="Run only this check; may be repeated.")
@click.option("--allow-unpinned", is_flag=True, help="Skip a source that is not pinned yet, instead of failing.")
@click.option("--dataset", shell_complete=ids_of("dataset"), help="What a file of embeddings should cover.")
@click.option(ALLOW, is_flag=True, help="Accept a file of embeddings although a column of it is the label of a task.")
@json_option
def check(
    names: Sequence[str],
    everything: bool,
    only: Sequence[str],
    allow_unpinned: bool,
    dataset: str | None,
    allow_labels: bool,
    as_json: bool,
) -> None:
    """Check tasks, methods and datasets against the contract. NAME is an id, PATH the directory of a plugin.

    With --dataset PATH is a file of embeddings: does it have a row of at most 1,024 finite numbers for each sample?
    Rows of other samples are counted, and are no error. Ends with 4 if the file cannot be used.

    A dataset is checked by its name if no task or method has that name: those are checked with the dataset's images.

    A check that finds nothing to look at, such as labels that are not here, is skipped with the reason. Exits with 1 if
    a check failed, or if none completed; and with 8 if none failed but an essential one was skipped for want of
    evidence. Every check is essential unless it says otherwise.
    """
    if dataset is not None:
        _check_embeddings(names, load_dataset(dataset), allow_labels, as_json)
        return
    if bool(names) == everything or not all(names):
        raise UsageError("what should be checked?", expected="names, paths, or --all")
    check_ids = [item.id for item in all_checks()]
    for name in only:
        if name not in check_ids:
            raise UnknownIdError("check", name, check_ids, "See `neuco check --help`")
    tasks, methods = catalog().all(Task), catalog().all(Method)
    specs: list[Checked | Subject] = []
    for name in names or ("",):
        others = []
        if name not in {*tasks, *methods}:  # what an extension's check looks at, by the name that a user gave
            finds = dict.fromkeys(item.find for item in all_checks() if item.find is not None)
            others = [subject for subject in (resolve(find)(name) for find in finds) if subject is not None]
        specs += others[:1] or _specs(name, tasks, methods)
    findings: list[Finding] = []
    for spec in specs:
        # Made here, so that its data is gone before the next one's is loaded.
        subject = spec if isinstance(spec, Subject) else subject_of(spec)
        of_subject = run_checks(subject.noun, subject, only or None, allow_unpinned=allow_unpinned)
        findings += of_subject
        if not as_json:
            click.echo(table((subject.id, "", ""), [(f.check, f.status, f.detail) for f in of_subject]))
            cures = [f"  {finding.check}: {finding.cure}\n" for finding in of_subject if finding.cure]
            click.echo("".join([*cures, "\n"]), nl=False)
    if as_json:
        echo_json(msgspec.to_builtins(findings))
    warn_of_suites()
    _end(findings, len(specs))


def _check_embeddings(files: Sequence[str], dataset: Dataset, allow_labels: bool, as_json: bool) -> None:
    """Whether files of embeddings cover a dataset, and are no labels: ids complete, dimension, finite numbers."""
    if not files:
        raise UsageError("no file to check", expected="neuco check FILE --dataset ID")
    answers = {}
    for name in files:
        path = as_file(Path(name))
        embeddings = read_embeddings(path)
        for task in () if allow_labels else list_tasks(dataset=dataset.id):
            with suppress(FetchError, UnpinnedError):  # labels that are not here
                refuse_labels(path, leaks(embeddings, task.labels()))
        answers[name] = {"file": str(path), **coverage(embeddings, dataset)}
    if as_json:
        echo_json(list(answers.values()))
    for name, answer in answers.items():
        if answer["problems"]:
            raise DataError("; ".join(answer["problems"]), where=name)
        if not as_json:
            click.echo(f"{name}: ok: {answer['about']}")


def _specs(name: str, tasks: Mapping[str, Task], methods: Mapping[str, Method]) -> list[Checked]:
    """The tasks and methods behind an id or a plugin's directory, or else datasets; all tasks and methods for ""."""
    if not name:
        return [*tasks.values(), *methods.values()]
    datasets = catalog().all(Dataset)
    specs: list[Checked] = [specs[name] for specs in (tasks, methods) if name in specs]
    newest, at, _ = name.partition("@")  # an older version, beside the newest ones that are listed
    if at and newest in tasks:
        specs.append(catalog().load(Task, name))
    elif at and newest in methods:
        specs.append(catalog().load(Method, name))
    if specs or name in datasets:
        return specs or [datasets[name]]
    folder = Path(name).resolve() if Path(name).is_dir() else None
    if folder is not None:
        registered: list[Checked] = [*tasks.values(), *methods.values(), *datasets.values()]
        inside = [spec for spec in registered if spec.origin and Path(spec.origin.source).resolve() == folder]
        if inside:
            return [spec for spec in inside if not isinstance(spec, Dataset)] or inside
    for problem in catalog().problems():
        if problem.name in (name, Path(name).name):
            raise PluginError(problem.error, where=problem.file or problem.source, hint="Repair it, then check again")
    if folder is not None and (folder / "__init__.py").is_file():
        there = f"It is not on the Python path: export PYTHONPATH={folder.parent.parent}"
        hint = there if folder.parent.name in ("neuco_tasks", "neuco_methods") else PATH_HINT
        raise PluginError("no task or method is registered from this directory", where=folder, hint=hint)
    away = [tree for tree in ("neuco_tasks", "neuco_methods") if Path(tree, name, "__init__.py").is_file()]
    hint = f"{away[0]}/{name} is not on the Python path: export PYTHONPATH={Path.cwd()}" if away else NAME_HINT
    if Path(name).is_file():
        hint = f"A file of embeddings is checked with its dataset: neuco check {name} --dataset ID"
    raise UnknownIdError("task or method", name, {*tasks, *methods, *datasets}, hint=hint)


def _end(findings: Sequence[Finding], subjects: int) -> None:
    counts = {status: sum(f.status == status for f in findings) for status in ("ok", "warning", "skipped", "failed")}
    summary = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    click.echo(f"{subjects} checked: {summary or 'nothing'}", err=True)
    reasons: dict[str, list[str]] = {}
    for finding in findings:
        if finding.status == SKIPPED:
            mark = " (essential)" if finding.lacking else ""
            reasons.setdefault(finding.detail, []).append(f"{finding.check} of {finding.subject}{mark}")
    for reason, skipped in reasons.items():
        click.echo(clean(f"skipped: {join_names(skipped)}: {reason}"), err=True)
    if counts[FAILED] or not counts[OK]:
        sys.exit(1)
    if missing := sum(finding.lacking for finding in findings):  # nothing failed there, and nothing is known either
        click.echo(f"not complete: {counted(missing, 'essential check')} could not be made here", err=True)
        sys.exit(LACKING)
