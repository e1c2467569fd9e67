"""``neuco show NAME``: all that is known of one task, method, dataset, suite or protocol.

Besides what it declares: the labels, whether they are pinned, the card, scores on record. Nothing is fetched for that:
what is not at hand is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from neuco_core.cli.options import ids_of
from neuco_core.cli.output import clean, echo_json, json_option
from neuco_core.env import registry_dir
from neuco_core.errors import NeucoError, UnknownIdError
from neuco_core.fetch.fetch import find_pin
from neuco_core.fetch.links import labels_here
from neuco_core.plugins.catalog import PROTOCOLS, catalog, list_tasks, load_task, task_protocol
from neuco_core.plugins.discovery import NOUNS
from neuco_core.records.model import Record
from neuco_core.records.store import read_all
from neuco_core.specs import Content, Dataset, Method, Probe, Task, to_json
from neuco_core.text import counted

MOST = 5  # scores
EPOCHS = ("epochs", "batch_size", "lr", "weight_decay", "select")  # of a protocol, used by probes that learn in epochs


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
        # heavy: pictures
        from neuco_core.cubes.pictures import pictures, sheet
        from neuco_core.figures import check_target, save

        check_target(images)
        task = load_task(name)
        samples = pictures(task)
        save(sheet(task, samples), images, dpi=160)
        click.echo(f"{len(samples)} samples of {task.label}: {images}")
        return
    specs = _find(name)
    if as_json:
        echo_json([{"noun": noun, **spec} for noun, spec in specs])
        return
    for number, (noun, spec) in enumerate(specs):
        click.echo(("\n" if number else "") + f"{noun} {spec.get('id') or spec.get('name')}")
        for key, value in _flat(spec):
            if key not in ("id", "name") and value not in (None, "", [], {}):
                click.echo(clean(f"  {key:<18} {value}"))


def _find(name: str) -> list[tuple[str, dict[str, Any]]]:
    """One name may stand for several nouns, e.g. a dataset and the suite of its tasks."""
    suites, bad = catalog().survey_suites()
    if name in bad:
        raise bad[name]
    by_noun: dict[str, Any] = {noun: catalog().plugins.find(noun, name) for noun in NOUNS}
    by_noun |= {"suite": suites.get(name), "protocol": PROTOCOLS.get(name)}
    specs = [(noun, {**to_json(spec), "known": _facts(spec)}) for noun, spec in by_noun.items() if spec is not None]
    for noun, spec in specs:
        if noun == "protocol" and not catalog().load(Probe, spec["probe"]).epochs:
            for unused in EPOCHS:
                del spec[unused]
    if not specs:
        ids = {key for noun in NOUNS for key in catalog().plugins.collect(noun)[0]}
        ids |= {key for noun in NOUNS for key in catalog().plugins.versions(noun, name) if "@" in name}
        hint = "See `neuco tasks`, `neuco methods`, `neuco datasets`, `neuco suites`, `neuco protocols`"
        raise UnknownIdError("entry", name, ids | set(suites) | set(PROTOCOLS), hint)
    return specs


def _flat(value: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for key, item in value.items():
        if isinstance(item, Mapping):
            rows += _flat(item, "" if key == "known" else f"{prefix}{key}.")
        else:
            text = ", ".join(map(str, item)) if isinstance(item, list | tuple) else item
            if key == "pretraining" and item in ([], ()):
                text = "nothing"  # which is not the same as unknown
            rows.append((prefix + key, " ".join(text.split()) if isinstance(text, str) else text))
    return rows


def _facts(spec: object) -> dict[str, Any]:
    """Facts by name, as plain JSON values."""
    facts: dict[str, Any] = {}
    if isinstance(spec, Task):
        facts = _task_facts(spec)
    elif isinstance(spec, Dataset):
        facts = {"tasks": [task.label for task in list_tasks(dataset=spec.id)]}
        try:
            facts["samples"] = len(spec)
        except NeucoError as error:  # its cubes are elsewhere
            facts["samples"] = f"unknown: {error}"
    elif isinstance(spec, Method):
        by_protocol: dict[str, list[float]] = {}
        for record in _records(method=spec.label):
            if record.q is not None:
                by_protocol.setdefault(record.protocol, []).append(record.q)
        means = [
            f"mean Q {sum(q) / len(q):.2f} over {counted(len(q), 'task')} under {name}"
            for name, q in by_protocol.items()
        ]
        facts = {"scores": means}
    if isinstance(spec, Content) and spec.origin:
        card = Path(spec.origin.source) / "README.md"
        if card.is_file():
            facts["card"] = str(card)
    return facts


def _task_facts(task: Task) -> dict[str, Any]:
    protocol = task_protocol(task).name
    best = sorted(_records(task=task.label, protocol=protocol), key=lambda record: -(record.q or 0.0))
    scores = [f"{r.method} Q {r.q:.2f} ({r.metric} {r.mean:.4f})" for r in best[:MOST] if r.q is not None]
    if len(best) > MOST:
        scores.append(f"and {len(best) - MOST} more")
    facts: dict[str, Any] = {"pinned": find_pin(task.source) is not None, "scored_under": protocol, "scores": scores}
    try:
        if not labels_here(task):
            return facts
        labels = task.labels()
    except NeucoError as error:
        return facts | {"labels": str(error)}
    values = labels.values.reshape(len(labels), -1)
    facts |= {"labels": len(labels), "dropped_labels": sum(labels.dropped.values()) or None}
    if task.kind == "regression":
        return facts | {"label_range": "; ".join(f"{column.min():g} to {column.max():g}" for column in values.T)}
    import numpy as np  # heavy: loaded by now, with the labels

    classes, counts = np.unique(values[:, 0], return_counts=True)
    return facts | {"classes": [f"{value:g}: {count}" for value, count in zip(classes, counts, strict=True)]}


def _records(**wanted: str) -> Iterator[Record]:
    """Records with a score; where some cannot be read, none is shown."""
    with suppress(NeucoError):
        for record in read_all(registry_dir()):
            key = dict(zip(("method", "task", "protocol"), record.key, strict=True))
            if record.ok and wanted.items() <= key.items():
                yield record
