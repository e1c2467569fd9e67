"""``neuco score``: a method, or a file of embeddings, on tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neuco_core.cli.complete import ids_of
from neuco_core.cli.matrix import matrix_options
from neuco_core.cli.options import (
    choose_protocol,
    choose_tasks,
    exact_ids,
    progress_bar,
    prompt_interrupt,
    protocol_options,
    task_options,
)
from neuco_core.cli.output import echo_json, json_option, table

if TYPE_CHECKING:
    from neuco_core.protocol import Protocol
    from neuco_core.runs.cells import Cell
    from neuco_core.runs.sources import Source


@click.command()
@click.option(
    "--method", "methods", multiple=True, shell_complete=ids_of("method"), help="A registered method; repeatable."
)
@click.option(
    "--embeddings",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A CSV, Parquet, NPZ or NPY file; repeatable.",
)
@task_options
@protocol_options
@click.option("--strict", is_flag=True, help="Refuse a file with missing values instead of taking them as 0.")
@click.option("--dry-run", is_flag=True, help="Only say what would be scored.")
@json_option
@matrix_options
def score(
    methods: Sequence[str],
    files: Sequence[Path],
    tasks: Sequence[str],
    suite: str | None,
    kind: str | None,
    tags: Sequence[str],
    dataset: str | None,
    protocol: str | None,
    strict: bool,
    dry_run: bool,
    threads: int | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Score methods or files on tasks; without conditions, on every task.

    A file is scored on the tasks whose ids it holds. Tasks that cannot be scored are listed with the reason. The
    exit code is 1 if a score failed, if a task given by its id was skipped, or if nothing was scored.
    """
    from neuco_core.errors import ScoreError, UsageError
    from neuco_core.runs.cells import plan_cells, score_cells, verdict

    if not methods and not files:
        raise UsageError("nothing to score", hint="Say --method ID or --embeddings FILE; see `neuco methods`")
    chosen = choose_tasks(tasks, suite, kind, tags, dataset)
    rules = choose_protocol(protocol, suite, **settings)
    sources = _sources(methods, files, strict, rules)
    asked = exact_ids(tasks)
    if dry_run:
        cells = plan_cells(sources, chosen)
    else:
        known = dataset is not None or bool(asked)
        with prompt_interrupt(), progress_bar() as progress:
            found = score_cells(sources, chosen, rules, threads=threads, progress=progress, same_dataset=known)
            cells = list(found)
    _show(cells, sources, rules, as_json)
    problem = verdict(cells, asked)
    if problem:
        raise ScoreError(problem)


def _sources(methods: Sequence[str], files: Sequence[Path], strict: bool, rules: Protocol) -> list[Source]:
    from neuco_core.plugins.catalog import load_method
    from neuco_core.runs.sources import FileSource, MethodSource

    found: list[Source] = [MethodSource(load_method(name)) for name in dict.fromkeys(methods)]
    names = [path.name for path in dict.fromkeys(files)]
    for path in dict.fromkeys(files):
        name = path.name if names.count(path.name) == 1 else str(path)
        found.append(FileSource(path, name=name, strict=strict, dim=rules.embedding_dim))
    return found


def _show(cells: Sequence[Cell], sources: Sequence[Source], rules: Protocol, as_json: bool) -> None:
    from neuco_core.jsonio import jsonable
    from neuco_core.runs.cells import told
    from neuco_core.specs import to_json

    if as_json:
        described = {source.name: source.describe() for source in sources}
        found = {"protocol": to_json(rules), "sources": described, "cells": [cell.to_json() for cell in cells]}
        echo_json(jsonable(found))
        return
    several = len(sources) > 1
    rows = [[cell.source] * several + _row(cell) for cell in cells if cell.score is not None]
    planned = [[cell.source] * several + [cell.task.id, cell.task.dataset] for cell in cells if cell.status == "ready"]
    if planned:
        click.echo(table(["source"] * several + ["would be scored", "dataset"], planned))
    if rows:
        head = ["source"] * several + ["task", "metric", "mean ± std", "Q", "samples", "baseline"]
        click.echo(table(head, rows, right=(several + 2, several + 3, several + 4)))
    if rows or planned:
        click.echo(f"protocol {rules.name}: {rules.k} splits, seed {rules.seed}")
    for line in _replaced(cells):
        click.echo(line)
    named = [
        (cell.status, f"{cell.source} on {cell.task.id}" if several else cell.task.id, cell.reason) for cell in cells
    ]
    for line in told(named):
        click.echo(line)


def _replaced(cells: Sequence[Cell]) -> list[str]:
    """Values that were missing or no numbers, and so count as 0, once for each source."""
    counts = {cell.source: cell.score.samples["replaced_values"] for cell in cells if cell.score is not None}
    return [
        f"{name}: {count} values are missing or no numbers and count as 0; --strict refuses them"
        for name, count in counts.items()
        if count
    ]


def _row(cell: Cell) -> list[str]:
    found = cell.score
    if found is None:
        return []
    used, labels = found.samples["used"], found.samples["labels"]
    samples = f"{used}" if used == labels else f"{used} of {labels}"
    return [
        cell.task.id,
        found.metric,
        f"{found.mean:.4f} ± {found.std:.4f}",
        number(found.q),
        samples,
        _baseline(cell),
    ]


def _baseline(cell: Cell) -> str:
    from neuco_core.runs.cells import baseline_check

    check = baseline_check(cell.task, cell.source, cell.score) if cell.score else None
    if check is None:
        return "–"
    said = {True: " met", False: " NOT MET", None: f" ({check['method']}, {check['protocol']})"}[check["met"]]
    return f"{check['score']:.4f} ± {check['tolerance']:.4f}{said}"


def number(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "undefined"
