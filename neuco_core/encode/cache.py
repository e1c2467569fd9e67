"""Embeddings that an encoder made, kept under a name that says from what: data, method, parameters and code."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuco_core.env import installed_version
from neuco_core.fetch.cache import cache_dir
from neuco_core.files import write_atomic
from neuco_core.plugins.code import code_key, home_of

if TYPE_CHECKING:
    from neuco_core.cubes.cubes import CubeSource
    from neuco_core.specs import Dataset, Method

LAYOUT = 2


class EncodeCache:
    """The finished embeddings ``<key>.npz`` of one run, and beside it a folder with the chunks done so far."""

    def __init__(self, folder: Path, key: str) -> None:
        self.path = folder / f"{key}.npz"
        self.chunks = folder / key

    def load(self, ids: tuple[str, ...]) -> np.ndarray | None:
        """The finished values; a damaged file counts as none and is made again."""
        return _read(self.path, ids)

    def load_chunk(self, start: int, ids: tuple[str, ...]) -> np.ndarray | None:
        return _read(self._chunk(start), ids)

    def save_chunk(self, start: int, ids: tuple[str, ...], values: np.ndarray) -> None:
        write_atomic(self._chunk(start), _pack(ids, values))

    def finish(self, ids: tuple[str, ...], values: np.ndarray) -> None:
        write_atomic(self.path, _pack(ids, values))
        shutil.rmtree(self.chunks, ignore_errors=True)

    def _chunk(self, start: int) -> Path:
        return self.chunks / f"{start:07d}.npz"


def open_cache(method: Method, dataset: Dataset, source: CubeSource, params: Mapping[str, Any]) -> EncodeCache | None:
    """The place for this run, or None if the encoder's code cannot be found, e.g. typed into a session."""
    code = code_key(method.encoder, home_of(method), files=True)
    if code is None:
        return None
    identity = {
        "layout": LAYOUT,
        "dataset": [dataset.id, dataset.version, source.version, list(source.bands), list(source.seasons)],
        "method": [method.id, method.version],
        "params": dict(params),
        "code": code,
        "packages": {name: installed_version(name) for name in ("numpy", *method.requires)},
    }
    text = json.dumps(identity, sort_keys=True, allow_nan=False)
    key = hashlib.sha256(text.encode()).hexdigest()[:32]
    return EncodeCache(cache_dir() / "encoded" / method.id / dataset.id, key)


def _pack(ids: tuple[str, ...], values: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, ids=_id_hash(ids), values=np.ascontiguousarray(values, dtype=np.float32))
    return buffer.getvalue()


def _read(path: Path, ids: tuple[str, ...]) -> np.ndarray | None:
    try:
        # Opened here: numpy leaves a file open that it cannot read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            stored, values = archive["ids"], archive["values"]
    except FileNotFoundError:
        return None
    except Exception:  # a broken zip shows itself in many ways; all of them mean: make it again
        return None
    if not np.array_equal(stored, _id_hash(ids)) or values.ndim != 2 or len(values) != len(ids):
        return None
    return np.asarray(values, dtype=np.float32)


def _id_hash(ids: tuple[str, ...]) -> np.ndarray:
    return np.frombuffer(hashlib.sha256("\0".join(ids).encode()).digest(), dtype=np.uint8)
