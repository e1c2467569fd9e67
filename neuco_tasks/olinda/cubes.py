"""The patches, read from the file beside this module."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuco_core.cubes.cubes import CubeBatch
from neuco_core.errors import DataError
from neuco_core.fetch.fetch import fetch
from neuco_core.specs import Remote

CUBES = Remote(
    "pkg://neuco_tasks.olinda/cubes.npz",
    sha256="dda5cd1344f61c4ac63bc2180a8d39b964208731eccd5b2ff9fb2608822c66be",
    size=630849,
)


class OlindaCubes:
    """All patches in memory: 0.7 MB. Values are the sensor's digital numbers, 0 to 255."""

    version: str = f"1-{CUBES.sha256[:12]}" if CUBES.sha256 else "1"
    bands: tuple[str, ...] = ("etm/B1", "etm/B2", "etm/B3", "etm/B4", "etm/B5", "etm/B7")
    seasons: tuple[str, ...] = ("scene",)

    def __init__(self) -> None:
        with np.load(fetch(CUBES), allow_pickle=False) as file:
            self._values = file["x"]
            self._row = {name.decode(): row for row, name in enumerate(file["ids"].tolist())}

    def ids(self) -> tuple[str, ...]:
        return tuple(self._row)

    def read(self, ids: Sequence[str]) -> CubeBatch:
        unknown = [name for name in ids if name not in self._row]
        if unknown:
            raise DataError(
                f"no sample {unknown[0]!r}",
                where="olinda",
                hint="The ids are in `load_dataset('olinda').cubes().ids()`",
            )
        values = self._values[[self._row[name] for name in ids], None].astype(np.float32)
        return CubeBatch(tuple(ids), values, self.bands, self.seasons)
