"""``neuco capabilities``: predict the scores that nobody has run, and say which to run next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neuco_core.cli.capabilities_evaluate import encoders, evaluate
from neuco_core.cli.options import split_commas
from neuco_core.cli.output import echo_json, json_option, say, table
from neuco_core.text import common_prefix, counted

if TYPE_CHECKING:
    from neuco_core.capabilities.table import Table

source_argument = click.argument("source", metavar="BOARD|FILE|paper")
least_option = click.option(
    "--least", type=click.IntRange(min=1), default=1, show_default=True, help="Leave out who has fewer results."
)


@click.group()
def capabilities() -> None:
    """Predict the scores that nobody has run, from those of a board or of a CSV file.

    A file has the columns method, task and score, or a row per method and a column per task. `paper` is the table of
    the capabilities-encoding paper, which is fetched from its authors.
    """


capabilities.add_command(encoders)
capabilities.add_command(evaluate)


@capabilities.command()
@source_argument
@least_option
@click.option("--method", "methods", multiple=True, callback=split_commas, help="Only these; repeatable.")
@json_option
def predict(source: str, least: int, methods: Sequence[str], as_json: bool) -> None:
    """The scores that are missing, each with an interval that is meant to hold it in 95 % of cases."""
    from neuco_core.capabilities.predictor import Predictor

    known = open_table(source, least)
    fitted = Predictor().fit(known)
    low, high = fitted.interval()
    chosen = [known.methods.index(name) for name in known_methods(methods, known)] or range(len(known.methods))
    cells = [(row, column) for row in chosen for column in range(len(known.tasks)) if not known.known[row, column]]
    if as_json:
        told = [
            {"method": known.methods[r], "task": known.tasks[c], "predicted": float(fitted.scores[r, c])}
            | {"low": float(low[r, c]), "high": float(high[r, c])}
            for r, c in cells
        ]
        errors = {"error": fitted.mix.error, "mean_error": fitted.mix.mean_error}
        echo_json({"known": int(known.known.sum()), **errors, "cells": told})
        return
    rows = [
        [known.methods[r], known.tasks[c], f"{fitted.scores[r, c]:.4g}", f"{low[r, c]:.4g} to {high[r, c]:.4g}"]
        for r, c in cells
    ]
    if rows:
        prefix = common_prefix([row[1] for row in rows])
        click.echo(table(["method", "task", "predicted", "95 % interval"], rows, (2, 3), drop=(), prefix=prefix))
    say(
        f"{counted(len(rows), 'score')} predicted from {known.known.sum()} that are known: no scores, and never ranked."
    )
    say(
        f"Where known scores were held back, half of the predictions were less than {fitted.mix.error:.2f} spreads of "
        f"their task off; the task's mean alone {fitted.mix.mean_error:.2f}. `neuco capabilities evaluate` says more."
    )
    if fitted.limits:
        say(fitted.limits)


@capabilities.command()
@source_argument
@least_option
@click.option("--method", help="Tasks for this method; without it, results of any method that settle the ranking.")
@click.option("--new", is_flag=True, help="The method has no result yet.")
@click.option("--number", type=click.IntRange(min=1), default=3, show_default=True, help="How many.")
@click.option("--width", type=click.IntRange(min=1), help="So many that the method's rank is within this many places.")
@json_option
def suggest(
    source: str, least: int, method: str | None, new: bool, number: int, width: int | None, as_json: bool
) -> None:
    """Which tasks to run next for a method: those that tell most about the others."""
    from neuco_core.capabilities.predictor import Predictor
    from neuco_core.cli.capabilities_suggest import for_method, for_ranking
    from neuco_core.errors import UsageError

    if method is None and (new or width):
        raise UsageError("--new and --width are about a method", hint="Add --method")
    known = open_table(source, least)
    if method is not None and new:
        known = known.with_method(method)
    elif method is not None:
        known_methods([method], known)
    fitted = Predictor().fit(known)
    if method is None:
        for_ranking(fitted, number, as_json)
    else:
        for_method(fitted, method, number, width, as_json)


def open_table(source: str, least: int) -> Table:
    """A file if there is one of that name, the table of the paper, else a board."""
    found = _unfiltered(source)
    return found.filtered(least) if least > 1 else found


def _unfiltered(source: str) -> Table:
    from neuco_core.capabilities.paper import NAME, fetch_paper
    from neuco_core.capabilities.read import from_board, read_table
    from neuco_core.cli.leaderboard import one_board

    path = Path(source)
    if path.is_file() or path.suffix.lower() == ".csv":
        return read_table(path)
    return fetch_paper() if source == NAME else from_board(one_board(source, {}))


def known_methods(names: Sequence[str], known: Table) -> list[str]:
    from difflib import get_close_matches

    from neuco_core.errors import UsageError

    for name in names:
        if name not in known.methods:
            close = get_close_matches(name, known.methods)
            hint = f"Did you mean {' or '.join(close)}?" if close else "`suggest --new` is for a method without results"
            raise UsageError(f"no result of a method {name!r}", where="table of results", hint=hint)
    return list(names)
