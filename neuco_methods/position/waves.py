"""Waves of positions: products of cosines, as in an image's discrete cosine transform."""

from __future__ import annotations

import numpy as np

from neuco_core.tables.positions import Positions


class Waves:
    """cos(π i u) · cos(π j v) for i and j below ``side`` without the constant; u and v go from 0 to 1 over the samples.

    Longitudes are counted from the middle of the samples, so that the antimeridian may run through them.
    """

    def __init__(self, side: int) -> None:
        self.side = side

    def encode(self, positions: Positions) -> np.ndarray:
        places = positions.values.copy()
        if positions.on_earth:
            turns = np.exp(1j * np.radians(places[:, 0]))
            places[:, 0] = np.degrees(np.angle(turns * np.conj(turns.mean())))
        span = np.ptp(places, axis=0)
        u, v = ((places - places.min(axis=0)) / np.where(span > 0, span, 1)).T
        across, up = (np.cos(np.pi * np.outer(share, np.arange(self.side))) for share in (u, v))
        waves = (across[:, :, None] * up[:, None, :]).reshape(len(places), -1)
        return np.asarray(waves[:, 1:], np.float32)
