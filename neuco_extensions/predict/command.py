"""``neuco predict``: predict the scores that nobody has run, and say which to run next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np

from neuco_core.cli.leaderboard import one_board
from neuco_core.cli.output import echo_json, json_option, say, table
from neuco_core.env import available_cores
from neuco_core.errors import UsageError
from neuco_core.files import dump, write_atomic
from neuco_core.site.write import standalone
from neuco_core.text import common_prefix, counted
from neuco_extensions.predict.evaluate import MODELS, CrossValidation, cross_validate, difference, side_by_side
from neuco_extensions.predict.fill import how_well
from neuco_extensions.predict.map_figure import Drawing
from neuco_extensions.predict.plane import fit_plane
from neuco_extensions.predict.predictor import Predictor
from neuco_extensions.predict.read import fetch_paper, from_board, read_table
from neuco_extensions.predict.suggest import Pick, Suggestion, pick, places
from neuco_extensions.predict.suggest import suggest as suggest_tasks
from neuco_extensions.predict.table import ScoreTable

F = TypeVar("F", bound=Callable[..., Any])
PAPER = "paper"
FIGURES = (".svg", ".json")
source_argument = click.argument("source", metavar="BOARD|FILE|paper")


def least_option(default: int, smallest: int) -> Callable[[F], F]:
    kind, text = click.IntRange(min=smallest), "Leave out who has fewer results."
    return click.option("--least", type=kind, default=default, show_default=True, help=text)


@dataclass(frozen=True)
class KnownScores:
    """Known scores, in which higher is better; ``lower`` are the tasks whose scores were turned for that.

    ``runnable`` is whether ``neuco score`` can run what is missing: the table is the board of a suite.
    """

    table: ScoreTable
    lower: frozenset[str] = frozenset()
    runnable: bool = False

    def as_scored(self, task: str, score: float, low: float, high: float) -> tuple[float, float, float]:
        return (-score, -high, -low) if task in self.lower else (score, low, high)

    def methods(self, names: Sequence[str]) -> list[str]:
        """Methods by name, several separated by commas. In a file a name may have commas itself."""
        methods = self.table.methods
        chosen: list[str] = []
        for text in names:
            chosen += [text] if text in methods else [name.strip() for name in text.split(",")]
        for name in chosen:
            if name not in methods:
                close = get_close_matches(name, methods)
                hint = f"Did you mean {' or '.join(close)}?" if close else "`suggest --new` is for one without results"
                raise UsageError(f"no result of a method {name!r}", where="table of results", hint=hint)
        return chosen


def open_source(source: str, least: int = 1) -> KnownScores:
    """A file if there is one of that name, the table of the paper, else a board."""
    path = Path(source)
    if path.is_file() or path.suffix.lower() == ".csv":
        known = KnownScores(read_table(path))
    elif source == PAPER:
        known = KnownScores(fetch_paper())
    else:
        board = one_board(source, {})
        lower = frozenset(task.id for task in board.tasks if not task.greater_is_better)
        known = KnownScores(from_board(board), lower, runnable=board.published is None)
    return replace(known, table=known.table.filtered(least)) if least > 1 else known


class Predict(click.Group):
    """Says what is missing if a table stands where a command belongs."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and (Path(args[0]).is_file() or args[0].lower().endswith(".csv")):
            names = ", ".join(sorted(self.commands))
            hint = f"Run `neuco predict fill {args[0]}`"
            raise UsageError("a table, but not what to do with it", expected=f"one of {names}", got=args[0], hint=hint)
        return super().resolve_command(ctx, args)


@click.group(cls=Predict)
def predict() -> None:
    """Predict the scores that nobody has run, from those of a board or of a CSV file.

    A file has the columns method, task and score, or a row per method and a column per task. `paper` is the table of
    the capabilities-encoding paper, which is fetched from its authors.
    """


