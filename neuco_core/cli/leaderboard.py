"""``neuco leaderboard``: build, show, check, compare and publish the boards of suites."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from neuco_core.cli.complete import ids_of
from neuco_core.cli.output import clean, echo_json, json_option, table

if TYPE_CHECKING:
    from neuco_core.boards.build import Board
    from neuco_core.boards.published import Published
    from neuco_core.boards.stats.ranking import Rule
    from neuco_core.specs import Suite

F = TypeVar("F", bound=Callable[..., Any])
SUITES = click.argument("suites", nargs=-1, metavar="[SUITE]…", shell_complete=ids_of("suite"))


@click.group()
def leaderboard() -> None:
    """Rank methods: boards of suites from the registry's records."""


@leaderboard.command(name="list")
@json_option
def list_boards(as_json: bool) -> None:
    """List the boards: those of suites, and published ones."""
    from neuco_core.boards.published import list_published
    from neuco_core.boards.store import board_path
    from neuco_core.paths import registry_dir
    from neuco_core.plugins.catalog import list_suites

    registry = registry_dir()
    rows: list[dict[str, Any]] = []
    for suite in list_suites():
        path = board_path(registry, suite.id)
        ranked = _ranked(path)
        rows.append(
            {"id": suite.id, "kind": "suite", "tasks": len(suite.tasks), "methods": ranked, "title": suite.title}
        )
    for item in list_published(registry):
        size = {"tasks": len(item.tasks), "methods": len(item.rows)}
        rows.append({"id": item.id, "kind": "published", **size, "title": item.title})
    if as_json:
        echo_json(rows)
        return
    cells = [[str(v) if (v := row[key]) is not None else "not built" for key in row] for row in rows]
    click.echo(table(("board", "kind", "tasks", "methods", "title"), cells, right={2, 3}))


def _ranked(path: Path) -> int | str | None:
    """How many methods a board ranks; a board that cannot be read does not hide the others."""
    from neuco_core.boards.store import read_board
    from neuco_core.errors import DataError

    try:
        return len(read_board(path)["rows"]) if path.exists() else None
    except DataError:
        return "damaged"


@leaderboard.command()
@SUITES
def build(suites: Sequence[str]) -> None:
    """Build boards from the records and write them to the registry; without SUITE, all of them."""
    from neuco_core.boards.store import board_path, write_board
    from neuco_core.paths import registry_dir

    for suite, board in _computed(suites):
        said = write_board(registry_dir(), board)
        click.echo(f"{suite.id}: {'written' if said else 'unchanged'}, {board_path(registry_dir(), suite.id)}")
        for line in said:
            click.echo(f"  {line}")


@leaderboard.command()
@SUITES
def check(suites: Sequence[str]) -> None:
    """Fail if a board in the registry is not, byte for byte, what the records give; without SUITE, check all."""
    from neuco_core.boards.store import check_board, orphans
    from neuco_core.errors import DataError
    from neuco_core.paths import registry_dir

    problems = []
    computed = _computed(suites)
    if not suites:
        for path in orphans(registry_dir(), [suite.id for suite, _ in computed]):
            problems.append(DataError("no suite has this board", where=path, hint="Remove it, or add its suite"))
            click.echo(clean(str(problems[-1])), err=True)
    for suite, board in computed:
        try:
            check_board(registry_dir(), board)
        except DataError as error:
            problems.append(error)
            click.echo(clean(f"{suite.id}: {error}"), err=True)
        else:
            click.echo(f"{suite.id}: is what the records give, {len(board['rows'])} methods ranked")
    if problems:
        raise DataError(f"{len(problems)} file(s) not as they should be", hint=problems[0].hint)


def rule_options(command: F) -> F:
    """Options that make the ranking another one; the output says so."""
    for option in reversed(
        (
            click.option(
                "--weights",
                type=click.Choice(["all", "no-baselines", "equal"]),
                default="all",
                show_default=True,
                help="Whose spread weighs the tasks.",
            ),
            click.option(
                "--spread",
                type=click.Choice(["std", "robust"]),
                default="std",
                show_default=True,
                help="How spread is measured.",
            ),
            click.option("--ghost", type=float, default=0.0, help="Spread of a ghost task in which all have rank 0."),
            click.option(
                "--coverage",
                type=click.Choice(["complete", "common"]),
                default="complete",
                show_default=True,
                help="Rank complete methods, or all on the tasks that all have.",
            ),
        )
    ):
        command = option(command)
    return command


@leaderboard.command()
@click.argument("name", metavar="BOARD", shell_complete=ids_of("suite"))
@rule_options
@click.option("--format", "form", type=click.Choice(["table", "md", "csv", "json", "latex"]), default="table")
@click.option(
    "--values",
    type=click.Choice(["score", "q", "rank"]),
    default="score",
    show_default=True,
    help="What stands under each task.",
)
@click.option("--only", multiple=True, metavar="GLOB", help="Rank these methods only; repeatable.")
@click.option("--details", is_flag=True, help="Below the table: other rules, groups, who changes places, the tasks.")
def show(
    name: str,
    weights: str,
    spread: str,
    ghost: float,
    coverage: str,
    form: str,
    values: str,
    only: Sequence[str],
    details: bool,
) -> None:
    """Compute and print a board: that of a suite, or a published one (see `neuco leaderboard list`)."""
    from neuco_core.boards.stats.ranking import Rule
    from neuco_core.boards.views import report
    from neuco_core.boards.views.details import details as report_details
    from neuco_core.errors import UsageError

    if details and form != "table":
        raise UsageError("--details is for the terminal", hint="Leave out --format; --format json has it all")
    if weights == "equal" and spread != "std":
        raise UsageError("equal weights have no spread to measure", hint="Leave out --spread, or --weights equal")
    board, titles = _one(name, Rule(weights, spread, ghost), coverage, only)
    if form == "json":
        echo_json(board)
        return
    grid = report.grid(board, values, titles)
    if form == "table":
        click.echo(table(grid.headers, grid.rows, right=set(range(len(grid.headers))) - {1}))
        for note in grid.notes:
            click.echo(note)
        for section in report_details(board) if details else ():
            click.echo(f"\n{section.title}")
            click.echo(table(section.headers, section.rows, right=section.numbers))
        return
    write = {"md": report.to_markdown, "csv": report.to_csv, "latex": report.to_latex}[form]
    click.echo(write(grid), nl=False)


