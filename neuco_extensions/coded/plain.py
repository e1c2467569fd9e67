"""Coders that take each number by itself: floats, even steps, signed squares, one bit.

What ``fit`` learns comes from training samples alone; values beyond the range it saw become the nearest code.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np

from neuco_core.errors import ScoreError, UsageError

Array: TypeAlias = Any  # a numpy array: the stubs lose the type in arithmetic


def setting_of(coder: object, text: str, kind: type, example: str) -> float:
    """The number behind ``NAME=``: above 0, and finite."""
    try:
        value = kind(text)
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        raise UsageError(f"bad setting of a coder, {type(coder).__name__}", expected=example, got=repr(text))
    return float(value)


class BaseCoder:
    """A coder without a setting; ``shared`` is what the decoder needs besides the codes."""

    def __init__(self, setting: str = "") -> None:
        if setting:
            raise UsageError("this coder has no setting", expected="its name alone", got=repr(setting))
        self.shared: tuple[np.ndarray, ...] = ()


class Float32(BaseCoder):
    def encode(self, values: np.ndarray) -> Array:
        return values

    def decode(self, codes: np.ndarray) -> Array:
        return codes


class Float16(BaseCoder):
    def encode(self, values: np.ndarray) -> Array:
        most = np.abs(values).max(initial=0.0)
        if most > np.finfo(np.float16).max:
            raise ScoreError("values too large for float16", expected="at most 65504", got=f"{most:g}")
        return values.astype(np.float16)

    def decode(self, codes: np.ndarray) -> Array:
        return codes.astype(np.float32)


@cache
def e4m3() -> Array:
    """The 127 values from 0 to 448 that have a code, in the order of their codes."""
    codes = np.arange(127)
    power, mantissa = codes >> 3, codes & 7
    values = np.where(power == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (power - 7.0))
    return values.astype(np.float32)


class Float8(BaseCoder):
    """One scale brings the largest training value to 448, the largest that e4m3 has."""

    def fit(self, values: np.ndarray) -> None:
        self.shared = (np.array([np.abs(values).max() / 448 or 1.0], np.float32),)

    def encode(self, values: np.ndarray) -> Array:
        table, (scale,) = e4m3(), self.shared
        size = np.abs(values) / scale
        above = np.clip(np.searchsorted(table, size), 1, 126)
        middle = (table[above - 1] + table[above]) / 2
        # Half-way between two, the even code, as IEEE 754 rounds.
        upper = (size > middle) | ((size == middle) & (above % 2 == 0))
        return (np.where(upper, above, above - 1) | np.where(values < 0, 128, 0)).astype(np.uint8)

    def decode(self, codes: np.ndarray) -> Array:
        return np.where(codes & 128, -1, 1).astype(np.float32) * e4m3()[codes & 127] * self.shared[0]


def pack(levels: np.ndarray, bits: int) -> Array:
    """Codes of 8 or 4 bits, (n, dim), as bytes; of two in a byte the first is in the lower half."""
    levels = levels.astype(np.uint8)
    if bits == 8:
        return levels
    if levels.shape[1] % 2:
        levels = np.pad(levels, ((0, 0), (0, 1)))
    return levels[:, ::2] | levels[:, 1::2] << 4


def unpack(codes: np.ndarray, bits: int, dim: int) -> Array:
    if bits == 8:
        return codes
    return np.stack([codes & 15, codes >> 4], axis=2).reshape(len(codes), -1)[:, :dim]


class Steps(BaseCoder):
    """Even steps between the smallest and the largest training value of each dimension; a value is taken for the middle
    of its step, as in faiss."""

    def __init__(self, setting: str = "", *, bits: int) -> None:
        super().__init__(setting)
        self.bits = bits

    def fit(self, values: np.ndarray) -> None:
        low, high = values.min(axis=0), values.max(axis=0)
        step = (high.astype(np.float64) - low) / (2**self.bits - 1)
        self.shared = low, np.where(step > 0, step, 1.0).astype(np.float32)

    def encode(self, values: np.ndarray) -> Array:
        low, step = self.shared
        return pack(np.clip(np.floor((values - low) / step), 0, 2**self.bits - 1), self.bits)

    def decode(self, codes: np.ndarray) -> Array:
        low, step = self.shared
        return low + (unpack(codes, self.bits, len(low)) + np.float32(0.5)) * step


class Vector(Steps):
    """Even steps up to the largest value of each vector, which is stored with it as a float32."""

    def fit(self, values: np.ndarray) -> None:
        self._dim = values.shape[1]

    def encode(self, values: np.ndarray) -> Array:
        most = 2 ** (self.bits - 1) - 1
        scale = np.abs(values).max(axis=1, keepdims=True) / np.float32(most)
        levels = np.rint(values / np.where(scale > 0, scale, 1)) + most
        return np.hstack([pack(levels, self.bits), scale.astype("<f4").view(np.uint8)])

    def decode(self, codes: np.ndarray) -> Array:
        most = np.float32(2 ** (self.bits - 1) - 1)
        scale = np.ascontiguousarray(codes[:, -4:]).view("<f4")
        return (unpack(codes[:, :-4], self.bits, self._dim) - most) * scale


class Square(Steps):
    """The signed root of a value in even steps: sign(q)(q/127.5)², fine near 0, as AlphaEarth is published.

    Values within ±1 are coded as they are; larger ones are first divided by the largest training value.
    """

    def fit(self, values: np.ndarray) -> None:
        self.shared = (np.array([max(1.0, np.abs(values).max())], np.float32),)
        self._dim = values.shape[1]

    def encode(self, values: np.ndarray) -> Array:
        most, half = 2 ** (self.bits - 1) - 1, (2**self.bits - 1) / 2
        levels = np.rint(np.sign(values) * np.sqrt(np.abs(values) / self.shared[0]) * half)
        return pack(np.clip(levels, -most, most) + most, self.bits)

    def decode(self, codes: np.ndarray) -> Array:
        levels = unpack(codes, self.bits, self._dim) - np.float32(2 ** (self.bits - 1) - 1)
        return np.sign(levels) * (levels / np.float32((2**self.bits - 1) / 2)) ** 2 * self.shared[0]


Int8, Int4 = partial(Steps, bits=8), partial(Steps, bits=4)
Int8Vector, Int4Vector = partial(Vector, bits=8), partial(Vector, bits=4)
Int8Square, Int4Square = partial(Square, bits=8), partial(Square, bits=4)


class Binary(BaseCoder):
    """One bit: above the dimension's median or not; the decoder gets the means of the two halves."""

    def fit(self, values: np.ndarray) -> None:
        median = np.median(values, axis=0)
        above = values > median
        count, total = above.sum(axis=0), values.sum(axis=0, dtype=np.float64)
        upper = np.where(above, values, 0).sum(axis=0, dtype=np.float64)
        low, high = (total - upper) / np.maximum(len(values) - count, 1), upper / np.maximum(count, 1)
        self.shared = median.astype(np.float32), low.astype(np.float32), high.astype(np.float32)

    def encode(self, values: np.ndarray) -> Array:
        return np.packbits(values > self.shared[0], axis=1)

    def decode(self, codes: np.ndarray) -> Array:
        _, low, high = self.shared
        return np.where(np.unpackbits(codes, axis=1, count=len(low)), high, low)


class Step(BaseCoder):
    """Even steps of so many standard deviations of all values; few of 256 levels are used, so entropy coding pays."""

    def __init__(self, setting: str) -> None:
        super().__init__()
        self.step = setting_of(self, setting, float, "step=0.5, in standard deviations")

    def fit(self, values: np.ndarray) -> None:
        mean = values.mean(axis=0, dtype=np.float64).astype(np.float32)
        self.shared = mean, np.array([self.step * ((values - mean).std(dtype=np.float64) or 1.0)], np.float32)

    def encode(self, values: np.ndarray) -> Array:
        mean, width = self.shared
        return (np.clip(np.rint((values - mean) / width), -128, 127) + 128).astype(np.uint8)

    def decode(self, codes: np.ndarray) -> Array:
        mean, width = self.shared
        return (codes.astype(np.float32) - 128) * width + mean
