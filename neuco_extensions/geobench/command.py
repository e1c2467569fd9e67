"""``neuco geobench``: submissions to the GEO-Bench-2 leaderboard, checked, kept, ranked and written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neuco_core.cli.options import ids_of
from neuco_core.cli.output import clean, echo_json, json_option, table
from neuco_core.errors import DataError
from neuco_core.paths import registry_dir
from neuco_core.text import counted, join_names
from neuco_extensions.geobench.command_tune import tune

if TYPE_CHECKING:
    from neuco_core.boards.model import Board
    from neuco_extensions.geobench.faults import Fault
    from neuco_extensions.geobench.submission import Submission

WITH = "Also rank the submission in this folder, and show where it would stand; nothing is written. Repeatable."
FOLDER = click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")


@click.group()
def geobench() -> None:
    """Check, keep, rank and write submissions to the GEO-Bench-2 leaderboard."""


geobench.add_command(tune)


@geobench.command()
@FOLDER
@click.option("--official", is_flag=True, help="Only the rules of the leaderboard's own validator.")
@json_option
def validate(folder: Path, official: bool, as_json: bool) -> None:
    """Name all faults of the submission in DIR at once: line, column, value and cure. Exits with 4 if there are any."""
    from neuco_extensions.geobench.validate import validate as check

    faults = check(folder, official=official)
    if as_json:
        echo_json([vars(fault) | {"where": fault.where} for fault in faults])
    else:
        for fault in faults:
            click.echo(clean(f"{fault.rule}: {fault}"))
    _refuse(faults, folder)
    if not as_json:
        click.echo("no faults" + (" by the official rules" if official else ""))


def _refuse(faults: Sequence[Fault], folder: Path) -> None:
    if faults:
        theirs = sum(fault.official for fault in faults)
        words = f"{counted(len(faults), 'fault')}, {theirs} of them by the leaderboard's own rules"
        raise DataError(words, where=folder)


@geobench.command(name="import")
@FOLDER
@click.option("--id", "name", default="", help="Name in the registry; that of the folder if left out.")
@click.option("--title", default="", help="How people call it.")
@click.option("--source", default="", help="Where the numbers come from.")
def import_folder(folder: Path, name: str, title: str, source: str) -> None:
    """Put the submission in DIR into the registry, as one directory of its own."""
    from neuco_extensions.geobench.exchange import from_folder
    from neuco_extensions.geobench.folder import read_folder
    from neuco_extensions.geobench.submission import submissions_dir, write_submission

    name = name or re.sub(r"[^a-z0-9_-]+", "-", folder.resolve().name.lower()).strip("-_")
    if (submissions_dir(registry_dir()) / name).exists():
        hint = "Choose another --id, or remove the old one"
        raise DataError("there is a submission of that name", where=submissions_dir(registry_dir()) / name, hint=hint)
    submission = from_folder(folder, name, title=title, source=source)
    written = write_submission(registry_dir(), submission)
    click.echo(f"{written}: {_size(submission)}")
    if further := read_folder(folder).further:
        click.echo(f"left out, since the leaderboard does not read them: {join_names(further, 20)}")


def _size(submission: Submission) -> str:
    datasets = {own.dataset for own in submission.runs}
    runs = sum(len(own.scores) for own in submission.runs)
    return (
        f"{counted(len(submission.backbones), 'backbone')}, {counted(len(datasets), 'dataset')}, {counted(runs, 'run')}"
    )


def _known(name: str) -> Submission:
    from neuco_core.errors import UnknownIdError
    from neuco_extensions.geobench.submission import list_submissions

    known = {item.about.id: item for item in list_submissions(registry_dir())}
    if name not in known:
        raise UnknownIdError("submission", name, known)
    return known[name]


@geobench.command(name="list")
@json_option
def list_all(as_json: bool) -> None:
    """List the submissions of the registry."""
    from neuco_extensions.geobench.submission import list_submissions

    found = list_submissions(registry_dir())
    rows = [
        (s.about.id, s.about.tuning, len(s.backbones), len({r.dataset for r in s.runs}), s.about.title) for s in found
    ]
    names = ("id", "tuning", "backbones", "datasets", "title")
    if as_json:
        echo_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    click.echo(table(("submission", *names[1:]), [[str(value) for value in row] for row in rows], right={2, 3}))


@geobench.command()
@click.argument("submission", required=False)
@click.option(
    "--tuned", type=click.Path(file_okay=False, path_type=Path), help="What `geobench tune --out` has written."
)
@click.option("--as", "named", multiple=True, metavar="TASK=DATASET", help="Which dataset of GEO-Bench a task is.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="A new folder.")
def export(submission: str | None, tuned: Path | None, named: Sequence[str], out: Path) -> None:
    """Write SUBMISSION, a name in the registry, or what was tuned, as the folder that the leaderboard takes."""
    from neuco_core.errors import UsageError
    from neuco_extensions.geobench.exchange import to_folder
    from neuco_extensions.geobench.tuned import read_all_tuned, submission_of

    if (submission is None) == (tuned is None):
        raise UsageError("name either a submission or --tuned FOLDER")
    if tuned is not None:
        datasets = dict(pair.partition("=")[::2] for pair in named)
        found = submission_of(read_all_tuned(tuned), "tuned", datasets=datasets)
    else:
        found = _known(str(submission))
    to_folder(found, out)
    click.echo(f"{out}: {_size(found)}")


@geobench.command()
@click.option("--capability", default="", metavar="NAME", help="Rank by this one, e.g. detection; Core if left out.")
@click.option("--aggregation", type=click.Choice(["pooled", "mean"]), default="pooled", show_default=True)
@click.option("--tuning", type=click.Choice(["all", "frozen", "full_ft"]), default="all", show_default=True)
@click.option("--decoder", default="all", show_default=True, help="Only rows with this decoder, e.g. UNet.")
@click.option("--at-least", "smallest", type=int, default=0, metavar="M", help="Millions of parameters.")
@click.option("--at-most", "largest", type=int, default=0, metavar="M", help="Millions of parameters.")
@click.option("--with", "folders", multiple=True, type=click.Path(path_type=Path), metavar="DIR", help=WITH)
@json_option
def board(capability: str, folders: Sequence[Path], as_json: bool, **options: str | int) -> None:
    """Print the board of all submissions; `neuco leaderboard show geobench-2 --details` tells more of it."""
    from neuco_core.boards.model import plain
    from neuco_extensions.geobench.exchange import from_folder
    from neuco_extensions.geobench.published import of_submissions
    from neuco_extensions.geobench.submission import list_submissions

    yours = [from_folder(folder, f"yours-{number}") for number, folder in enumerate(folders, 1)]
    published = of_submissions([*list_submissions(registry_dir()), *yours])
    if published is None:
        raise DataError("there is no submission", where=registry_dir(), hint="See `neuco geobench import --help`")
    ranked = published.board({**options, "by": _key(capability)})
    if as_json:
        echo_json(plain(ranked))
    else:
        _print_board(ranked)


def _print_board(board: Board) -> None:
    """Without the datasets, and with the interval of the capability that it ranks by alone: that fits a terminal."""
    from neuco_core.boards.formatting import show
    from neuco_core.boards.report import notes, place

    leading, others = board.columns[:2], board.columns[2:]
    heads = ("Rank", "Method", *(column.label for column in board.columns))
    rows = [(*place(row, leading), *(show(c, row.values.get(c.key)) for c in others)) for row in board.shown]
    click.echo(table(heads, rows, right=set(range(len(heads))) - {1}))
    for part in board.sections:
        if part.about == "column" and part.title == leading[-1].label:
            click.echo(clean(part.lead))
    for note in notes(board):
        if note.startswith(("Ranking:", "Intervals:", "Not ranked:", "Left out")):
            click.echo(clean(note))


def _key(capability: str) -> str:
    """A capability by the beginning of its name."""
    from neuco_core.errors import UnknownIdError
    from neuco_extensions.geobench.board import slug
    from neuco_extensions.geobench.facts import CAPABILITIES

    known = [slug(name) for name in (*CAPABILITIES, "Overall")]
    found = [key for key in known if key.startswith(slug(capability))] if capability else [""]
    if len(found) != 1:
        raise UnknownIdError("capability", capability, known)
    return found[0]


@geobench.command()
@click.argument("suite", shell_complete=ids_of("suite"))
@click.option("--id", "name", required=True, metavar="NAME", help="Its name, with a version: olinda-v1.")
def normaliser(suite: str, name: str) -> None:
    """Pin what becomes 0 and 1 on each task of SUITE: the least and the largest score of a split in the records.

    A suite of the kind "geobench" names it as its option `normaliser`. It is written once and never changed.
    """
    import msgspec

    from neuco_core.boards.cells import from_records
    from neuco_core.boards.from_registry import current
    from neuco_core.files import write_atomic
    from neuco_core.jsonio import dump
    from neuco_extensions.geobench.normaliser import folders, made_of

    now = current(registry_dir())
    (chosen,) = now.choose([suite])
    cells = from_records(now.records, chosen, now.why_stale)
    scores: dict[str, list[float]] = {}
    for (_, task), cell in cells.cells.items():
        scores.setdefault(task, []).extend(value for value in cell.splits if cell.scored and value is not None)
    path = folders()[0] / f"{name}.json"
    if path.exists():
        raise DataError("there is a normaliser of that name", where=path, hint="Raise the version in its --id")
    if missing := sorted(task for task in chosen.tasks if len(set(scores.get(task, ()))) < 2):
        raise DataError("tasks without scores to normalise by", where=suite, got=", ".join(missing))
    methods = [method.id for method in cells.methods]
    made = made_of(name, scores, methods, f"records of the suite {suite}, version {chosen.version}")
    write_atomic(path, dump(msgspec.to_builtins(made)))
    click.echo(f"{path}: {counted(len(made.ends), 'task')}, {counted(len(methods), 'method')}")


@geobench.command(name="table")
@click.argument("submission")
@click.option("--capability", default="Core", show_default=True, help="One of the nine, or 'all'.")
@json_option
def show_table(submission: str, capability: str, as_json: bool) -> None:
    """Print capability scores of SUBMISSION: the leaderboard's own with its ±, and ours with the standard error."""
    from neuco_core.errors import UnknownIdError
    from neuco_extensions.geobench.facts import CAPABILITIES
    from neuco_extensions.geobench.normaliser import GEOBENCH, load_normaliser
    from neuco_extensions.geobench.tables import capability_table

    if capability not in ("all", *CAPABILITIES):
        raise UnknownIdError("capability", capability, CAPABILITIES)
    chosen = dict(CAPABILITIES) if capability == "all" else {capability: CAPABILITIES[capability]}
    found = capability_table(_known(submission), load_normaliser(GEOBENCH), chosen)
    rows = [(cap, backbone, pair) for backbone, own in found.items() for cap, pair in own.items()]
    rows.sort(key=lambda row: (list(chosen).index(row[0]), -row[2].official))
    if as_json:
        echo_json([
            {"capability": cap, "backbone": backbone, "official": pair.official, "official_error": pair.official_error,
             "score": pair.ours.value, "error": pair.ours.error, "low": pair.ours.low, "high": pair.ours.high}
            for cap, backbone, pair in rows
        ])  # fmt: skip
        return
    heads = ("capability", "backbone", "official", "± official", "ours", "SE", "95 %")
    cells = [
        [cap, backbone, f"{p.official:.4f}", f"{p.official_error:.4f}", f"{p.ours.value:.4f}", f"{p.ours.error:.4f}",
         f"{p.ours.low:.3f}–{p.ours.high:.3f}"]
        for cap, backbone, p in rows
    ]  # fmt: skip
    click.echo(table(heads, cells, right=range(2, 7)))
    for backbone in (backbone for backbone, own in found.items() if len(own) < len(chosen)):
        missing = [cap for cap in chosen if cap not in found[backbone]]
        click.echo(f"{backbone} lacks datasets of {join_names(missing, 9)}")
