"""What ``neuco predict suggest`` prints."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from neuco_core.cli.output import echo_json, say, table
from neuco_core.text import counted
from neuco_extensions.predict.command import as_scored

if TYPE_CHECKING:
    from neuco_extensions.predict.predictor import Predictor
    from neuco_extensions.predict.suggest import Suggestion


def for_method(
    fitted: Predictor, method: str, number: int, width: int | None, lower: Collection[str], as_json: bool
) -> None:
    """``lower`` are the tasks on which lower is better."""
    from neuco_extensions.predict.suggest import places, suggest

    found = [_as_scored(one, lower) for one in suggest(fitted, method, number, width)]
    if as_json:
        echo_json([asdict(one) for one in found])
        return
    if not found:
        within = f"its rank is within {counted(places(fitted, method), 'place')}"
        known = bool(fitted.table.known[fitted.table.methods.index(method)].all())
        say(f"{method} has a score on every task: {within}." if known else f"Nothing to run for {method}: {within}.")
        return
    rows = [_line(one) for one in found]
    head = ["run next", "predicted", "95 % interval", "uncertainty of the rest", "places"]
    click.echo(table(head, rows, (1, 2, 3, 4), drop=()))
    say("Uncertainty: mean standard deviation of what is not yet run, in spreads of its task over methods.")
    say("Places: how many its rank, by the mean over tasks, may take with 95 %, the other methods being as they are.")
    if fitted.limits:
        say(fitted.limits)
    if width:
        say(_enough(found[-1].ranks_after, len(found), width))


def _as_scored(one: Suggestion, lower: Collection[str]) -> Suggestion:
    score, low, high = as_scored(one.predicted, one.low, one.high, one.task in lower)
    return replace(one, predicted=score, low=low, high=high)


def _line(one: Suggestion) -> list[str]:
    told = f"{one.before:.3f} → {one.after:.3f}", f"{one.ranks_before} → {one.ranks_after}"
    return [one.task, f"{one.predicted:.4g}", f"{one.low:.4g} to {one.high:.4g}", *told]


def _enough(ranks: int, number: int, width: int) -> str:
    tasks, places = counted(number, "more task"), counted(width, "place")
    expected = f"{tasks} {'is' if number == 1 else 'are'} expected to tell its rank to within {places}."
    return f"Not even {expected}" if ranks > width else expected


def for_ranking(fitted: Predictor, number: int, as_json: bool) -> None:
    from neuco_extensions.predict.suggest import pick

    found = pick(fitted, number)
    if as_json:
        echo_json([asdict(one) for one in found])
        return
    if not found:
        say("Every method has a score on every task.")
        return
    rows = [[one.method, one.task, f"{one.before:.2%} → {one.after:.2%}"] for one in found]
    click.echo(table(["method", "run next", "pairs in the wrong order"], rows, (2,), drop=()))
    say("Pairs: the share of pairs of methods expected to be in the wrong order, by the mean over tasks.")
