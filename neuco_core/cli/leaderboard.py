"""``neuco leaderboard``: show, build, check, compare and publish the boards of suites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import click

from neuco_core.boards import report
from neuco_core.boards.diff import changes
from neuco_core.boards.facts import extra_cells, filled
from neuco_core.boards.formatting import nobody
from neuco_core.boards.formatting import show as show_value
from neuco_core.boards.model import Board, ExtraCells, Section, plain
from neuco_core.boards.published import list_published
from neuco_core.boards.store import (
    board_layer,
    board_path,
    check_board,
    current,
    keep_hint,
    lost_methods,
    orphans,
    read_board,
    stored_board,
    would_lose,
    write_board,
)
from neuco_core.boards.trial_rank import rank_on
from neuco_core.cli.options import ids_of, split_commas
from neuco_core.cli.output import clean, echo_data, echo_json, json_option, json_text, say, table, warn_of_suites
from neuco_core.cli.score_show import answer_form, describe
from neuco_core.env import layers, registry_dir, require_registry
from neuco_core.errors import DataError, NeucoError, UnknownIdError, UsageError
from neuco_core.fetch.links import without_labels
from neuco_core.figures import write_figure
from neuco_core.plugins.catalog import catalog, list_tasks
from neuco_core.runs.files import ALLOW, find_files
from neuco_core.specs import Method, Suite
from neuco_core.text import common_prefix, counted

FIGURES = ("differences", "profiles", "scatter")
SUFFIXES = {".tex": "latex", ".md": "md", ".csv": "csv", ".json": "json"}
WRITERS = {"md": report.to_markdown, "csv": report.to_csv, "latex": report.to_latex}
SUITES = click.argument("suites", nargs=-1, metavar="[SUITE]…", shell_complete=ids_of("suite"))


@click.group()
def leaderboard() -> None:
    """Rank methods: boards of suites from the registry's records."""
    require_registry()


@leaderboard.command(name="list")
@json_option
def list_boards(as_json: bool) -> None:
    """List the boards: those of suites, and published ones."""
    registry, (suites, _) = registry_dir(), catalog().survey_suites()
    names = ("id", "kind", "from", "tasks", "methods", "title")
    rows = [(s.id, s.kind, "suite", len(s.tasks), _ranked(registry, s.id), s.title) for s in suites.values()]
    rows += [(p.id, p.kind, "publication", len(p.tasks), len(p.rows), p.title) for p in list_published(registry)]
    warn_of_suites()
    if as_json:
        echo_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    cells = [[str(value) if value is not None else "not built" for value in row] for row in rows]
    click.echo(table(("board", *names[1:]), cells, right={3, 4}, drop=(2, 1, 3)))


def _ranked(registry: Path, suite: str) -> int | str | None:
    """How many methods a board ranks; a board that cannot be read does not hide the others."""
    try:
        built = any(board_path(layer, suite).exists() for layer in layers(registry))
        return len(stored_board(registry, suite).ranked) if built else None
    except DataError:
        return "unreadable"


@leaderboard.command()
@SUITES
@click.option(
    "--drop", multiple=True, metavar="METHOD", callback=split_commas, help="May leave its boards; repeatable."
)
def build(suites: Sequence[str], drop: Sequence[str]) -> None:
    """Build boards from the records and write them where scores are written; without SUITE, all of them.

    In a checkout that is .neuco, which git ignores; NEUCO_REGISTRY=registry builds those that everybody sees. A board
    that would lose a ranked method stays as it is, and the exit code is 4, unless --drop names that method.
    """
    computed, problems = _computed(suites)
    known = set(catalog().all(Method))
    for suite, _ in computed:
        with suppress(DataError):
            known |= {row.method for row in stored_board(registry_dir(), suite.id).rows}
    for name in drop:
        if name not in known:
            raise UnknownIdError("method", name, known, "See `neuco methods`")
    for suite, board in computed:
        if lost := lost_methods(registry_dir(), board, drop):
            click.echo(clean(f"{suite.id}: not written, {would_lose(lost)}"), err=True)
            _show_versions(suite)
            problems.append(DataError(f"board {suite.id} would lose methods and stays", hint=keep_hint(suite.id)))
            continue
        changes_made = write_board(registry_dir(), board)
        path = board_path(board_layer(registry_dir(), suite.id), suite.id)
        click.echo(f"{suite.id}: {'written' if changes_made else 'unchanged'}, {path}")
        for line in changes_made:
            click.echo(f"  {line}")
    if problems:
        raise problems[0]


