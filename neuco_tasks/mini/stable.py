"""Random numbers and functions that give the same bits on every machine.

Only operations whose result IEEE 754 fixes are used: +, −, ×, ÷, comparisons and exact splitting of a
number. Library versions of exp and log differ in their last bit between processors, and numpy promises
the raw output of a bit generator, not what its distributions make of it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

SEED = 2025
SIDE = 32
PIXELS = SIDE * SIDE

Array = NDArray[np.float64]
Array32 = NDArray[np.float32]


class Stream:
    """The random numbers of one sample; they depend on its index alone."""

    def __init__(self, index: int) -> None:
        self._bits = np.random.Philox(key=np.array([SEED, index], dtype=np.uint64))

    def uniform(self, *shape: int) -> Array:
        """In [0, 1), in steps of 2⁻⁵³."""
        count = math.prod(shape)
        raw = np.asarray(self._bits.random_raw(count), dtype=np.uint64)
        return ((raw >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(shape)

    def one(self) -> float:
        return float(self.uniform(1)[0])

    def bell(self, *shape: int) -> Array:
        """Mean 0, variance 1, nearly normal, within ±3.5: the sum of four uniform numbers."""
        parts = self.uniform(4, *shape)
        return np.asarray((parts[0] + parts[1] + parts[2] + parts[3] - 2.0) * 1.7320508075688772)

    def grain(self, *shape: int) -> Array32:
        """Mean 0, variance 1, uniform, from 16 bits each: for the noise of single pixels."""
        count = math.prod(shape)
        raw = np.asarray(self._bits.random_raw(-(-count // 4)), dtype="<u8").view("<u2")[:count]
        return ((raw.astype(np.float32) - np.float32(32767.5)) * np.float32(3.4641016 / 65536)).reshape(shape)


def decay(x: Array) -> Array:
    """exp(−x) for x from 0 to about 40: a Taylor quotient for x/64, squared six times."""
    y = x * (1.0 / 64)
    value = 1.0 / (1.0 + y * (1.0 + y * (0.5 + y * (1.0 / 6 + y * (1.0 / 24)))))
    for _ in range(6):
        value = value * value
    return value


def decibel(power: Array) -> Array:
    """10·log10, by the exponent and a series for the mantissa."""
    mantissa, exponent = np.frexp(power)
    t = (mantissa - 0.7071067811865476) / (mantissa + 0.7071067811865476)
    u = t * t
    log = 2.0 * t * (1.0 + u * (1.0 / 3 + u * (0.2 + u * (1.0 / 7 + u * (1.0 / 9 + u * (1.0 / 11))))))
    return (log - 0.34657359027997264 + exponent * 0.6931471805599453) * 4.3429448190325175


def power(level: Array) -> Array:
    """10^(level/10) for levels below 0 dB."""
    return decay(level * -0.23025850929940458)


def fields(stream: Stream, count: int, grids: tuple[int, ...] = (3, 5, 9)) -> Array:
    """Smooth random surfaces, (count, pixels), of mean 0 and variance about 1: noise on grids, finer ones weaker."""
    total = np.zeros((count, SIDE, SIDE))
    for grid, weight in zip(grids, (1.0, 0.6, 0.36), strict=False):
        total += _stretch(stream.bell(count, grid + 1, grid + 1), grid, stream.one()) * weight
    return (total * _UNIT[len(grids)]).reshape(count, PIXELS)


def parcels(stream: Stream, count: int) -> Array:
    """Surfaces of constant rectangles, such as fields of crops, (count, pixels)."""
    sides = 4 + np.floor(stream.uniform(2) * 5).astype(np.int64)
    shift = np.floor(stream.uniform(2) * 8).astype(np.int64)
    noise = stream.bell(count, 11, 11)
    rows, columns = ((np.arange(SIDE) + shift[axis]) // sides[axis] for axis in (0, 1))
    return noise[:, rows][:, :, columns].reshape(count, PIXELS)


def _stretch(noise: Array, grid: int, shift: float) -> Array:
    """Interpolate between the points of a grid; the last row and column are for the shift."""
    place = (np.arange(SIDE) + 0.5) * ((grid - 1) / SIDE) + shift
    lower = np.floor(place).astype(np.int64)
    part = place - lower
    part = part * part * (3.0 - 2.0 * part)
    rows = noise[:, lower] + (noise[:, lower + 1] - noise[:, lower]) * part[None, :, None]
    return np.asarray(rows[:, :, lower] + (rows[:, :, lower + 1] - rows[:, :, lower]) * part)


# Brings the variance back to 1: smooth steps keep (26/35)² of it, and the weights of the grids add up.
_UNIT = {1: 1.35, 2: 1.15, 3: 1.10}
