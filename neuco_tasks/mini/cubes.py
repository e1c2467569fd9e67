"""The samples of mini as a source of cubes, made when they are asked for."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from neuco_core.cubes.cubes import CubeBatch
from neuco_core.errors import DataError
from neuco_tasks.mini.render import render
from neuco_tasks.mini.scene import POOLS, SAMPLES, Scene, make_scene
from neuco_tasks.mini.spectra import BANDS, SEASONS
from neuco_tasks.mini.stable import SIDE, Array32, Stream

VERSION = "1"


def sample_id(index: int) -> str:
    """64 hexadecimal digits, as the ids of SSL4EO-S12-downstream."""
    return hashlib.sha256(f"mini-{VERSION}/{index}".encode()).hexdigest()


def pool_indices(pool: str) -> range:
    start = sum(size for name, size in POOLS.items() if list(POOLS).index(name) < list(POOLS).index(pool))
    return range(start, start + POOLS[pool])


def scene(index: int) -> Scene:
    return make_scene(index, Stream(index))


def cube(index: int) -> Array32:
    stream = Stream(index)
    return render(make_scene(index, stream), stream)


class MiniCubes:
    """1,200 synthetic cubes of (4 seasons, 27 bands, 32, 32); each depends on its id alone."""

    version: str = VERSION
    bands: tuple[str, ...] = BANDS
    seasons: tuple[str, ...] = SEASONS

    def __init__(self) -> None:
        self._index = {sample_id(index): index for index in range(SAMPLES)}

    def ids(self) -> tuple[str, ...]:
        return tuple(self._index)

    def read(self, ids: Sequence[str]) -> CubeBatch:
        unknown = [name for name in ids if name not in self._index]
        if unknown:
            raise DataError(f"no sample {unknown[0]!r}", where="mini", expected="an id of `load_dataset('mini')`")
        values = np.empty((len(ids), len(SEASONS), len(BANDS), SIDE, SIDE), dtype=np.float32)

        def fill(row: int) -> None:
            values[row] = cube(self._index[ids[row]])

        # numpy lets go of the interpreter's lock while it works on an array.
        with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
            list(pool.map(fill, range(len(ids))))
        return CubeBatch(tuple(ids), values, self.bands, self.seasons)