def _show_versions(suite: Suite) -> None:
    """The lines that register both versions of a task, of which a suite compares one and only the other is there."""
    for task_id, version in suite.tasks.items():
        task = catalog().plugins.find("task", task_id)
        if task is not None and not catalog().plugins.find("task", f"{task_id}@{version}"):
            click.echo(f"  The suite compares {task_id}@{version}. Register both versions:", err=True)
            click.echo(f"    first = Task(id={task_id!r}, version={version}, …)  # as it was", err=True)
            click.echo("    yield first", err=True)
            click.echo(f"    yield replace(first, version={task.version}, …)  # what changed", err=True)


@leaderboard.command()
@SUITES
def check(suites: Sequence[str]) -> None:
    """Fail if a board in the registry is not, byte for byte, what the records give; without SUITE, check all.

    Scores of your own do not count for a board that was built without them.
    """
    computed, problems = _computed(suites, as_stored=True)
    if not suites:
        for path in orphans(registry_dir(), [name for by_id in catalog().survey_suites() for name in by_id]):
            problems.append(DataError("no suite has this board", where=path, hint="Remove it, or add its suite"))
            click.echo(clean(str(problems[-1])), err=True)
    for suite, board in computed:
        try:
            check_board(registry_dir(), board)
            click.echo(f"{suite.id}: is what the records give, {counted(len(board.ranked), 'method')} ranked")
        except DataError as error:
            problems.append(error)
            click.echo(clean(f"{suite.id}: {error}"), err=True)
    if problems:
        verb = "is" if len(problems) == 1 else "are"
        raise DataError(f"{counted(len(problems), 'board')} {verb} out of date", hint=problems[0].hint)


@leaderboard.command()
@click.argument("old", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("new", type=click.Path(dir_okay=False, path_type=Path), required=False)
@json_option
def diff(old: Path, new: Path | None, as_json: bool) -> None:
    """List what changed from board OLD to board NEW, and why; both are files.

    Without NEW, OLD is compared with what the records give now.
    """
    before = read_board(old)
    after = read_board(new) if new else one_board(before.about.id, {})
    differences = changes(before, after)
    if as_json:
        echo_json(plain(differences))
    else:
        click.echo("\n".join(map(str, differences)) or "nothing changed")


@leaderboard.command()
@click.argument("name", metavar="BOARD", shell_complete=ids_of("suite"))
@click.option("--kind", type=click.Choice(FIGURES), default=FIGURES[0], show_default=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="An .svg file.")
def plot(name: str, kind: str, out: Path) -> None:
    """Write a figure of a board's page as a file: ranks with their groups, profiles over the tasks, Q against size."""
    from neuco_core.site.write import board_figure, standalone  # heavy: only the site and plots need figures

    if out.suffix.lower() != ".svg":
        raise UsageError("not a figure format", where=out, expected=".svg", got=out.suffix or "no suffix")
    drawing = board_figure(kind, one_board(name, {}))
    if drawing is None:
        raise UsageError("nothing to draw", where=out, hint="No method is ranked, or the board has no such columns")
    write_figure(out, standalone(drawing).encode())
    click.echo(str(out))


@leaderboard.command()
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="A folder.")
@SUITES
def site(out: Path, suites: Sequence[str]) -> None:
    """Write the boards as a static web site that works from a file: those of SUITEs, or all and the published ones."""
    from neuco_core.site import page_data, write  # heavy: only the site needs templates and figures

    pages = write.write_site(page_data.gather(registry_dir(), suites), out)
    click.echo(f"{counted(pages, 'page')}: open {out / 'index.html'}")


