"""``neuco capabilities``: predict the scores that nobody has run, and say which to run next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neuco_core.cli import CommandTable
from neuco_core.cli.output import echo_json, json_option, say, table

if TYPE_CHECKING:
    from neuco_core.capabilities.evaluate import Outcome
    from neuco_core.capabilities.predictor import Predictor
    from neuco_core.capabilities.table import Table

COMMANDS = {
    "evaluate": "neuco_core.cli.capabilities:evaluate",
    "fit": "neuco_core.cli.capabilities_model:fit",
    "map": "neuco_core.cli.capabilities_model:map_",
    "predict": "neuco_core.cli.capabilities_model:predict",
    "suggest": "neuco_core.cli.capabilities:suggest",
}
NAMES = ("mean", "additive", "factors", "l2-2", "l2-5", "neuco")
source_argument = click.argument("source", metavar="BOARD|FILE")
least_option = click.option(
    "--least", type=click.IntRange(min=1), default=1, show_default=True, help="Leave out who has fewer results."
)
model_option = click.option(
    "--model",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What `neuco capabilities fit` kept, instead of a fit.",
)


class Capabilities(CommandTable):
    table = COMMANDS


@click.group(cls=Capabilities)
def capabilities() -> None:
    """Predict the scores that nobody has run, from those of a board or of a CSV file.

    A file has the columns method, task and score, or a row per method and a column per task.
    """


@capabilities.command()
@source_argument
@least_option
@click.option("--method", required=True, help="The method that is to be run.")
@click.option("--number", type=click.IntRange(min=1), default=3, show_default=True, help="How many tasks.")
@model_option
@json_option
def suggest(source: str, least: int, method: str, number: int, model: Path | None, as_json: bool) -> None:
    """Which tasks to run next for a method: those that tell most about the others."""
    from neuco_core.capabilities.suggest import suggest as found_by

    known = open_table(source, least)
    (name,) = known_methods([method], known)
    found = found_by(fitted_on(known, model), name, number)
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

    known = open_table(source, least)
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


def open_table(source: str, least: int) -> Table:
    """A file if there is one of that name, else a board."""
    from neuco_core.capabilities.read import from_board, read_table
    from neuco_core.cli.leaderboard import one_board

    path = Path(source)
    found = read_table(path) if path.is_file() or path.suffix.lower() == ".csv" else from_board(one_board(source, {}))
    return found.filtered(least) if least > 1 else found


def fitted_on(known: Table, model: Path | None) -> Predictor:
    """The predictor that was kept, or one that is fitted now."""
    from neuco_core.capabilities.kept import restore
    from neuco_core.capabilities.predictor import Predictor

    return restore(model, known) if model else Predictor().fit(known)


def known_methods(names: Sequence[str], known: Table) -> list[str]:
    from difflib import get_close_matches

    from neuco_core.errors import UsageError

    for name in names:
        if name not in known.methods:
            close = get_close_matches(name, known.methods)
            hint = f"Did you mean {' or '.join(close)}?" if close else "`neuco methods` lists those that are registered"
            raise UsageError(f"no result of a method {name!r}", where="table of results", hint=hint)
    return list(names)
