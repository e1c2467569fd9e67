"""``neuco leaderboard show``: a board in a terminal or as a document, with files and estimates beside it if asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from neuco_core.boards import report
from neuco_core.boards.facts import as_section, extra_cells, filled
from neuco_core.boards.from_registry import current
from neuco_core.boards.model import Board, Section, plain
from neuco_core.boards.published import list_published
from neuco_core.boards.trial_rank import Standing, rank_on
from neuco_core.cli.options import ids_of
from neuco_core.cli.output import echo_json, json_option, say, table
from neuco_core.cli.score_show import describe
from neuco_core.errors import UnknownIdError, UsageError
from neuco_core.paths import registry_dir
from neuco_core.plugins.catalog import Catalog
from neuco_core.text import common_prefix


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, metavar="BOARD [--OPTION VALUE]…", shell_complete=ids_of("suite"))
@click.option("--format", "form", type=click.Choice(["table", "md", "csv", "json", "latex"]), default="table")
@click.option("--values", default="", metavar="KEY", help="What stands under each task, e.g. q or rank.")
@click.option("--only", multiple=True, metavar="GLOB", help="Rank these methods only; repeatable.")
@click.option("--kind", default="", metavar="KIND", help="Rank the suite by another kind of board.")
@click.option(
    "--with",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Score this file of embeddings, too, and show where it would stand; repeatable. Nothing is recorded.",
)
@click.option("--estimated", is_flag=True, help="Fill empty cells with estimates, which are marked and never rank.")
@click.option("--details", is_flag=True, help="Below the table: groups, other rules, the tasks, and all remarks.")
@json_option
def show(
    words: Sequence[str],
    form: str,
    values: str,
    only: Sequence[str],
    kind: str,
    files: Sequence[Path],
    estimated: bool,
    details: bool,
    as_json: bool,
) -> None:
    """Compute and print a board: that of a suite, or a published one (see `neuco leaderboard list`).

    Any other --OPTION VALUE is an option of the board's kind, which `neuco show KIND` lists: e.g. --weights equal.
    """
    form = "json" if as_json else form
    if details and form != "table":
        raise UsageError("--details is for the terminal", hint="Leave out --format; --format json has it all")
    if estimated and form == "csv":
        hint = "Use --format json, whose cells have a status"
        raise UsageError("CSV cannot mark an estimate as one", got="--estimated", hint=hint)
    name, options = _parse(words)
    if kind and files:
        raise UsageError("--with places a file on the suite's own board", hint="Leave out --kind")
    standing = _with(name, options, only, files) if files else None
    board = standing.board if standing else one_board(name, options, only, kind)
    board, estimates = _estimated(board) if estimated else (board, None)
    if form == "json":
        echo_json(plain(board) | ({"yours": [place.to_json() for place in standing.places]} if standing else {}))
        return
    grid = report.grid(board, values, standing.notes if standing else ())
    if form == "table":
        print_board(board, grid, details=details)
        if estimates:
            print_section(board, estimates)
        return
    write = {"md": report.to_markdown, "csv": report.to_csv, "latex": report.to_latex}[form]
    click.echo(write(grid), nl=False)


def _estimated(board: Board) -> tuple[Board, Section | None]:
    """The board with estimates in its empty cells, and a list of them with their intervals."""
    extra = extra_cells(board)
    if extra is None:
        click.echo("no estimates: no cell is empty, or too few scores are known", err=True)
        return board, None
    return filled(board, extra), as_section(board, extra)


def _parse(words: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The board's name, and options of its kind: --name value or --name=value."""
    names, options, rest = [], {}, iter(words)
    for word in rest:
        if not word.startswith("--"):
            names.append(word)
            continue
        key, given, value = word[2:].partition("=")
        options[key] = value if given else next(rest, "")
        if not options[key]:
            raise UsageError(f"--{key} needs a value")
    if len(names) != 1:
        raise UsageError("name one board", got=" ".join(names) or "none", hint="See `neuco leaderboard list`")
    return names[0], options


def one_board(name: str, options: Mapping[str, str], only: Sequence[str] = (), kind: str = "") -> Board:
    """A suite's board, or a published one. Another ``kind`` does not know the options of the suite's own."""
    published = {item.id: item for item in list_published(registry_dir())}
    if name not in published:
        suites, bad = Catalog(registry=registry_dir()).survey_suites()
        if name in bad:
            raise bad[name]
        if name not in suites:
            raise UnknownIdError("board", name, [*suites, *published], "See `neuco leaderboard list`")
        suite = replace(suites[name], kind=kind, options={}) if kind else suites[name]
        return current(registry_dir()).board(suite, options, only)
    if only or kind:
        raise UsageError("a published board keeps its kind and methods", where=name, hint="Leave out --only and --kind")
    return published[name].board(options)


def _with(suite: str, options: Mapping[str, str], only: Sequence[str], files: Sequence[Path]) -> Standing:
    """The board of a suite with files among its methods; each score is on_record when it is there."""
    if suite in {item.id for item in list_published(registry_dir())}:
        hint = "Name the board of a suite; see `neuco leaderboard list`"
        raise UsageError("a published board has no labels to score a file with", where=suite, hint=hint)

    return rank_on(
        suite, *files, options=options, only=only, on_record=lambda record: click.echo(describe(record), err=True)
    )


def print_board(board: Board, grid: report.Grid, *, details: bool = False) -> None:
    """The title, the table and what must be said below it; what would take more than a line is in the details."""
    title, name = board.about.title, board.about.id
    say(f"{title} ({name})" if title else name)
    right, prefix = set(range(len(grid.headers))) - {1}, common_prefix([task.id for task in board.tasks])
    click.echo(table(grid.headers, grid.rows, right, drop=grid.drop, prefix=prefix, strong=grid.best))
    for note in grid.brief:
        say(note)
    for section in report.details(board) if details else ():
        click.echo()
        print_section(board, section)


def print_section(board: Board, section: Section) -> None:
    say(section.title)
    if section.lead:
        say(section.lead)
    headers = [column.label for column in section.columns]
    if not section.rows:
        say(section.empty)
    elif any(headers):
        numbers = {i for i, column in enumerate(section.columns) if column.format not in report.TEXT}
        shown = report.lines(board, section)
        click.echo(table(headers, shown, numbers, drop=range(len(headers) - 1, 0, -1)))
    else:  # sentences
        for (sentence,) in section.rows:
            say(str(sentence))
