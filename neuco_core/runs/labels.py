"""Labels of a run: whichever worker needs them first loads and verifies them, and the others take them over."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from pathlib import Path

import numpy as np

from neuco_core.fetch.cache import exclusive
from neuco_core.files import write_atomic
from neuco_core.specs import Task
from neuco_core.tables.labels import Labels

PLAIN = ("task", "kind", "sha256", "columns", "classes", "verified", "splitter")


def run_labels(task: Task, folder: str) -> Labels:
    """The labels of a task; ``folder`` is shared by the workers of a run, or "" where they share none."""
    shared = Path(folder)
    if not folder or not shared.is_dir():  # e.g. a dask worker on another machine
        return task.labels()
    with exclusive(shared / task.label):
        path = shared / f"{task.label}.npz"
        if not path.exists():
            labels = task.labels()
            with suppress(OSError):  # a full disk: the others load them as well
                write_atomic(path, _pack(labels))
            return labels
    return _unpack(path)


def _pack(labels: Labels) -> bytes:
    words = {name: getattr(labels, name) for name in PLAIN} | {"dropped": dict(labels.dropped), "ids": labels.ids}
    arrays = {"values": labels.values, "words": np.frombuffer(json.dumps(words).encode(), np.uint8)}
    arrays |= {name: part for name in ("groups", "split") if (part := getattr(labels, name)) is not None}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _unpack(path: Path) -> Labels:
    with np.load(path, allow_pickle=False) as arrays:
        words = json.loads(arrays["words"].tobytes())
        words = {name: tuple(value) if isinstance(value, list) else value for name, value in words.items()}
        return Labels(**words, values=arrays["values"], groups=arrays.get("groups"), split=arrays.get("split"))
