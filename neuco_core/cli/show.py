"""``neuco show NAME``: all that is known of one task, method, dataset, suite or protocol."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from neuco_core.cli.complete import ids_of
from neuco_core.cli.output import clean, echo_json, json_option


@click.command()
@click.argument("name", shell_complete=ids_of("task", "method", "dataset", "suite"))
@click.option(
    "--images",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw a few samples of the task NAME into this file (PNG, SVG or PDF).",
)
@json_option
def show(name: str, images: Path | None, as_json: bool) -> None:
    """Show what is known of NAME: a task, method, dataset, suite, protocol, metric, probe or splitter.

    Besides what it declares: labels, pins, its card and scores on record. Nothing is fetched for that. --images
    reads the labels and a few samples of a task, and draws these in true colour, one picture for each season.
    """
    if images is not None:
        _draw(name, images)
        return
    specs = _find(name)
    if as_json:
        echo_json([{"noun": noun, **spec} for noun, spec in specs])
        return
    click.echo("\n\n".join("\n".join(_lines(noun, spec)) for noun, spec in specs))


def _draw(name: str, path: Path) -> None:
    from neuco_core.cubes.pictures import pictures, sheet
    from neuco_core.figures import check_target, save
    from neuco_core.plugins.catalog import load_task

    check_target(path)
    task = load_task(name)
    found = pictures(task)
    save(sheet(task, found), path, dpi=160)
    click.echo(f"{len(found)} samples of {task.label}: {path}")


def _find(name: str) -> list[tuple[str, dict[str, Any]]]:
    """One name may stand for several nouns, e.g. a dataset and the suite of its tasks."""
    from neuco_core.cli.show_known import facts
    from neuco_core.errors import UnknownIdError
    from neuco_core.plugins.catalog import PROTOCOLS, catalog
    from neuco_core.plugins.discovery import NOUNS
    from neuco_core.specs import to_json

    suites, bad = catalog().survey_suites()
    if name in bad:
        raise bad[name]
    by_noun: dict[str, Any] = {noun: catalog().plugins.find(noun, name) for noun in NOUNS}
    by_noun |= {"suite": suites.get(name), "protocol": PROTOCOLS.get(name)}
    specs = [(noun, {**to_json(spec), "known": facts(spec)}) for noun, spec in by_noun.items() if spec is not None]
    if not specs:
        known = {key for noun in NOUNS for key in catalog().plugins.collect(noun)[0]}
        known |= {key for noun in NOUNS for key in catalog().plugins.versions(noun, name) if "@" in name}
        hint = "See `neuco tasks`, `neuco methods`, `neuco datasets`, `neuco suites`, `neuco protocols`"
        raise UnknownIdError("entry", name, known | set(suites) | set(PROTOCOLS), hint)
    return specs


def _lines(noun: str, spec: Mapping[str, Any]) -> list[str]:
    lines = [f"{noun} {spec.get('id') or spec.get('name')}"]
    for key, value in _flat(spec):
        if key not in ("id", "name") and value not in (None, "", [], {}):
            lines.append(clean(f"  {key:<18} {value}"))
    return lines


def _flat(value: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for key, item in value.items():
        if isinstance(item, Mapping):
            rows += _flat(item, "" if key == "known" else f"{prefix}{key}.")
        else:
            text = ", ".join(map(str, item)) if isinstance(item, list) else item
            text = "nothing" if key == "pretraining" and item == [] else text  # which is not the same as unknown
            rows.append((prefix + key, " ".join(text.split()) if isinstance(text, str) else text))
    return rows