def _computed(names: Sequence[str], *, as_stored: bool = False) -> tuple[list[tuple[Suite, Board]], list[NeucoError]]:
    """The boards of suites. One that cannot be computed is reported and is a problem, and the others go on.

    With ``as_stored``, each is made of the records of the registry that has it, and of those below.
    """
    now = current(registry_dir())
    if not names and all(suite.living for suite in now.suites.values()):  # nothing to do is not "all is well"
        hint = "Set NEUCO_REGISTRY to a registry, or leave it out for the one that ships"
        raise DataError("no suite here", where=registry_dir() / "suites", hint=hint)
    by_layer = {layers(registry_dir())[0]: now}
    boards = []
    problems = [] if names else [*now.bad.values()]
    for suite in now.choose(names):
        try:
            layer = board_layer(registry_dir(), suite.id) if as_stored else layers(registry_dir())[0]
            if layer not in by_layer:
                by_layer[layer] = current(registry_dir(), layer)
            boards.append((suite, by_layer[layer].board(suite)))
        except NeucoError as error:
            problems.append(error)
            click.echo(clean(f"{suite.id}: {error}"), err=True)
    return boards, problems


@leaderboard.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, metavar="BOARD [--OPTION VALUE]…", shell_complete=ids_of("suite"))
@click.option("--format", "form", type=click.Choice(["table", "md", "csv", "json", "latex"]), help="[default: table]")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it to this .tex, .md, .csv or .json file, too; the table is printed all the same.",
)
@click.option(
    "--columns",
    multiple=True,
    metavar="KEY|TASK|GLOB",
    callback=split_commas,
    help="Show these columns and tasks only, e.g. mean_q,mini_*; repeatable. Markdown, CSV and LaTeX, too.",
)
@click.option("--values", default="", metavar="KEY", help="What stands under each task, e.g. q or rank.")
@click.option(
    "--only",
    multiple=True,
    metavar="GLOB",
    callback=split_commas,
    help="Rank these methods only; repeatable, or separated by commas.",
)
@click.option("--kind", default="", metavar="KIND", help="Rank the suite by another kind of board.")
@click.option(
    "--with",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    callback=lambda ctx, param, names: tuple(find_files(names)),
    help="Score this file (or pattern, or folder) of embeddings, too, and show where it would stand. Not recorded.",
)
@click.option(ALLOW, is_flag=True, help="Rank a file although a column of it is the label of a task.")
@click.option("--estimated", is_flag=True, help="Fill empty cells with estimates, which are marked and never rank.")
@click.option("--details", is_flag=True, help="Below the table: groups, other rules, the tasks, and all remarks.")
@json_option
def show(
    arguments: Sequence[str],
    form: str | None,
    out: Path | None,
    columns: Sequence[str],
    values: str,
    only: Sequence[str],
    kind: str,
    files: Sequence[Path],
    allow_labels: bool,
    estimated: bool,
    details: bool,
    as_json: bool,
) -> None:
    """Compute and print a board: that of a suite, or a published one (see `neuco leaderboard list`).

    Any other --OPTION VALUE is an option of the board's kind, which `neuco show KIND` lists: e.g. --weights equal.
    """
    answer = answer_form(form, as_json, out, SUFFIXES)
    form = answer.form
    if columns and form == "json":
        raise UsageError("JSON has every column", got="--columns", hint="Leave it out, or choose another form")
    if details and form != "table":
        raise UsageError("--details is for the terminal", hint="Leave out --format; --format json has it all")
    if estimated and form == "csv":
        hint = "Use --format json, whose cells have a status"
        raise UsageError("CSV cannot mark an estimate as one", got="--estimated", hint=hint)
    name, options = _parse(arguments)
    yours: dict[str, object] = {}
    notes: Sequence[str] = ()
    if files:
        if kind:
            raise UsageError("--with places a file on the suite's own board", hint="Leave out --kind")
        standing = rank_on(
            name,
            *files,
            options=options,
            only=only,
            on_record=lambda record: click.echo(describe(record), err=True),
            allow_labels=allow_labels,
        )
        board, notes = standing.board, standing.notes
        yours = {"yours": [place.to_json() for place in standing.places]}
    else:
        board = one_board(name, options, only, kind)
    extra = extra_cells(board) if estimated else None
    if extra is not None:
        board = filled(board, extra)
    elif estimated:
        click.echo("no estimates: no cell is empty, or too few scores are known", err=True)
    grid = report.grid(board, values, notes, columns)
    text = json_text(plain(board) | yours) if form == "json" else WRITERS[form](grid) if form != "table" else ""
    if text and out is None:
        echo_data(text)
        return
    print_board(board, grid, details=details)
    if extra is not None:
        _print_estimates(board, extra)
    answer.write(text)


