"""Waves of positions: products of cosines, as in an image's discrete cosine transform."""

from __future__ import annotations

import numpy as np

from neuco_core.tables.positions import Positions


class Waves:
    """cos(π i u) · cos(π j v) for i, j < ``side`` without the constant; u and v go from 0 to 1 over the samples."""

    def __init__(self, side: int) -> None:
        self.side = side

    def encode(self, positions: Positions) -> np.ndarray:
        places = positions.plane
        span = np.ptp(places, axis=0)
        u, v = ((places - places.min(axis=0)) / np.where(span > 0, span, 1)).T
        across, up = (np.cos(np.pi * np.outer(share, np.arange(self.side))) for share in (u, v))
        waves = (across[:, :, None] * up[:, None, :]).reshape(len(places), -1)
        return np.asarray(waves[:, 1:], np.float32)
