"""``neuco leaderboard``: build, check, compare and publish the boards of suites; ``leaderboard_show`` prints them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from neuco_core.boards.diff import changes
from neuco_core.boards.from_registry import current
from neuco_core.boards.model import Board, plain
from neuco_core.boards.published import list_published
from neuco_core.boards.store import board_path, check_board, orphans, read_board, stored_board, write_board
from neuco_core.cli.leaderboard_show import one_board, show
from neuco_core.cli.options import ids_of
from neuco_core.cli.output import clean, echo_json, json_option, table, warn_of_suites
from neuco_core.errors import DataError, NeucoError, UsageError
from neuco_core.files import write_atomic
from neuco_core.paths import layers, registry_dir
from neuco_core.plugins.catalog import catalog
from neuco_core.specs import Suite
from neuco_core.text import counted

FIGURES = ("differences", "profiles", "scatter")
SUITES = click.argument("suites", nargs=-1, metavar="[SUITE]…", shell_complete=ids_of("suite"))


@click.group()
def leaderboard() -> None:
    """Rank methods: boards of suites from the registry's records."""


leaderboard.add_command(show)


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
def build(suites: Sequence[str]) -> None:
    """Build boards from the records and write them to the registry; without SUITE, all of them."""
    problems: list[NeucoError] = []
    for suite, board in _computed(suites, problems):
        changes_made = write_board(registry_dir(), board)
        click.echo(f"{suite.id}: {'written' if changes_made else 'unchanged'}, {board_path(registry_dir(), suite.id)}")
        for line in changes_made:
            click.echo(f"  {line}")
    if problems:
        raise problems[0]


@leaderboard.command()
@SUITES
def check(suites: Sequence[str]) -> None:
    """Fail if a board in the registry is not, byte for byte, what the records give; without SUITE, check all."""
    problems: list[NeucoError] = []
    computed = _computed(suites, problems)
    if not suites:
        for path in orphans(registry_dir(), [name for known in catalog().survey_suites() for name in known]):
            problems.append(DataError("no suite has this board", where=path, hint="Remove it, or add its suite"))
            click.echo(clean(str(problems[-1])), err=True)
    for suite, board in computed:
        try:
            check_board(registry_dir(), board)
        except DataError as error:
            problems.append(error)
            click.echo(clean(f"{suite.id}: {error}"), err=True)
        else:
            click.echo(f"{suite.id}: is what the records give, {counted(len(board.ranked), 'method')} ranked")
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
    after = read_board(new) if new else _computed([before.about.id])[0][1]
    found = changes(before, after)
    if as_json:
        echo_json(plain(found))
    else:
        click.echo("\n".join(map(str, found)) or "nothing changed")


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
    try:
        write_atomic(out, standalone(drawing).encode())
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"the figure cannot be written: {reason}", where=out, hint="Choose another path") from error
    click.echo(str(out))


@leaderboard.command()
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="A folder.")
@click.option(
    "--address", default="", help="Where the site will be, https://…: links to a board then show a picture of it."
)
@SUITES
def site(out: Path, address: str, suites: Sequence[str]) -> None:
    """Write the boards as a static web site that works from a file: those of SUITEs, or all and the published ones."""
    # heavy: only the site needs templates and figures
    from neuco_core.site.page_data import gather
    from neuco_core.site.write import write_site

    pages = write_site(gather(registry_dir(), suites), out, address)
    click.echo(f"{counted(pages, 'page')}: open {out / 'index.html'}")


def _computed(names: Sequence[str], problems: list[NeucoError] | None = None) -> list[tuple[Suite, Board]]:
    """The boards of suites. One that cannot be computed is reported and put into ``problems``, and the others go on."""
    now = current(registry_dir())
    if not now.suites:  # nothing to do is not the same as all is well
        hint = "Set NEUCO_REGISTRY to a registry, or leave it out for the one that ships"
        raise DataError("there is no suite here", where=registry_dir() / "suites", hint=hint)
    boards = []
    if problems is not None and not names:
        problems += now.bad.values()
    for suite in now.choose(names):
        try:
            boards.append((suite, now.board(suite)))
        except NeucoError as error:
            if problems is None:
                raise
            problems.append(error)
            click.echo(clean(f"{suite.id}: {error}"), err=True)
    return boards
