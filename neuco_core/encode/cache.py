"""Embeddings that an encoder made, kept under a name that says from what: data, method, parameters and code.

Each file carries a seal: a hash of its key, its ids and its values. So a file that was damaged, cut off, or put in
another one's place is noticed and made again. A seal is no signature: who replaces a file on purpose can make the
seal, too. Therefore a run also compares with the hashes in records (``known``), and ``neuco verify`` reads no cache.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuco_core.encode.lock import weight_hashes
from neuco_core.env import installed_version, requirement_name
from neuco_core.fetch.cache import cache_dir
from neuco_core.files import write_atomic
from neuco_core.plugins.code_key import code_key, home_of
from neuco_core.tables.embeddings import content_hash

if TYPE_CHECKING:
    from neuco_core.cubes.cubes import CubeSource
    from neuco_core.specs import Dataset, Method

LAYOUT = 4
log = logging.getLogger(__name__)


class EncodeCache:
    """The finished embeddings ``<key>.npz`` of one run, and beside it a folder with the chunks done so far.

    If they cannot be written, a ``spare`` folder takes them: the workers of a run share it, so that what one of them
    made is not made again by the others.
    """

    def __init__(self, folder: Path, key: str, spare: Path | None = None) -> None:
        self.key = key
        self.path = folder / f"{key}.npz"
        self.was_read = False
        self._spare = spare
        self._folders = [folder, *([spare / "encoded" / folder.parent.name / folder.name] if spare else [])]
        self._targets = list(self._folders)

    def load(self, ids: tuple[str, ...]) -> np.ndarray | None:
        """The finished values; a damaged file counts as none and is made again."""
        return self._read(self.path.name, ids)

    def load_chunk(self, start: int, ids: tuple[str, ...]) -> np.ndarray | None:
        return self._read(self._chunk(start), ids)

    def save_chunk(self, start: int, ids: tuple[str, ...], values: np.ndarray) -> None:
        self._write(self._chunk(start), ids, values)

    def finish(self, ids: tuple[str, ...], values: np.ndarray) -> None:
        self._write(self.path.name, ids, values)
        for folder in self._folders:
            shutil.rmtree(folder / self.key, ignore_errors=True)

    def _chunk(self, start: int) -> str:
        return f"{self.key}/{start:07d}.npz"

    def _seal(self, ids: tuple[str, ...], values: np.ndarray) -> str:
        return hashlib.sha256(f"{self.key} {content_hash(ids, values)}".encode()).hexdigest()

    def _write(self, name: str, ids: tuple[str, ...], values: np.ndarray) -> None:
        """Keep some rows. A full or read-only disk is no fault of the method: the run goes on without a cache."""
        values = np.ascontiguousarray(values, dtype=np.float32)
        buffer = io.BytesIO()
        np.savez(buffer, seal=np.array(self._seal(ids, values)), values=values)
        for folder in list(self._targets):
            try:
                write_atomic(folder / name, buffer.getvalue())
            except OSError as error:
                self._targets.remove(folder)
                if self._first_to_tell():
                    reason = error.strerror or str(error)
                    log.warning("embeddings cannot be kept in %s: %s. Going on without", cache_dir(), reason)
            else:
                break

    def _first_to_tell(self) -> bool:
        """Whether no other worker has told of this yet."""
        try:
            if self._spare:
                (self._spare / "cache-told").touch(exist_ok=False)
        except OSError as error:
            return not isinstance(error, FileExistsError)
        return True

    def _read(self, name: str, ids: tuple[str, ...]) -> np.ndarray | None:
        found = (self._read_file(folder / name, ids) for folder in self._folders)
        return next((values for values in found if values is not None), None)

    def _read_file(self, path: Path, ids: tuple[str, ...]) -> np.ndarray | None:
        try:
            # Opened here: numpy leaves a file open that it cannot read.
            with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                seal, values = str(archive["seal"]), archive["values"]
            intact = values.dtype == np.float32 and values.ndim == 2 and seal == self._seal(ids, values)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except Exception:  # a broken zip shows itself in many ways; all of them mean: make it again
            intact = False
        if not intact:
            log.warning("damaged embeddings in the cache are made again: %s", path)
            return None
        self.was_read = True
        return np.asarray(values)


def open_cache(
    method: Method,
    dataset: Dataset,
    source: CubeSource,
    params: Mapping[str, Any],
    run: Path | None = None,
    device: str = "cpu",
    spare: Path | None = None,
) -> EncodeCache | None:
    """The place for these embeddings, or None if code that makes them cannot be found, e.g. typed into a session.

    ``run`` is a folder of one run that starts empty: its workers share what one of them made, and nobody else does.
    ``spare`` is such a folder for the case that the cache cannot be written.
    """
    place = Path("encoded", method.id, dataset.id)
    if run is not None:
        return EncodeCache(run / place, "run")
    code = code_key(method.encoder, home_of(method))
    cubes = code_key(dataset.cubes, home_of(dataset))
    if code is None or cubes is None:
        return None
    identity = {
        "layout": LAYOUT,
        "dataset": [dataset.id, dataset.version, source.version, list(source.bands), list(source.seasons), cubes],
        "method": [method.id, method.version],
        "params": dict(params),
        "code": code,
        "packages": {name: installed_version(name) for name in {"numpy", *map(requirement_name, method.requires)}},
        **({"weights": weight_hashes(method)} if method.weights else {}),
        **({"device": device} if device != "cpu" else {}),
    }
    text = json.dumps(identity, sort_keys=True, allow_nan=False)
    return EncodeCache(cache_dir() / place, hashlib.sha256(text.encode()).hexdigest()[:32], spare)
