"""What is behind a score: its splits, its record, and the command that verifies it; for scripts, by method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuco_core.boards.model import rounded
from neuco_core.boards.views.site.html import literal
from neuco_core.boards.views.site.source import BoardSource
from neuco_core.text import clean

# Label → the field of a record's inputs.
HASHES = {"Labels (sha256)": "labels", "Embeddings (sha256)": "embeddings"}
CODE = ("metric_code", "probe_code", "splitter_code", "scorer")


def facts(source: BoardSource, method: str, task: str) -> list[tuple[str, str]]:
    """What the record of a cell says besides its scores; nothing if the board was not made of records."""
    record = source.records.get((method, task))
    if record is None:
        return []
    made, inputs = record.provenance, record.inputs
    samples = record.samples
    found = {
        "Protocol": record.protocol,
        "Samples": f"{samples['used']} used, {samples['train']} to train, {samples['test']} to test" if samples else "",
        "Versions": f"method {record.method_version}, task {record.task_version}",
        "Code": ", ".join(f"{name.removesuffix('_code')} {inputs.get(name)}" for name in CODE if inputs.get(name)),
        **{label: str(inputs.get(name) or "") for label, name in HASHES.items()},
        "Record": record.fingerprint,
        "Scored": str(made.get("time", "")),
        "Seconds": str(made.get("seconds", "")),
        "Made with": _made_with(made),
    }
    return [(label, clean(value)) for label, value in found.items() if value]


def _made_with(made: dict[str, Any]) -> str:
    packages = made.get("packages")
    named = [f"{name} {version}" for name, version in packages.items()] if isinstance(packages, dict) else []
    first = [f"{name} {made[name]}" for name in ("neuco", "python") if name in made]
    return ", ".join((*first, *named, *([str(made["platform"])] if "platform" in made else [])))


def command(source: BoardSource, method: str, task: str) -> str:
    """The line that runs the score again and compares it with the record."""
    record = source.records.get((method, task))
    return f"neuco verify {'/'.join(record.key[:2])}" if record else ""


def script(source: BoardSource, method: str, against: Mapping[str, Any]) -> str:
    """The cells of a method and its differences to others, for the page, which loads them when they are asked for."""
    tasks = {}
    for task in source.board.tasks:
        cell = source.cells.cell(method, task.id) if source.cells else None
        if cell is not None and cell.splits:
            tasks[task.id] = {
                "splits": rounded(list(cell.splits), 6),
                "facts": facts(source, method, task.id),
                "command": command(source, method, task.id),
            }
    return f"neuco.give({literal(method)}, {literal({'tasks': tasks, 'against': against})});\n"
