"""What encoders share: band statistics, spectral regions, resizing, and how seasons are brought together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuco_core.errors import UsageError
from neuco_core.versions import versioned

if TYPE_CHECKING:
    from neuco_core.cubes.cubes import CubeBatch, CubeSource

MAX_DIM = 1024
SEASON_MODES = ("pre", "post", "concat")
STATISTICS_SAMPLES = 512

# Mean and standard deviation of SSL4EO-S12 v1.1, as the challenge's example code gives them, with the offset of
# 1000 that v1.1 adds to Sentinel-2 taken off again: the downstream cubes are without it.
PUBLISHED_STATISTICS: Mapping[str, tuple[float, float]] = {
    "s1/VV": (-12.577, 5.179),
    "s1/VH": (-20.265, 5.872),
    "s2l1c/B01": (1607.345, 786.523),
    "s2l1c/B02": (1393.068, 849.702),
    "s2l1c/B03": (1320.225, 875.318),
    "s2l1c/B04": (1373.963, 1143.578),
    "s2l1c/B05": (1562.536, 1126.248),
    "s2l1c/B06": (2110.071, 1161.98),
    "s2l1c/B07": (2392.832, 1273.505),
    "s2l1c/B08": (2321.154, 1246.79),
    "s2l1c/B8A": (2583.77, 1342.755),
    "s2l1c/B09": (838.712, 576.795),
    "s2l1c/B10": (21.753, 45.626),
    "s2l1c/B11": (2205.112, 1340.347),
    "s2l1c/B12": (1545.798, 1145.036),
    "s2l2a/B01": (793.243, 1160.144),
    "s2l2a/B02": (924.863, 1201.092),
    "s2l2a/B03": (1184.553, 1219.943),
    "s2l2a/B04": (1340.936, 1397.225),
    "s2l2a/B05": (1671.402, 1400.035),
    "s2l2a/B06": (2240.082, 1373.136),
    "s2l2a/B07": (2468.412, 1429.17),
    "s2l2a/B08": (2563.244, 1485.025),
    "s2l2a/B8A": (2627.704, 1447.836),
    "s2l2a/B09": (2711.071, 1652.703),
    "s2l2a/B11": (2416.714, 1471.002),
    "s2l2a/B12": (1849.625, 1365.307),
}

_SENTINEL2 = {
    **dict.fromkeys(("B01", "B02", "B03", "B04"), "visible"),
    **dict.fromkeys(("B05", "B06", "B07", "B08", "B8A", "B09"), "nir"),
    "B10": "cirrus",
    **dict.fromkeys(("B11", "B12"), "swir"),
}
_REGIONS = {
    "s1": dict.fromkeys(("VV", "VH"), "radar"),
    "s2l1c": _SENTINEL2,
    "s2l2a": _SENTINEL2,
    "etm": {**dict.fromkeys(("B1", "B2", "B3"), "visible"), "B4": "nir", "B5": "swir", "B7": "swir"},
}


@versioned(1)
def region(band: str) -> str:
    """The part of the spectrum that a band sees: visible, nir, cirrus, swir or radar; else its modality."""
    modality, _, name = band.partition("/")
    return _REGIONS.get(modality, {}).get(name, modality)


@versioned(1)
@dataclass(frozen=True)
class Standardizer:
    """Takes each band's mean off and divides by its standard deviation."""

    bands: tuple[str, ...]
    mean: np.ndarray
    std: np.ndarray

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """``values`` is (…, band, y, x); the result is a new float32 array."""
        shape = (-1, 1, 1)
        scaled = np.asarray(values - self.mean.reshape(shape))
        scaled /= self.std.reshape(shape)  # in place: for a large image a new array costs more than the division
        return np.asarray(scaled, dtype=np.float32)