def _print_estimates(board: Board, extra: ExtraCells) -> None:
    say("Estimated")
    say(extra.about)
    score = board.cell_columns[0]
    estimates = [
        [method, task, show_value(score, cell.values[score.key]), show_value(score, cell.intervals.get(score.key))]
        for (method, task), cell in extra.cells.items()
    ]
    click.echo(table(("Method", "Task", "Estimate", "95 % interval"), estimates, {2, 3}, drop=(3, 2, 1)))


def _parse(arguments: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The board's name, and options of its kind: --name value or --name=value."""
    names, options, rest = [], {}, iter(arguments)
    for argument in rest:
        if not argument.startswith("--"):
            names.append(argument)
            continue
        key, equals, value = argument[2:].partition("=")
        options[key] = value if equals else next(rest, "")
        if not options[key]:
            raise UsageError(f"--{key} needs a value")
    if len(names) != 1:
        raise UsageError("name one board", got=" ".join(names) or "none", hint="See `neuco leaderboard list`")
    return names[0], options


def one_board(name: str, options: Mapping[str, str], only: Sequence[str] = (), kind: str = "") -> Board:
    """A suite's board, or a published one. Another ``kind`` does not know the options of the suite's own."""
    published = {item.id: item for item in list_published(registry_dir())}
    if name not in published:
        suites, bad = catalog().survey_suites()
        if name in bad:
            raise bad[name]
        if name not in suites:
            raise UnknownIdError("board", name, [*suites, *published], "See `neuco leaderboard list`")
        suite = replace(suites[name], kind=kind, options={}) if kind else suites[name]
        return current(registry_dir()).board(suite, options, only)
    if only or kind:
        raise UsageError("a published board keeps its kind and methods", where=name, hint="Leave out --only and --kind")
    return published[name].board(options)


def print_board(board: Board, grid: report.Grid, *, details: bool = False) -> None:
    """The title, the table and what must be said below it; what would take more than a line is in the details."""
    title, name = board.about.title, board.about.id
    say(f"{title} ({name})" if title else name)
    if not board.rows and board.suite:
        suite, task_ids = board.suite.id, {task.id for task in board.tasks}
        sentence = nobody(board)
        if without_labels(list_tasks(*task_ids)):
            sentence = f"No scores yet. The labels are not on this machine: `neuco data pin --suite {suite}`."
        others = [item.id for item in list_published(registry_dir()) if task_ids <= {*item.tasks}]
        commands = ", ".join(f"`neuco leaderboard show {name}`" for name in others)
        say(sentence + (f" Published results: {commands}." if commands else ""))
        return
    right, prefix = set(range(len(grid.headers))) - {1}, common_prefix([task.id for task in board.tasks])
    click.echo(table(grid.headers, grid.rows, right, drop=grid.drop, prefix=prefix, strong=grid.best))
    for note in grid.brief:
        say(note)
    for section in report.details(board) if details else ():
        click.echo()
        print_section(board, section)
    if details and board.suite and (not_compared := current(registry_dir()).not_compared):
        say(not_compared)


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