@predict.command()
@source_argument
@least_option(1, 1)
@click.option("--method", "methods", multiple=True, help="Only these; repeatable, or separated by commas.")
@json_option
def fill(source: str, least: int, methods: Sequence[str], as_json: bool) -> None:
    """The scores that are missing, each with an interval that is meant to hold it in 95 % of cases."""
    known = open_source(source, least)
    chosen = set(known.methods(methods) or known.table.methods)
    fitted = Predictor().fit(known.table)
    low, high = fitted.interval()
    cells = []
    for r, c in zip(*np.nonzero(~known.table.known), strict=True):
        method, task = known.table.methods[r], known.table.tasks[c]
        if method in chosen:
            score = known.as_scored(task, float(fitted.scores[r, c]), float(low[r, c]), float(high[r, c]))
            cells.append((method, task, *score))
    count = int(known.table.known.sum())
    if as_json:
        keys = ("method", "task", "predicted", "low", "high")
        errors = {"error": fitted.mix.error, "mean_error": fitted.mix.mean_error}
        echo_json({"known": count, **errors, "cells": [dict(zip(keys, cell, strict=True)) for cell in cells]})
        return
    if cells:
        rows = [[method, task, f"{score:.4g}", f"{low:.4g} to {high:.4g}"] for method, task, score, low, high in cells]
        prefix = common_prefix([row[1] for row in rows])
        click.echo(table(["method", "task", "predicted", "95 % interval"], rows, (2, 3), drop=(), prefix=prefix))
    say(f"{counted(len(cells), 'score')} predicted from {count} that are known: no scores, and never ranked.")
    say(f"{how_well(fitted.mix)} `neuco predict evaluate` says more.")
    if fitted.limits:
        say(fitted.limits)


@predict.command()
@source_argument
@least_option(1, 1)
@click.option("--method", help="Tasks for this method; without it, results of any method that settle the ranking.")
@click.option("--new", is_flag=True, help="The method has no result yet.")
@click.option("--number", type=click.IntRange(min=1), default=3, show_default=True, help="How many.")
@click.option("--width", type=click.IntRange(min=1), help="So many that the method's rank is within this many places.")
@json_option
def suggest(
    source: str, least: int, method: str | None, new: bool, number: int, width: int | None, as_json: bool
) -> None:
    """Which tasks to run next for a method: those that tell most about the others."""
    if method is None and (new or width):
        raise UsageError("--new and --width are about a method", hint="Add --method")
    known = open_source(source, least)
    if method is not None and new:
        known = replace(known, table=known.table.with_method(method))
    elif method is not None:
        known.methods([method])
    fitted = Predictor().fit(known.table)
    if method is None:
        picks = pick(fitted, number)
        if as_json:
            echo_json([asdict(one) for one in picks])
        else:
            _show_picks(picks, known)
        return
    suggestions = []
    for one in suggest_tasks(fitted, method, number, width):
        score, low, high = known.as_scored(one.task, one.predicted, one.low, one.high)
        suggestions.append(replace(one, predicted=score, low=low, high=high))
    if as_json:
        echo_json([asdict(one) for one in suggestions])
        return
    if not suggestions:
        within = f"its rank is within {counted(places(fitted, method), 'place')}"
        whole = bool(known.table.known[known.table.methods.index(method)].all())
        say(f"{method} has a score on every task: {within}." if whole else f"Nothing to run for {method}: {within}.")
        return
    _show_suggestions(suggestions)
    if fitted.limits:
        say(fitted.limits)
    if width:
        say(enough(suggestions[-1].ranks_after, len(suggestions), width))
    if known.runnable:
        _show_command(method, [one.task for one in suggestions])


def _show_picks(picks: Sequence[Pick], known: KnownScores) -> None:
    if not picks:
        say("Every method has a score on every task.")
        return
    rows = [[one.method, one.task, f"{one.before:.2%} → {one.after:.2%}"] for one in picks]
    click.echo(table(["method", "run next", "pairs in the wrong order"], rows, (2,), drop=()))
    say("Pairs: the share of pairs of methods expected to be in the wrong order, by the mean over tasks.")
    if known.runnable:
        for method in dict.fromkeys(one.method for one in picks):
            _show_command(method, [one.task for one in picks if one.method == method])


def _show_suggestions(suggestions: Sequence[Suggestion]) -> None:
    forms = "{predicted:.4g}", "{low:.4g} to {high:.4g}", "{before:.3f} → {after:.3f}", "{ranks_before} → {ranks_after}"
    rows = [[one.task, *(form.format(**asdict(one)) for form in forms)] for one in suggestions]
    head = ["run next", "predicted", "95 % interval", "uncertainty of the rest", "places"]
    click.echo(table(head, rows, (1, 2, 3, 4), drop=()))
    say("Uncertainty: mean standard deviation of what is not yet run, in spreads of its task over methods.")
    say("Places: how many its rank, by the mean over tasks, may take with 95 %, the other methods being as they are.")


def _show_command(method: str, tasks: Iterable[str]) -> None:
    click.echo(f"Run: neuco score --method {method} --task {','.join(tasks)}")


def enough(ranks: int, number: int, width: int) -> str:
    tasks = counted(number, "more task")
    verb = "is" if number == 1 else "are"
    expected = f"{tasks} {verb} expected to tell its rank to within {counted(width, 'place')}."
    return f"Not even {expected}" if ranks > width else expected


