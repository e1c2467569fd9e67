"""``neuco tasks | methods | datasets | suites | protocols | plugins``: what is registered."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any

import click

from neuco_core.cli import plugin_problems
from neuco_core.cli.options import ids_of, selection_options
from neuco_core.cli.output import clean, echo_rows, json_option, warn_of_suites
from neuco_core.env import require_registry, switched_on
from neuco_core.errors import NeucoError
from neuco_core.fetch.fetch import Pin, find_pins, user_pins
from neuco_core.fetch.links import dataset_root, linked_file
from neuco_core.plugins.catalog import catalog, list_datasets, list_methods, list_protocols, list_tasks
from neuco_core.specs import Task, to_json
from neuco_core.text import counted


@click.command()
@click.argument("patterns", nargs=-1, metavar="[ID|GLOB]...", shell_complete=ids_of("task"))
@selection_options
@json_option
def tasks(patterns: Sequence[str], tags: Sequence[str], as_json: bool, **conditions: Any) -> None:
    """List tasks. All conditions must hold; of several ids or globs, any."""
    specs = list_tasks(*patterns, tag=tags, **conditions)
    copied = set()
    for dataset in {task.dataset for task in specs}:
        with contextlib.suppress(NeucoError):  # a link that is wrong shows itself when the labels are asked for
            if dataset_root(dataset) is not None:
                copied.add(dataset)
    rows = []
    for task, task_pin in zip(specs, find_pins([task.source for task in specs]), strict=True):
        title = f"control: {task.title}" if task.control else task.title
        state = _state(task, task_pin, copied=task.dataset in copied)
        rows.append((task.id, task.dataset, task.kind, task.metric, str(task.version), state, title))
    _print(specs, ("task", "dataset", "kind", "metric", "v", "labels", "title"), rows, as_json, (4, 3, 5, 2))


@click.command()
@click.argument("patterns", nargs=-1, metavar="[ID|GLOB]...", shell_complete=ids_of("method"))
@click.option("--tag", "tags", multiple=True, help="Only methods with this tag; may be repeated.")
@json_option
def methods(patterns: Sequence[str], tags: Sequence[str], as_json: bool) -> None:
    """List methods."""
    specs = list_methods(*patterns, tag=tags)
    rows = [
        (m.id, "file" if m.files else "encoder", str(m.dim or "?"), str(m.version), " ".join(m.requires), m.title)
        for m in specs
    ]
    _print(specs, ("method", "by", "dim", "v", "needs", "title"), rows, as_json, (3, 1, 4))


@click.command()
@json_option
def datasets(as_json: bool) -> None:
    """List datasets."""
    specs = list_datasets()
    rows = [
        (d.id, str(d.version), str(len(d.bands)), str(len(d.seasons)), "yes" if d.synthetic else "no", d.title)
        for d in specs
    ]
    _print(specs, ("dataset", "v", "bands", "seasons", "synthetic", "title"), rows, as_json, (1, 4, 3))


@click.command()
@json_option
def suites(as_json: bool) -> None:
    """List suites: lists of task versions that are compared together."""
    require_registry()
    good, _ = catalog().survey_suites()
    if switched_on("NEUCO_STRICT"):
        catalog().suites()
    specs = list(good.values())
    rows = [(s.id, str(s.version), str(len(s.tasks)), s.protocol, s.title) for s in specs]
    _print(specs, ("suite", "v", "tasks", "protocol", "title"), rows, as_json, (1, 3))
    warn_of_suites()


@click.command()
@json_option
def protocols(as_json: bool) -> None:
    """List protocols: how scores are computed."""
    specs = list_protocols()
    rows = [(p.name, p.probe, str(p.k), p.select, p.description) for p in specs]
    _print(specs, ("protocol", "probe", "k", "selects", "what it is"), rows, as_json, (3,))


@click.command()
@json_option
def plugins(as_json: bool) -> None:
    """List plugins; for a broken one, say where it fails and why."""
    working, _ = catalog().plugins.survey()
    problems = plugin_problems()
    rows: list[dict[str, Any]] = []
    for plugin in working:
        registers = [f"{noun} {spec.id}" for noun, spec in plugin.specs]
        source = str(plugin.candidate.origin())
        rows.append({"name": plugin.candidate.name, "status": "ok", "source": source, "registers": registers})
    rows += [{"status": "broken", **dataclasses.asdict(problem)} for problem in problems]
    cells = [(r["name"], r["status"], str(len(r.get("registers", ()))), r.get("file") or r["source"]) for r in rows]
    echo_rows(as_json, rows, ("plugin", "status", "registers", "where"), cells, right={2})
    for problem in () if as_json else problems:
        click.echo(clean(f"broken: {problem}"), err=True)


def _print(
    specs: Sequence[object], headers: Sequence[str], rows: Sequence[Sequence[str]], as_json: bool, drop: Sequence[int]
) -> None:
    echo_rows(as_json, [to_json(spec) for spec in specs], headers, rows, drop=drop)
    problems = catalog().problems()
    if problems:
        click.echo(f"{counted(len(problems), 'broken plugin')} left out: run `neuco plugins`", err=True)


def _state(task: Task, pin: Pin | None, *, copied: bool) -> str:
    """Where labels come from: the package, a pinned remote, the dataset's local copy, or nowhere yet."""
    with contextlib.suppress(NeucoError):  # as above, of a file in it
        if copied and linked_file(task.dataset, task.source) is not None:
            return "linked"
    if task.source.url.startswith("pkg:"):
        return "embedded" if task.source.pinned else "unpinned"
    if pin is None:
        return "unpinned"
    return "pinned by you" if pin.source == str(user_pins()) else "pinned"
