"""What ``neuco show`` tells beyond a declaration: the labels, whether they are pinned, the card, scores on record.

Nothing is fetched: what is not at hand is not told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuco_core.records.model import Record
    from neuco_core.specs import Content, Dataset, Method, Task

MOST = 5  # scores


def facts(spec: object) -> dict[str, Any]:
    """Facts by name, as plain JSON values."""
    from neuco_core.specs import Content, Dataset, Method, Task

    about: dict[type, Callable[[Any], dict[str, Any]]] = {Task: _task, Dataset: _dataset, Method: _method}
    told = next((tell(spec) for kind, tell in about.items() if isinstance(spec, kind)), {})
    return {**told, **(_card(spec) if isinstance(spec, Content) else {})}


def _card(spec: Content) -> dict[str, Any]:
    path = Path(spec.origin.source) / "README.md" if spec.origin else None
    return {"card": str(path)} if path and path.is_file() else {}


def _task(task: Task) -> dict[str, Any]:
    from neuco_core.fetch.pins import find_pin
    from neuco_core.plugins.catalog import task_protocol

    protocol = task_protocol(task).name
    best = sorted(_records(task=task.label, protocol=protocol), key=lambda record: -(record.q or 0.0))
    scores = [f"{r.method} Q {r.q:.2f} ({r.metric} {r.mean:.4f})" for r in best[:MOST] if r.q is not None]
    return {
        "pinned": find_pin(task.source) is not None,
        **_labels(task),
        "scored_under": protocol,
        "scores": scores + [f"and {len(best) - MOST} more"] * (len(best) > MOST),
    }


def _labels(task: Task) -> dict[str, Any]:
    from neuco_core.errors import NeucoError
    from neuco_core.fetch.fetch import cached, is_local
    from neuco_core.fetch.links import linked_file
    from neuco_core.fetch.pins import find_pin

    try:
        here = linked_file(task.dataset, task.source) is not None or cached(task.source) is not None
        if not here and not (is_local(task.source.url) and find_pin(task.source)):
            return {}
        labels = task.labels()
    except NeucoError as error:
        return {"labels": str(error)}
    values = labels.values.reshape(len(labels), -1)
    told: dict[str, Any] = {"labels": len(labels), "dropped_labels": sum(labels.dropped.values()) or None}
    if task.kind == "regression":
        told["label_range"] = "; ".join(f"{column.min():g} to {column.max():g}" for column in values.T)
        return told
    import numpy as np

    classes, counts = np.unique(values[:, 0], return_counts=True)
    return {**told, "classes": [f"{value:g}: {count}" for value, count in zip(classes, counts, strict=True)]}


def _dataset(dataset: Dataset) -> dict[str, Any]:
    from neuco_core.errors import NeucoError
    from neuco_core.plugins.catalog import list_tasks

    tasks = [task.label for task in list_tasks(dataset=dataset.id)]
    try:
        return {"samples": len(dataset), "tasks": tasks}
    except NeucoError as error:  # its cubes are elsewhere
        return {"samples": f"unknown: {error}", "tasks": tasks}


def _method(method: Method) -> dict[str, Any]:
    found: dict[str, list[float]] = {}
    for record in _records(method=method.label):
        if record.q is not None:
            found.setdefault(record.protocol, []).append(record.q)
    return {"scores": [f"mean Q {sum(q) / len(q):.2f} over {len(q)} tasks under {name}" for name, q in found.items()]}


def _records(**wanted: str) -> Iterator[Record]:
    """Records with a score; where some cannot be read, none is told."""
    from neuco_core.errors import NeucoError
    from neuco_core.paths import registry_dir
    from neuco_core.records.store import read_all

    names = ("method", "task", "protocol")
    try:
        for record in read_all(registry_dir()):
            if record.ok and wanted.items() <= dict(zip(names, record.key, strict=True)).items():
                yield record
    except NeucoError:
        return
