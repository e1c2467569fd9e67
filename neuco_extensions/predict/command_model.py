"""``neuco predict fit``, ``predict`` and ``map``: what is learnt from a table of scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neuco_core.cli.output import echo_json, json_option, say, table
from neuco_core.text import common_prefix, counted
from neuco_extensions.predict.command import (
    as_scored,
    fitted_on,
    known_methods,
    least_option,
    model_option,
    open_source,
    open_table,
    source_argument,
)

if TYPE_CHECKING:
    from neuco_extensions.predict.plane import Point

FIGURES = (".svg", ".json")


@click.command()
@source_argument
@least_option
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Keep the model in this JSON file.")
@json_option
def fit(source: str, least: int, out: Path | None, as_json: bool) -> None:
    """Learn from known scores, say what they depend on, and keep the model for predict and suggest --model."""
    from neuco_extensions.predict.fill import how_well
    from neuco_extensions.predict.kept import keep, learnt, to_json, write
    from neuco_extensions.predict.predictor import Predictor

    known = open_table(source, least)
    fitted = Predictor().fit(known)
    kept = keep(fitted, source, least)
    if out:
        write(out, kept)
    if as_json:
        echo_json(to_json(kept))
        return
    shares = sorted(learnt(kept).items(), key=lambda item: -item[1])
    if shares:
        rows = [[name, f"{share:.0%}"] for name, share in shares]
        click.echo(table(["what a score depends on", "share"], rows, (1,)))
        say(f"Shares of the variance of scores on a task, learnt from {counted(kept.known, 'score')}.")
    say(how_well(kept.mix))
    if fitted.limits:
        say(fitted.limits)
    if out:
        say(f"Kept in {out}: `neuco predict fill {source} --model {out}` does not fit again.")


@click.command()
@source_argument
@least_option
@click.option("--method", "methods", multiple=True, help="Only these; repeatable, or separated by commas.")
@model_option
@json_option
def fill(source: str, least: int, methods: Sequence[str], model: Path | None, as_json: bool) -> None:
    """The scores that are missing, each with an interval that is meant to hold it in 95 % of cases."""
    from neuco_extensions.predict.fill import how_well

    known, lower = open_source(source, least)
    names = known_methods(methods, known)
    fitted = fitted_on(known, model)
    low, high = fitted.interval()
    chosen = [known.methods.index(name) for name in names] or range(len(known.methods))
    empty = ~known.known  # computed once: a table may have millions of cells
    told = []
    for r, c in ((row, column) for row in chosen for column in empty[row].nonzero()[0]):
        score, *ends = (float(values[r, c]) for values in (fitted.scores, low, high))
        told.append((known.methods[r], known.tasks[c], *as_scored(score, ends[0], ends[1], known.tasks[c] in lower)))
    if as_json:
        keys = ("method", "task", "predicted", "low", "high")
        errors = {"error": fitted.mix.error, "mean_error": fitted.mix.mean_error}
        listed = [dict(zip(keys, one, strict=True)) for one in told]
        echo_json({"known": int(known.known.sum()), **errors, "cells": listed})
        return
    rows = [[method, task, f"{score:.4g}", f"{bottom:.4g} to {top:.4g}"] for method, task, score, bottom, top in told]
    if rows:
        prefix = common_prefix([row[1] for row in rows])
        click.echo(table(["method", "task", "predicted", "95 % interval"], rows, (2, 3), drop=(), prefix=prefix))
    said = f"{counted(len(rows), 'score')} predicted from {known.known.sum()} that are known: no scores, and never"
    say(f"{said} ranked.")
    say(f"{how_well(fitted.mix)} `neuco predict evaluate` says more.")
    if fitted.limits:
        say(fitted.limits)


@click.command(name="map")
@source_argument
@click.option(
    "--least", type=click.IntRange(min=3), default=3, show_default=True, help="Leave out who has fewer results."
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="An .svg file, or .json with all coordinates."
)
@json_option
def map_(source: str, least: int, out: Path | None, as_json: bool) -> None:
    """Draw methods and tasks as points of a plane: the nearer, the closer a method comes to a task's best score.

    Three distances fix a point, so who has fewer than 3 results is left out.
    """
    from neuco_core.errors import UsageError
    from neuco_core.files import replacing
    from neuco_core.jsonio import dump
    from neuco_core.site.figures import standalone
    from neuco_extensions.predict.map_figure import Drawing
    from neuco_extensions.predict.plane import fit_plane

    if out and out.suffix.lower() not in FIGURES:
        raise UsageError(
            "not a format of maps", where=out, expected=" or ".join(FIGURES), got=out.suffix or "no suffix"
        )
    known = open_table(source, 1)
    plane = fit_plane(known, least=least)
    drawing = Drawing(plane, {})
    if out:
        with replacing(out) as temporary:
            whole = out.suffix.lower() == ".json"
            temporary.write_bytes(dump(plane.to_json()) if whole else standalone(drawing.svg()).encode())
    if as_json:
        echo_json(plane.to_json())
        return
    for noun, points in (("method", plane.methods), ("task", plane.tasks)):
        ordered = sorted(points, key=lambda point: point.reach)
        rows = [_row(point) for point in ordered]
        head = [noun, f"distance to {'tasks' if noun == 'method' else 'methods'}", "group", "off by", "moves by"]
        click.echo(table(head, rows, (1, 2, 3, 4), prefix=common_prefix([point.name for point in points])))
    for words in plane.warnings("marked !"):
        say(words)
    left_out = len(known.methods) + len(known.tasks) - len(plane.points)
    if left_out:
        say(f"Left out, with fewer than {least} results: {counted(left_out, 'method or task')}.")
    if out:
        unnamed = drawing.labels.count(None)
        say(f"{out}" + (f", in which {unnamed} names found no room" if unnamed else ""))


def _row(point: Point) -> list[str]:
    marked = " !" if point.doubtful else ""
    return [
        point.name,
        f"{point.reach:.2f}",
        str(point.group or "–"),
        f"{point.error:.2f}",
        f"{point.moves:.2f}{marked}",
    ]