@versioned(1)
def fit_standardizer(source: CubeSource, *, published: bool = True) -> Standardizer:
    """Statistics of each band: the published ones where there are any, else measured on up to 512 samples."""
    if published and all(band in PUBLISHED_STATISTICS for band in source.bands):
        mean, std = np.array([PUBLISHED_STATISTICS[band] for band in source.bands]).T
    else:
        total = np.zeros((2, len(source.bands)))
        count = 0
        for sample in spread_ids(source, STATISTICS_SAMPLES):
            values = source.read([sample]).values[0].astype(np.float64)
            total += np.stack([values.sum(axis=(0, 2, 3)), np.square(values).sum(axis=(0, 2, 3))])
            count += values.size // len(source.bands)
        mean, square = total / max(count, 1)
        std = np.sqrt(np.maximum(square - mean**2, 0))
    # A band that never changes says nothing: it becomes 0 instead of a division by 0.
    return Standardizer(source.bands, mean.astype(np.float32), np.where(std > 0, std, 1).astype(np.float32))


@versioned(1)
def spread_ids(source: CubeSource, most: int) -> tuple[str, ...]:
    """At most so many ids, evenly spread over the sorted ones: what is fitted on them ignores the order of rows."""
    ids = sorted(source.ids())
    if len(ids) <= most:
        return tuple(ids)
    return tuple(ids[i] for i in np.linspace(0, len(ids) - 1, most).astype(int))


def check_seasons(mode: str) -> str:
    """The mode, if it is one of ``pre``, ``post`` and ``concat``."""
    if mode not in SEASON_MODES:
        raise UsageError("bad parameter seasons", expected="one of " + ", ".join(SEASON_MODES), got=repr(mode))
    return mode


@versioned(1)
def over_seasons(values: np.ndarray, mode: str, encode: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Encode one sample (season, band, y, x): average the seasons before (``pre``), after (``post``), or keep each.

    ``encode`` takes (season, band, y, x) and gives (season, features).
    """
    if mode == "pre":
        return np.asarray(encode(values.mean(axis=0, keepdims=True))[0])
    features = encode(values)
    return np.asarray(features.mean(axis=0) if mode == "post" else features.reshape(-1))


@versioned(1)
def encode_each(batch: CubeBatch, encode: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Encode the samples one at a time: rounding must not depend on who else is in the batch."""
    return np.stack([encode(sample) for sample in batch.samples()]).astype(np.float32)


@versioned(1)
def bilinear(size: int, new: int) -> np.ndarray:
    """The matrix (new, size) that samples a line at evenly spaced points, its two ends included."""
    at = np.linspace(0, size - 1, new)
    low = np.minimum(at.astype(int), max(size - 2, 0))
    part = at - low
    matrix = np.zeros((new, size))
    matrix[np.arange(new), low] = 1 - part
    matrix[np.arange(new), np.minimum(low + 1, size - 1)] += part
    return matrix


@versioned(1)
def bilinear_points(size: int, new: int) -> tuple[np.ndarray, np.ndarray]:
    """The places of a line that ``bilinear`` looks at, and its matrix for these alone."""
    matrix = bilinear(size, new).astype(np.float32)
    places = np.flatnonzero(matrix.any(axis=0))
    return places, matrix[:, places]


@versioned(1)
def resize(values: np.ndarray, height: int, width: int) -> np.ndarray:
    """Bilinear interpolation of the last two axes, corners on corners."""
    rows = bilinear(values.shape[-2], height).astype(np.float32)
    columns = bilinear(values.shape[-1], width).astype(np.float32)
    return np.asarray(rows @ values @ columns.T)


@versioned(1)
def shrink(images: np.ndarray, size: int) -> np.ndarray:
    """Average the last two axes over size × size cells; an image that is smaller stays as it is."""
    for axis in (-2, -1):
        length = images.shape[axis]
        if length > size:
            edges = np.linspace(0, length, size + 1).astype(int)
            sums = np.add.reduceat(images, edges[:-1], axis=axis)
            shape = [1] * images.ndim
            shape[axis] = size
            images = sums / np.diff(edges).reshape(shape).astype(images.dtype)
    return images


def import_torchvision() -> None:
    """Import torchvision, also where torch is a CPU build: wheels of torchvision on an index are built for CUDA.

    There its own operators do not load, and its import stops at two of them which encoders of images have no use for.
    They are declared, so that it goes on; whoever calls them gets torch's error.
    """
    import importlib
    import sys

    import torch

    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        importlib.import_module("torchvision")
