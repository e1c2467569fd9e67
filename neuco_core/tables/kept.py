"""Binary copies of large CSV files of embeddings, so that the next run need not read the text again.

A copy is named by the sha256 of the CSV file, which is computed every time, and by the code that read it. It carries a
seal: a hash of its name, ids, values and counts. So a copy that is damaged, cut off, or another one's is noticed,
thrown away and made again. A seal is no signature: who can write to the cache can seal what they like, and so
``neuco verify`` and ``--fresh`` read the CSV file itself.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from neuco_core.errors import DataError
from neuco_core.fetch.cache import TABLES, cache_dir
from neuco_core.files import replacing
from neuco_core.tables.embeddings import Embeddings, make_embeddings

MOST_BYTES = 4 << 30  # of all copies; the one that was not used for the longest time goes first
READERS = ("csv_kernel.py", "csv_quick.py", "embeddings_csv.py", "rows.py", "embeddings.py", "kept.py")
BLOCK = 8 << 20  # large, because after each of them another thread may have its turn
log = logging.getLogger(__name__)


@cache
def reader_version() -> str:
    """A hash of the code that reads a CSV file: whatever changes in it, older copies are not used any more."""
    folder = Path(__file__).parent
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in READERS)).hexdigest()[:16]


@dataclass(frozen=True)
class Copy:
    """The place of a copy, whether it is there or not; ``sha256`` is the CSV file's."""

    path: Path
    sha256: str

    def load(
        self, where: object = "", *, columns: Sequence[str] = (), ignored: Sequence[str] = ()
    ) -> Embeddings | None:
        """What it holds; a copy that is not what its name says is removed."""
        try:
            with self.path.open("rb") as file:
                head = json.loads(file.readline())
                values = np.fromfile(file, "<f4").reshape(head["shape"]).astype(np.float32, copy=False)
            found = make_embeddings(
                head["ids"], values, replaced=head["replaced"], where=where, columns=columns, ignored=ignored
            )
            intact = head["seal"] == self._seal(found)
        except FileNotFoundError:
            return None
        except Exception:  # damage shows itself in many ways; all of them mean: read the CSV file
            intact = False
        if intact:
            with suppress(OSError):
                os.utime(self.path)  # to be the last to go
            return found
        log.warning("a damaged copy of a CSV file is not used: %s", self.path)
        with suppress(OSError):
            self.path.unlink()
        return None

    def save(self, embeddings: Embeddings, name: str) -> None:
        """Keep embeddings. A disk that is full or read-only is nobody's failure: the next run reads the CSV again."""
        head: dict[str, Any] = {"file": name, "ids": embeddings.ids, "replaced": dict(embeddings.replaced)}
        head |= {"shape": embeddings.values.shape, "seal": self._seal(embeddings)}
        if embeddings.values.nbytes > MOST_BYTES:
            return
        try:
            with replacing(self.path) as target, target.open("wb") as file:
                file.write(json.dumps(head).encode() + b"\n")
                embeddings.values.astype("<f4", copy=False).tofile(file)
        except DataError as error:
            log.warning("a copy of %s for the next run is not kept: %s", name, error)
        _make_room()

    def _seal(self, embeddings: Embeddings) -> str:
        facts = [self.path.name, embeddings.sha256, sorted(embeddings.replaced.items())]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()

    def describe(self) -> dict[str, Any]:
        """For people: the file that it is a copy of, by the name that it had."""
        try:
            with self.path.open("rb") as file:
                name = str(json.loads(file.readline())["file"])
        except (OSError, ValueError, KeyError, TypeError):
            name = self.path.name
        return {"sha256": self.sha256, "size": self.path.stat().st_size, "name": name, "path": str(self.path)}


def copy_of(path: Path) -> Copy | None:
    """Where the copy of a CSV file is or would be; None if there is no place for one."""
    try:
        with path.open("rb") as file:
            hashed = hashlib.sha256()
            while block := file.read(BLOCK):
                hashed.update(block)
        digest = hashed.hexdigest()
        return Copy(cache_dir() / TABLES / f"{digest}-{reader_version()}.bin", digest)
    except (OSError, DataError):  # it is said where it matters; what is installed without source has no version
        return None


def copies() -> list[Copy]:
    """All copies in the cache, also those of other versions."""
    return [Copy(path, path.name.partition("-")[0]) for path in sorted((cache_dir() / TABLES).glob("[!.]*.bin"))]


def _make_room() -> None:
    with suppress(OSError, DataError):
        files = sorted((copy.path.stat().st_mtime, copy.path.stat().st_size, copy.path) for copy in copies())
        total = sum(size for _, size, _ in files)
        for _, size, path in files:
            if total <= MOST_BYTES:
                return
            path.unlink(missing_ok=True)
            total -= size
