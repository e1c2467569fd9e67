"""Inputs as data cubes: what a dataset's source offers, and views of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    import xarray

    from neuco_core.specs import Dataset


@dataclass(frozen=True)
class CubeBatch:
    """Some samples at once: ``values`` is float32, (sample, season, band, y, x); bands are ``modality/BAND``."""

    ids: tuple[str, ...]
    values: np.ndarray
    bands: tuple[str, ...]
    seasons: tuple[str, ...]


class CubeSource(Protocol):
    """What ``Dataset.cubes()`` returns. ``version`` changes whenever any value may change."""

    version: str
    bands: tuple[str, ...]
    seasons: tuple[str, ...]

    def ids(self) -> tuple[str, ...]: ...

    def read(self, ids: Sequence[str]) -> CubeBatch: ...


def open_sample(dataset: Dataset, sample_id: str) -> xarray.DataArray:
    raise NotImplementedError


def iterate(dataset: Dataset) -> Iterator[xarray.DataArray]:
    raise NotImplementedError