@predict.command()
@source_argument
@least_option(5, 2)
@click.option("--hide-equal", is_flag=True, help="Hide scores of a task that are equal together: they may be copies.")
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="Of folds; means are shown.")
@click.option("--jobs", type=click.IntRange(min=1), help="Worker processes. [default: one per core]")
@json_option
def evaluate(source: str, least: int, hide_equal: bool, seeds: int, jobs: int | None, as_json: bool) -> None:
    """How well known scores are predicted from the others, ten at a time.

    Beside the predictor are the mean of all scores, and sums of what method and task bring. Errors are squared gaps to
    a task's best score, in units of the distance of its best and worst.
    """
    known = open_source(source, least).table
    # The predictor takes longest, so it begins first.
    calls = {
        (name, seed): partial(cross_validate, known, MODELS[name], seed, hide_equal)
        for name in reversed(MODELS)
        for seed in range(seeds)
    }
    done = side_by_side(calls, jobs or available_cores())
    runs = {name: [done[name, seed] for seed in range(seeds)] for name in MODELS}
    best = min(runs, key=lambda name: _mean(runs[name], "mse") or 0.0)
    rows: list[dict[str, Any]] = []
    for name, run in runs.items():
        means = {"mse": _mean(run, "mse"), "spearman": _mean(run, "order"), "coverage": _mean(run, "coverage")}
        means["coverage_of_ends"] = _mean(run, "coverage_of_ends")
        rows.append({"model": name, **means, "worse": None if name == best else difference(run, runs[best])})
    size = {"methods": len(known.methods), "tasks": len(known.tasks), "scores": int(known.known.sum())}
    if as_json:
        echo_json({**size, "models": rows})
        return
    forms = {
        "model": "{}",
        "mse": "{:.4f}",
        "spearman": "{:.3f}",
        "coverage": "{:.1%}",
        "coverage_of_ends": "{:.1%}",
        "worse": "{0[0]:.4f} ({0[1]:.4f} to {0[2]:.4f})",
    }
    lines = [["–" if row[key] is None else form.format(row[key]) for key, form in forms.items()] for row in rows]
    head = ["model", "MSE", "Spearman", "in 95 % interval", "best or worst in it", "worse than the best by"]
    click.echo(table(head, lines, (1, 2, 3, 4, 5), drop=(4, 3, 2)))
    counts = "{scores} scores of {methods} methods on {tasks} tasks".format(**size)
    say(f"{counts}, ten hidden at a time. Intervals of differences: methods and tasks resampled.")


def _mean(run: Sequence[CrossValidation], what: str) -> float | None:
    values = [getattr(one, what) for one in run]
    return None if None in values else sum(values) / len(values)


@predict.command(name="map")
@source_argument
@least_option(3, 3)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="An .svg file, or .json with all coordinates."
)
@json_option
def map_(source: str, least: int, out: Path | None, as_json: bool) -> None:
    """Draw methods and tasks as points of a plane: the nearer, the closer a method comes to a task's best score.

    Three distances fix a point, so who has fewer than 3 results is left out.
    """
    if out and out.suffix.lower() not in FIGURES:
        got = out.suffix or "no suffix"
        raise UsageError("not a format of maps", where=out, expected=" or ".join(FIGURES), got=got)
    known = open_source(source).table
    plane = fit_plane(known, least=least)
    if out:
        whole = out.suffix.lower() == ".json"
        write_atomic(out, dump(asdict(plane)) if whole else standalone(Drawing(plane, {}).svg()).encode())
    if as_json:
        echo_json(asdict(plane))
        return
    for noun, other, points in (("method", "tasks", plane.methods), ("task", "methods", plane.tasks)):
        rows = []
        for p in sorted(points, key=lambda point: point.reach):
            moves = f"{p.moves:.2f}" + (" !" if p.doubtful else "")
            rows.append([p.name, f"{p.reach:.2f}", str(p.group or "–"), f"{p.error:.2f}", moves])
        head = [noun, f"distance to {other}", "group", "off by", "moves by"]
        click.echo(table(head, rows, (1, 2, 3, 4), prefix=common_prefix([point.name for point in points])))
    for warning in plane.warnings("marked !"):
        say(warning)
    left_out = len(known.methods) + len(known.tasks) - len(plane.points)
    if left_out:
        say(f"Left out, with fewer than {least} results: {counted(left_out, 'method or task')}.")
    if out:
        say(str(out))
