"""Embeddings that an encoder made, kept under a name that says from what: data, method, parameters and code."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuco_core.fetch.cache import cache_dir
from neuco_core.files import write_atomic

if TYPE_CHECKING:
    from neuco_core.cubes.cubes import CubeSource
    from neuco_core.specs import Dataset, Method

LAYOUT = 1
# Modules outside a method's own folder whose change may change what shipped encoders give.
SHARED_CODE = ("encoders.py",)


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
    code = code_hash(method.encoder)
    if code is None:
        return None
    identity = {
        "layout": LAYOUT,
        "dataset": [dataset.id, dataset.version, source.version, list(source.bands), list(source.seasons)],
        "method": [method.id, method.version],
        "params": dict(params),
        "code": code,
        "packages": {name: _version(name) for name in ("numpy", *method.requires)},
    }
    text = json.dumps(identity, sort_keys=True, allow_nan=False)
    key = hashlib.sha256(text.encode()).hexdigest()[:32]
    return EncodeCache(cache_dir() / "encoded" / method.id / dataset.id, key)


def code_hash(function: Callable[..., Any] | None) -> str | None:
    """The sha256 of the Python files beside the encoder's module, its tests left out."""
    while isinstance(function, functools.partial):
        function = function.func
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    name = getattr(module, "__file__", None)
    if name is None or not Path(name).is_file():
        return None
    path = Path(name)
    # A package may be spread over files; of a lone module among others (a test, a script) only itself counts.
    files = sorted(path.parent.glob("*.py")) if path.name == "__init__.py" else [path]
    files = [file for file in files if file.name != "test.py"]
    files += [Path(__file__).parent.with_name(shared) for shared in SHARED_CODE]
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _version(requirement: str) -> str:
    try:
        return metadata.version(requirement)
    except metadata.PackageNotFoundError:
        return ""


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
