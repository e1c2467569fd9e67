"""Bilinear shrinking and averaging over groups of bands."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neuco_core.cubes.cubes import CubeBatch, CubeSource
from neuco_core.encoders import bilinear_points, encode_each, fit_standardizer, region
from neuco_core.errors import UsageError

VARIANTS = ("paper", "notebook")
# The order of the four channels, as upstream's notebook has it.
CHANNELS = {"visible": "optical", "nir": "optical", "cirrus": "cirrus", "swir": "swir", "radar": "radar"}
ORDER = ("optical", "cirrus", "swir", "radar")
# Upstream's notebook counts positions as if there were no B8A: index 9 of L1C is B09, not B10, and the slice that
# starts at 10 takes B10 in. In L2A the first nine end at B8A, index 9 is left out, and 10 and 11 are B11 and B12.
NOTEBOOK: Mapping[str, str | None] = {
    "s2l1c/B09": "cirrus",
    "s2l1c/B10": "swir",
    "s2l2a/B09": None,
}


class AveragingEncoder:
    """Channels × seasons × 8 × 8; the bands are put on one scale first, else Sentinel-1 would vanish in the DN."""

    def __init__(self, bands: str = "paper", size: int = 8) -> None:
        if bands not in VARIANTS:
            raise UsageError("bad parameter bands", expected="one of " + ", ".join(VARIANTS), got=repr(bands))
        self.variant = bands
        self.size = size

    def fit(self, source: CubeSource) -> None:
        self._scale = fit_standardizer(source)
        self._mix = channel_matrix(source.bands, self.variant)

    def encode(self, batch: CubeBatch) -> np.ndarray:
        """Of 264 × 264 pixels 16 × 16 are looked at: only those become floats and are scaled."""
        (y, rows), (x, columns) = (bilinear_points(size, self.size) for size in batch.size)

        def one(pixels: np.ndarray) -> np.ndarray:
            small = rows @ self._scale(pixels) @ columns.T
            return np.asarray(np.einsum("cb,sbyx->scyx", self._mix, small).reshape(-1))

        return encode_each(batch.at(y, x), one)


def channel_of(band: str, variant: str) -> str | None:
    """The channel that a band is averaged into, or None if it is left out."""
    if variant == "notebook" and band in NOTEBOOK:
        return NOTEBOOK[band]
    return CHANNELS.get(region(band), region(band))


def channel_matrix(bands: tuple[str, ...], variant: str) -> np.ndarray:
    """(channel, band) weights; a channel none of whose bands is there is left out."""
    of = [channel_of(band, variant) for band in bands]
    others = sorted({name for name in of if name is not None} - set(ORDER))
    channels = [name for name in (*ORDER, *others) if name in of]
    matrix = np.array([[float(name == channel) for name in of] for channel in channels], dtype=np.float32)
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))
