"""``neuco predict``: predict the scores that nobody has run, and say which to run next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neuco_core.cli import CommandTable
from neuco_core.cli.output import json_option

if TYPE_CHECKING:
    from neuco_extensions.predict.predictor import Predictor
    from neuco_extensions.predict.table import Table

COMMANDS = {
    "encoders": "neuco_extensions.predict.command_evaluate:encoders",
    "evaluate": "neuco_extensions.predict.command_evaluate:evaluate",
    "fit": "neuco_extensions.predict.command_model:fit",
    "map": "neuco_extensions.predict.command_model:map_",
    "fill": "neuco_extensions.predict.command_model:fill",
    "suggest": "neuco_extensions.predict.command:suggest",
}
source_argument = click.argument("source", metavar="BOARD|FILE|paper")
least_option = click.option(
    "--least", type=click.IntRange(min=1), default=1, show_default=True, help="Leave out who has fewer results."
)
model_option = click.option(
    "--model",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What `neuco predict fit` kept, instead of a fit.",
)


class Predict(CommandTable):
    table = COMMANDS


@click.group(cls=Predict)
def predict() -> None:
    """Predict the scores that nobody has run, from those of a board or of a CSV file.

    A file has the columns method, task and score, or a row per method and a column per task. `paper` is the table of
    the capabilities-encoding paper, which is fetched from its authors.
    """


@predict.command()
@source_argument
@least_option
@click.option("--method", help="Tasks for this method; without it, results of any method that settle the ranking.")
@click.option("--new", is_flag=True, help="The method has no result yet.")
@click.option("--number", type=click.IntRange(min=1), default=3, show_default=True, help="How many.")
@click.option("--width", type=click.IntRange(min=1), help="So many that the method's rank is within this many places.")
@model_option
@json_option
def suggest(
    source: str,
    least: int,
    method: str | None,
    new: bool,
    number: int,
    width: int | None,
    model: Path | None,
    as_json: bool,
) -> None:
    """Which tasks to run next for a method: those that tell most about the others."""
    from neuco_core.errors import UsageError
    from neuco_extensions.predict.command_suggest import for_method, for_ranking

    if method is None and (new or width):
        raise UsageError("--new and --width are about a method", hint="Add --method")
    known, lower = open_source(source, least)
    if method is not None and new:
        known = known.with_method(method)
    elif method is not None:
        known_methods([method], known)
    fitted = fitted_on(known, model)
    if method is None:
        for_ranking(fitted, number, as_json)
    else:
        for_method(fitted, method, number, width, lower, as_json)


def open_table(source: str, least: int) -> Table:
    return open_source(source, least)[0]


def open_source(source: str, least: int) -> tuple[Table, frozenset[str]]:
    """The table, in which higher is better, and the tasks whose scores were turned for that."""
    found, lower = _unfiltered(source)
    return found.filtered(least) if least > 1 else found, lower


def as_scored(score: float, low: float, high: float, turned: bool) -> tuple[float, float, float]:
    """A prediction and its interval as the task's own scores are, where lower is better."""
    return (-score, -high, -low) if turned else (score, low, high)


def _unfiltered(source: str) -> tuple[Table, frozenset[str]]:
    """A file if there is one of that name, the table of the paper, else a board. Of the first two higher is better."""
    from neuco_core.cli.leaderboard_show import one_board
    from neuco_extensions.predict.paper import NAME, fetch_paper
    from neuco_extensions.predict.read import from_board, read_table

    path = Path(source)
    if path.is_file() or path.suffix.lower() == ".csv":
        return read_table(path), frozenset()
    if source == NAME:
        return fetch_paper(), frozenset()
    board = one_board(source, {})
    return from_board(board), frozenset(task.id for task in board.tasks if not task.greater_is_better)


def fitted_on(known: Table, model: Path | None) -> Predictor:
    """The predictor that was kept, or one that is fitted now."""
    from neuco_extensions.predict.kept import restore
    from neuco_extensions.predict.predictor import Predictor

    return restore(model, known) if model else Predictor().fit(known)


def known_methods(given: Sequence[str], known: Table) -> list[str]:
    """Methods by name, several separated by commas. In a file a name may have commas itself."""
    from difflib import get_close_matches

    from neuco_core.errors import UsageError

    names = [name for text in given for name in ([text] if text in known.methods else _split(text))]
    for name in names:
        if name not in known.methods:
            close = get_close_matches(name, known.methods)
            hint = f"Did you mean {' or '.join(close)}?" if close else "`suggest --new` is for a method without results"
            raise UsageError(f"no result of a method {name!r}", where="table of results", hint=hint)
    return names


def _split(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]