@leaderboard.command()
@click.argument("old", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("new", type=click.Path(dir_okay=False, path_type=Path), required=False)
@json_option
def diff(old: Path, new: Path | None, as_json: bool) -> None:
    """Say what changed from board OLD to board NEW, and why; both are files.

    Without NEW, OLD is compared with what the records give now.
    """
    from neuco_core.boards.history import changes
    from neuco_core.boards.store import read_board

    before = read_board(old)
    after = read_board(new) if new else _computed([before["suite"]["id"]])[0][1]
    found = changes(before, after)
    if as_json:
        echo_json([change.to_json() for change in found])
        return
    for change in found:
        click.echo(str(change))
    if not found:
        click.echo("nothing changed")


@leaderboard.command()
@click.argument("name", metavar="SUITE", shell_complete=ids_of("suite"))
@json_option
def history(name: str, as_json: bool) -> None:
    """List the versions of a suite's board, the newest last: what changed, and why."""
    from neuco_core.boards.history import Change
    from neuco_core.boards.store import history_path, read_history
    from neuco_core.errors import DataError, UnknownIdError
    from neuco_core.paths import registry_dir
    from neuco_core.plugins.catalog import Catalog

    suites = Catalog(registry=registry_dir()).suites()
    if name not in suites:
        raise UnknownIdError("suite", name, suites)
    path = history_path(registry_dir(), name)
    versions = read_history(path)
    if not versions:
        raise DataError("the board has no history yet", where=path, hint=f"Run `neuco leaderboard build {name}`")
    if as_json:
        echo_json(versions)
        return
    for entry in versions:
        click.echo(f"version {entry['version']}, {len(entry['ranks'])} methods ranked")
        for change in entry["changes"]:
            click.echo(f"  {Change(**change)}")


@leaderboard.command()
@click.argument("name", metavar="BOARD", shell_complete=ids_of("suite"))
@click.option("--kind", type=click.Choice(["heat", "differences", "bump"]), default="heat", show_default=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="An .svg or .png file.")
def plot(name: str, kind: str, out: Path) -> None:
    """Draw a board: heat map, differences with groups that cannot be told apart, or ranks over its versions."""
    from neuco_core.boards.stats.ranking import Rule
    from neuco_core.boards.store import history_path, read_history
    from neuco_core.boards.views.plots import draw
    from neuco_core.paths import registry_dir

    board, _ = _one(name, Rule(), "complete", ())
    draw(out, board, read_history(history_path(registry_dir(), name)) if kind == "bump" else (), kind)
    click.echo(str(out))


@leaderboard.command()
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="A folder; made if needed."
)
@SUITES
def site(out: Path, suites: Sequence[str]) -> None:
    """Write the boards as a static web site that works from a file: those of SUITEs, or all and the published ones."""
    from neuco_core.boards.views.site.source import gather
    from neuco_core.boards.views.site.write import write_site
    from neuco_core.paths import registry_dir

    pages = write_site(gather(registry_dir(), suites), out)
    click.echo(f"{pages} pages: open {out / 'index.html'}")


def _computed(names: Sequence[str]) -> list[tuple[Suite, Board]]:
    from neuco_core.boards.current import current
    from neuco_core.errors import DataError
    from neuco_core.paths import registry_dir

    now = current(registry_dir())
    if not now.suites:  # nothing to do is not the same as all is well
        hint = "Set NEUCO_REGISTRY to a registry, or leave it out for the one that ships"
        raise DataError("there is no suite here", where=registry_dir() / "suites", hint=hint)
    return [(suite, now.board(suite)) for suite in now.choose(names)]


def _one(name: str, rule: Rule, coverage: str, only: Sequence[str]) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """A suite's board, or a published one, and the titles of its methods."""
    from neuco_core.boards.current import current
    from neuco_core.boards.published import list_published
    from neuco_core.boards.stats.ranking import Rule
    from neuco_core.errors import UnknownIdError, UsageError
    from neuco_core.paths import registry_dir

    published: dict[str, Published] = {item.id: item for item in list_published(registry_dir())}
    if name not in published:
        now = current(registry_dir())
        if name not in now.suites:
            raise UnknownIdError("board", name, [*now.suites, *published], "See `neuco leaderboard list`")
        return now.board(now.suites[name], rule, coverage, only), {}
    if only or coverage != "complete":
        hint = "Leave out --only and --coverage"
        raise UsageError("a published board is ranked as it was published", where=name, hint=hint)
    if published[name].kind == "standings" and rule != Rule():
        hint = "Leave out --weights, --spread and --ghost"
        raise UsageError("only the places of this board are known, not the scores", where=name, hint=hint)
    return published[name].board(rule), published[name].titles
