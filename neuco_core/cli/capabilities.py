"""``neuco capabilities``: predict the scores that nobody has run, and say which to run next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neuco_core.cli.options import split_commas
from neuco_core.cli.output import echo_json, json_option, say, table
from neuco_core.text import common_prefix, counted

if TYPE_CHECKING:
    from neuco_core.capabilities.evaluate import Outcome
    from neuco_core.capabilities.table import Table

NAMES = ("mean", "additive", "factors", "l2-2", "l2-5", "neuco")
source_argument = click.argument("source", metavar="BOARD|FILE")
least_option = click.option(
    "--least", type=click.IntRange(min=1), default=1, show_default=True, help="Leave out who has fewer results."
)


@click.group()
def capabilities() -> None:
    """Predict the scores that nobody has run, from those of a board or of a CSV file.

    A file has the columns method, task and score, or a row per method and a column per task.
    """


@capabilities.command()
@source_argument
@least_option
@click.option("--method", "methods", multiple=True, callback=split_commas, help="Only these; repeatable.")
@json_option
def predict(source: str, least: int, methods: Sequence[str], as_json: bool) -> None:
    """The scores that are missing, each with an interval that is meant to hold it in 95 % of cases."""
    from neuco_core.capabilities.predictor import Predictor

    known = _open(source, least)
    fitted = Predictor().fit(known)
    low, high = fitted.interval()
    chosen = [known.methods.index(name) for name in _known(methods, known)] or range(len(known.methods))
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


@capabilities.command()
@source_argument
@least_option
@click.option("--method", required=True, help="The method that is to be run.")
@click.option("--number", type=click.IntRange(min=1), default=3, show_default=True, help="How many tasks.")
@json_option
def suggest(source: str, least: int, method: str, number: int, as_json: bool) -> None:
    """Which tasks to run next for a method: those that tell most about the others."""
    from neuco_core.capabilities.predictor import Predictor
    from neuco_core.capabilities.suggest import suggest as found_by

    known = _open(source, least)
    (name,) = _known([method], known)
    found = found_by(Predictor().fit(known), name, number)
    if as_json:
        echo_json([{field: getattr(one, field) for field in one.__dataclass_fields__} for one in found])
        return
    if not found:
        say(f"{name} has a score on every task.")
        return
    rows = [
        [one.task, f"{one.predicted:.4g}", f"{one.low:.4g} to {one.high:.4g}", f"{one.before:.3f} → {one.after:.3f}"]
        for one in found
    ]
    click.echo(table(["run next", "predicted", "95 % interval", "uncertainty of the rest"], rows, (1, 2, 3), drop=()))
    say("Uncertainty: mean standard deviation of what is not yet run, in spreads of its task over methods.")


@capabilities.command()
@source_argument
@click.option(
    "--least", type=click.IntRange(min=2), default=5, show_default=True, help="Leave out who has fewer results."
)
@click.option("--models", default=",".join(NAMES), show_default=True, help="Also l2-3, cosine-5, poincare-5 and so on.")
@click.option("--protocol", type=click.Choice(["honest", "paper", "both"]), default="both", show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the folds.")
@json_option
def evaluate(source: str, least: int, models: str, protocol: str, seed: int, as_json: bool) -> None:
    """How well known scores are predicted from the others, ten at a time, by several models.

    Errors are squared gaps to a task's best score, in units of the distance of its best and worst. The paper's
    protocol computes gaps from the whole table, which tells a part of the answer; the honest one shows nothing but
    other scores.
    """
    from neuco_core.capabilities.evaluate import cross_validate, model

    known = _open(source, least)
    names = [name.strip() for name in models.split(",") if name.strip()]
    for name in names:
        model(name)  # a wrong name is told before minutes of work
    rows: list[dict[str, Any]] = []
    for one in ("honest", "paper") if protocol == "both" else (protocol,):
        found = [cross_validate(known, name, one, seed) for name in names]
        best = min(found, key=lambda outcome: outcome.mse)
        rows += [{"protocol": one, **_told(outcome, best)} for outcome in found]
    if as_json:
        echo_json({"methods": len(known.methods), "tasks": len(known.tasks), "models": rows})
        return
    head = ["protocol", "model", "MSE", "Spearman", "in 95 % interval", "worse than the best by"]
    click.echo(table(head, [_line(row) for row in rows], (2, 3, 4, 5), drop=(4, 3)))
    size = f"{len(known.methods)} methods on {len(known.tasks)} tasks"
    say(f"{known.known.sum()} scores of {size}, ten hidden at a time.")


def _told(outcome: Outcome, best: Outcome) -> dict[str, Any]:
    from neuco_core.capabilities.evaluate import difference

    numbers = {"mse": outcome.mse, "spearman": outcome.order, "coverage": outcome.coverage}
    return {"model": outcome.name, **numbers, "worse": None if outcome is best else difference(outcome, best)}


def _line(row: dict[str, Any]) -> list[str]:
    worse = "–" if row["worse"] is None else "{:.4f} ({:.4f} to {:.4f})".format(*row["worse"])
    order = "–" if row["spearman"] is None else f"{row['spearman']:.3f}"
    covered = "–" if row["coverage"] is None else f"{row['coverage']:.1%}"
    return [row["protocol"], row["model"], f"{row['mse']:.4f}", order, covered, worse]


def _open(source: str, least: int) -> Table:
    """A file if there is one of that name, else a board."""
    from neuco_core.capabilities.read import from_board, read_table
    from neuco_core.cli.leaderboard import one_board

    path = Path(source)
    found = read_table(path) if path.is_file() or path.suffix.lower() == ".csv" else from_board(one_board(source, {}))
    return found.filtered(least) if least > 1 else found


def _known(names: Sequence[str], known: Table) -> list[str]:
    from difflib import get_close_matches

    from neuco_core.errors import UsageError

    for name in names:
        if name not in known.methods:
            close = get_close_matches(name, known.methods)
            hint = f"Did you mean {' or '.join(close)}?" if close else "`neuco methods` lists those that are registered"
            raise UsageError(f"no result of a method {name!r}", where="table of results", hint=hint)
    return list(names)
