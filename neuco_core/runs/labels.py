"""The labels of a task, which the workers of a run load and verify once."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np

from neuco_core.fetch.cache import exclusive
from neuco_core.files import write_atomic
from neuco_core.specs import Task
from neuco_core.tables.labels import Labels


def shared_labels(task: Task, folder: str) -> Labels:
    """The labels of a task: whichever worker of a run needs them first loads and verifies them, the others read them.

    ``folder`` is shared by the workers of a run, or "" where they share none.
    """
    shared = Path(folder)
    if not folder or not shared.is_dir():  # e.g. a worker on another machine
        return task.labels()
    path = shared / f"{task.label}.labels"
    with exclusive(shared / task.label):
        if not path.exists():
            labels = task.labels()
            with suppress(OSError):  # a full disk: the others load them as well
                write_atomic(path, msgspec.msgpack.encode(labels, enc_hook=_pack_array))
            return labels
    return msgspec.msgpack.decode(path.read_bytes(), type=Labels, dec_hook=_unpack_array)


def _pack_array(array: np.ndarray) -> tuple[str, tuple[int, ...], bytes]:
    return array.dtype.str, array.shape, array.tobytes()


def _unpack_array(_: type, packed: tuple[str, tuple[int, ...], bytes]) -> np.ndarray:
    dtype, shape, data = packed
    return np.frombuffer(data, dtype).reshape(shape).copy()  # a buffer's own array is read-only
