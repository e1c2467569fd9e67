"""``neuco predict evaluate`` and ``encoders``: how well known scores are predicted from the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

import click

from neuco_core.cli.output import echo_json, json_option, say, table
from neuco_core.text import counted

if TYPE_CHECKING:
    from neuco_extensions.predict.evaluate import Outcome, Protocol
    from neuco_extensions.predict.table import Table

F = TypeVar("F", bound=Callable[..., Any])
NAMES = ("mean", "additive", "factors", "l2-5", "neuco")
OURS, SUGGESTED = "neuco", "neuco, suggested"
NEW = ("mean", "factors", "l2-5", OURS)  # compared on methods with few results
source_argument = click.argument("source", metavar="BOARD|FILE|paper")
least_option = click.option(
    "--least", type=click.IntRange(min=2), default=5, show_default=True, help="Leave out who has fewer results."
)
BOTH = ("honest", "paper")
jobs_option = click.option("--jobs", type=click.IntRange(min=1), help="Worker processes. [default: one per core]")
Runs = dict[tuple[str, str, bool], list[Any]]  # by protocol, model, and whether methods are new; a result per seed


def seeds_option(default: int) -> Callable[[F], F]:
    words = "Folds, draws and starts; means are shown."
    return click.option("--seeds", type=click.IntRange(min=1), default=default, show_default=True, help=words)


@click.command()
@source_argument
@least_option
@click.option("--models", default=",".join(NAMES), show_default=True, help="Also l2-3, cosine-5, poincare-5 and so on.")
@click.option("--protocol", type=click.Choice([*BOTH, "both"]), default="both", show_default=True)
@click.option("--cold-start/--no-cold-start", default=True, show_default=True, help="Methods with few results, too.")
@click.option("--hide-equal", is_flag=True, help="Hide scores of a task that are equal together: they may be copies.")
@seeds_option(1)
@jobs_option
@json_option
def evaluate(
    source: str,
    least: int,
    models: str,
    protocol: str,
    cold_start: bool,
    hide_equal: bool,
    seeds: int,
    jobs: int | None,
    as_json: bool,
) -> None:
    """How well known scores are predicted from the others, ten at a time, by several models.

    Errors are squared gaps to a task's best score, in units of the distance of its best and worst. The paper's
    protocol computes gaps from the whole table, which tells a part of the answer; the honest one shows nothing but
    other scores. Then every method in turn is new, but for a few results.
    """
    from neuco_core.env import available_cores
    from neuco_extensions.predict.command import open_table
    from neuco_extensions.predict.models import model

    known = open_table(source, least)
    names = [name.strip() for name in models.split(",") if name.strip()]
    for name in names or [models]:
        model(name)  # a wrong name is told before minutes of work
    chosen: tuple[Any, ...] = BOTH if protocol == "both" else (protocol,)
    runs = _runs(known, names, chosen, cold_start, hide_equal, seeds, jobs or available_cores())
    rows = [row for one in chosen for row in _cross_validated(runs, names, one)]
    few = [row for one in chosen for row in _new_methods(runs, one)] if cold_start else []
    if as_json:
        size = {"methods": len(known.methods), "tasks": len(known.tasks), "scores": int(known.known.sum())}
        echo_json({**size, "models": rows, "cold_start": few})
        return
    _show_models(rows)
    say(
        f"{known.known.sum()} scores of {len(known.methods)} methods on {len(known.tasks)} tasks, ten hidden at a "
        "time. Intervals of differences: methods and tasks resampled."
    )
    if few:
        click.echo()
        _show_new(few)


def _runs(
    known: Table,
    names: Sequence[str],
    protocols: Sequence[Protocol],
    cold: bool,
    equal: bool,
    seeds: int,
    jobs: int,
) -> Runs:
    from neuco_extensions.predict.evaluate import cold_start, cross_validate, side_by_side

    calls: dict[Any, Callable[[], Any]] = {}
    for protocol, seed in product(protocols, range(seeds)):
        for name in names:
            calls[protocol, name, False, seed] = partial(cross_validate, known, name, protocol, seed, equal)
        for name in NEW if cold else ():
            calls[protocol, name, True, seed] = partial(cold_start, known, name, protocol, seed)
        if cold and protocol == "honest":
            calls[protocol, SUGGESTED, True, seed] = partial(cold_start, known, OURS, protocol, seed, suggested=True)
    longest_first = sorted(calls, key=lambda key: (key[1] != SUGGESTED, key[1] != OURS, not key[2]))
    found = side_by_side({key: calls[key] for key in longest_first}, jobs)
    return {key[:3]: [found[*key[:3], seed] for seed in range(seeds)] for key in calls}


def _cross_validated(runs: Runs, names: Sequence[str], protocol: Protocol) -> list[dict[str, Any]]:
    from neuco_extensions.predict.evaluate import difference

    own = [runs[protocol, name, False] for name in names]
    best = min(own, key=lambda outcomes: _mean(outcomes, "mse") or 0.0)
    return [
        {"protocol": protocol, "model": name, "mse": _mean(one, "mse"), "spearman": _mean(one, "order")}
        | {"coverage": _mean(one, "coverage"), "worse": None if one is best else difference(one, best)}
        for name, one in zip(names, own, strict=True)
    ]


def _mean(outcomes: Sequence[Outcome], what: str) -> float | None:
    found = [getattr(one, what) for one in outcomes]
    return None if None in found else sum(found) / len(found)


def _new_methods(runs: Runs, protocol: Protocol) -> list[dict[str, Any]]:
    """By number of known results, the error of each model; the last with results that ``suggest`` chose."""
    own = {name: run for (of, name, new), run in runs.items() if new and of == protocol}
    rows = []
    for count in own[OURS][0]:
        by_name = {name: [one[count] for one in run] for name, run in own.items()}
        row: dict[str, Any] = {"protocol": protocol, "known": count, "coverage": _mean(by_name[OURS], "coverage")}
        row["scores"] = sum(len(one.cells) for one in by_name[OURS])
        for what in ("mse", "by_method"):
            row[what] = {name: _mean(outcomes, what) for name, outcomes in by_name.items()}
        rows.append(row)
    return rows


def _show_models(rows: Sequence[dict[str, Any]]) -> None:
    head = ["protocol", "model", "MSE", "Spearman", "in 95 % interval", "worse than the best by"]
    lines = [
        [row["protocol"], row["model"], f"{row['mse']:.4f}", *_order_and_coverage(row), _interval(row["worse"])]
        for row in rows
    ]
    click.echo(table(head, lines, (2, 3, 4, 5), drop=(4, 3)))


def _order_and_coverage(row: dict[str, Any]) -> list[str]:
    return [_or_dash(row["spearman"], ".3f"), _or_dash(row["coverage"], ".1%")]


def _errors(row: dict[str, Any], names: Sequence[str]) -> list[str]:
    return [_or_dash(row["mse"].get(name), ".4f") for name in names]


def _show_new(rows: Sequence[dict[str, Any]]) -> None:
    names = list(rows[0]["mse"])
    lines = [
        [row["protocol"], str(row["known"]), *_errors(row, names), _or_dash(row["coverage"], ".1%")] for row in rows
    ]
    head = ["protocol", "known", *names, "in 95 % interval"]
    click.echo(table(head, lines, tuple(range(1, len(head))), drop=()))
    say(
        f"MSE for {rows[0]['scores']} scores of methods that are new but for at most so many results, drawn at random; "
        "'suggested' ones in the order of `suggest`."
    )
    if SUGGESTED in names:
        say(_saved([row for row in rows if SUGGESTED in row["mse"]]))


def _saved(rows: Sequence[dict[str, Any]]) -> str:
    """How many results of ``suggest`` do what the most at random did."""
    most = rows[-1]
    enough = [row["known"] for row in rows if row["mse"][SUGGESTED] <= most["mse"][OURS]]
    if not enough or enough[0] == most["known"]:
        return f"`suggest` saved nothing: only {most['known']} results of it do what as many drawn at random do."
    return f"`suggest` reached the error of {most['known']} results drawn at random with {enough[0]}."


@click.command()
@source_argument
@least_option
@seeds_option(10)
@click.option("--protocol", type=click.Choice(BOTH), default="paper", show_default=True)
@jobs_option
@json_option
def encoders(source: str, least: int, seeds: int, protocol: Protocol, jobs: int | None, as_json: bool) -> None:
    """The encoders of the capabilities-encoding paper, and whether a table supports its choice among them.

    The paper chose Euclidean distance (l2) in five dimensions. It is supported against another encoder if the 95 %
    interval of how much larger the other's error is lies above 0; the opposite is, if it lies below.
    """
    from neuco_core.env import available_cores
    from neuco_extensions.predict.claims import encoders as compared
    from neuco_extensions.predict.command import open_table

    found = compared(open_table(source, least), seeds, protocol, jobs=jobs or available_cores())
    if as_json:
        echo_json([asdict(one) | {"verdict": one.claim.verdict if one.claim else None} for one in found])
        return
    lines = [
        [one.name, f"{one.mse:.4f}", f"{one.deviation:.4f}"]
        + ([_interval((c.more, c.low, c.high)), c.verdict] if (c := one.claim) else ["–", "the paper's choice"])
        for one in found
    ]
    better = f"{found[0].name} is better"
    click.echo(table(["encoder", "MSE", "SD of seeds", "error above the choice", better], lines, (1, 2, 3), drop=()))
    say(f"Means of {counted(seeds, 'seed')}. Intervals: 95 %, methods, tasks and seeds resampled.")


def _interval(found: Sequence[float] | None) -> str:
    return "–" if found is None else "{:.4f} ({:.4f} to {:.4f})".format(*found)


def _or_dash(value: float | None, how: str) -> str:
    return "–" if value is None else format(value, how)
