"""Coders: floats, even steps, signed squares, one bit, fewer dimensions, product quantisation.

What ``fit`` learns comes from training samples alone; values beyond the range it saw become the nearest code.
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias

import numpy as np

from neuco_core.errors import ScoreError, UsageError

Array: TypeAlias = Any  # a numpy array: the stubs lose the type in arithmetic
CENTRES = 256  # of a part of a product quantiser: its number is a byte
ROUNDS = 25  # of Lloyd's algorithm, as in faiss
STEADY = 0.002  # it ends once so few of the rows move: on 2,880 AlphaEarth rows the error is 0.06 % above the last one
BLOCK = 512  # rows whose distances stay in the cache
TURNS = 12  # of a learned rotation: on the same rows in 8 bytes, 24 turns lower the error by another 0.6 %


class BaseCoder:
    """Values as they are. ``setting`` is the whole number behind ``NAME=``; no ``example``, no setting.

    ``shared`` is what the decoder needs besides the codes. Where ``of_dims``, no more of them than there are.
    """

    example, of_dims = "", True

    def __init__(self, setting: str = "") -> None:
        if not self.example and setting:
            raise UsageError("this coder has no setting", expected="its name alone", got=repr(setting))
        if self.example and not (setting.isdecimal() and int(setting)):
            raise UsageError(f"bad setting of a coder, {type(self).__name__}", expected=self.example, got=repr(setting))
        self.size = int(setting or 0)
        self.shared: tuple[np.ndarray, ...] = ()

    def width(self, dim: int) -> int:
        """How many dimensions of so many come back; an error if there are too few to be coded."""
        if self.of_dims and self.size > dim:
            name = type(self).__name__
            raise ScoreError(
                f"more than the embedding has dimensions, {name}", expected=f"at most {dim}", got=self.size
            )
        return dim

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


class Float8(BaseCoder):
    """e4m3: a sign, 4 bits of exponent, 3 of mantissa. One scale brings the largest training value to 448, its end."""

    def fit(self, values: np.ndarray) -> None:
        self.shared = (np.array([np.abs(values).max() / 448 or 1.0], np.float32),)

    def encode(self, values: np.ndarray) -> Array:
        size = np.minimum(np.abs(values) / self.shared[0], np.float32(448))
        power = np.frexp(np.maximum(size, np.float32(2**-6)))[1]  # below, steps get no finer
        # To the nearest of 8 steps from one power of 2 to the next; from the last step to the next power is one more.
        codes = 8 * (power + 5) + np.rint(np.ldexp(size, 4 - power)).astype(int)
        return (codes | np.where(values < 0, 128, 0)).astype(np.uint8)

    def decode(self, codes: np.ndarray) -> Array:
        power, steps = (codes >> 3 & 15).astype(int), (codes & 7).astype(np.float32)
        size = np.ldexp(np.where(power > 0, steps + 8, steps), np.maximum(power, 1) - 10)
        return np.where(codes & 128, -size, size) * self.shared[0]


def pack(levels: np.ndarray, bits: int) -> Array:
    """Codes of 8 or 4 bits, (n, dim), as bytes; of two in a byte the first is in the lower half."""
    levels = levels.astype(np.uint8)
    if bits == 8:
        return levels
    levels = np.pad(levels, ((0, 0), (0, levels.shape[1] % 2)))
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
        self.bits, self.most = bits, 2 ** (bits - 1) - 1  # the most on either side of 0

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
        scale = np.abs(values).max(axis=1, keepdims=True) / np.float32(self.most)
        levels = np.rint(values / np.where(scale > 0, scale, 1)) + self.most
        return np.hstack([pack(levels, self.bits), scale.astype("<f4").view(np.uint8)])

    def decode(self, codes: np.ndarray) -> Array:
        scale = np.ascontiguousarray(codes[:, -4:]).view("<f4")
        return (unpack(codes[:, :-4], self.bits, self._dim) - np.float32(self.most)) * scale


class Square(Steps):
    """The signed root of a value in even steps: sign(q)(q/127.5)², fine near 0, as AlphaEarth is published.

    Values within ±1 are coded as they are; larger ones are first divided by the largest training value.
    """

    def fit(self, values: np.ndarray) -> None:
        self.shared = (np.array([max(1.0, np.abs(values).max())], np.float32),)
        self._dim = values.shape[1]

    def encode(self, values: np.ndarray) -> Array:
        levels = np.rint(np.sign(values) * np.sqrt(np.abs(values) / self.shared[0]) * (self.most + 0.5))
        return pack(np.clip(levels, -self.most, self.most) + self.most, self.bits)

    def decode(self, codes: np.ndarray) -> Array:
        levels = unpack(codes, self.bits, self._dim) - np.float32(self.most)
        return np.sign(levels) * (levels / np.float32(self.most + 0.5)) ** 2 * self.shared[0]


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


class FineSteps(BaseCoder):
    """Even steps, so many to a standard deviation of all values; few of 256 levels are used, so entropy coding pays."""

    example, of_dims = "a number of steps, such as steps=2", False

    def fit(self, values: np.ndarray) -> None:
        mean = values.mean(axis=0, dtype=np.float64).astype(np.float32)
        self.shared = mean, np.array([((values - mean).std(dtype=np.float64) or 1.0) / self.size], np.float32)

    def encode(self, values: np.ndarray) -> Array:
        mean, step = self.shared
        return (np.clip(np.rint((values - mean) / step), -128, 127) + 128).astype(np.uint8)

    def decode(self, codes: np.ndarray) -> Array:
        mean, step = self.shared
        return (codes.astype(np.float32) - 128) * step + mean


class Prefix(BaseCoder):
    """Fewer dimensions, each still a float32; the decoder leaves them as they are."""

    example = "a number of dimensions, such as prefix=64"

    def width(self, dim: int) -> int:
        return min(super().width(dim), self.size)

    def encode(self, values: np.ndarray) -> Array:
        return np.ascontiguousarray(values[:, : self.width(values.shape[1])])


class Pca(Prefix):
    example = "a number of dimensions, such as pca=64"

    def fit(self, values: np.ndarray) -> None:
        mean = values.mean(axis=0, dtype=np.float64)
        self.shared = mean.astype(np.float32), principal_axes(values - mean)[:, : self.width(values.shape[1])]

    def encode(self, values: np.ndarray) -> Array:
        mean, axes = self.shared
        return (values - mean) @ axes


def principal_axes(centred: np.ndarray) -> Array:
    """As columns, the widest first."""
    return np.linalg.eigh(centred.T @ centred)[1][:, ::-1].astype(np.float32)


def nearest(rows: np.ndarray, centres: np.ndarray) -> Array:
    """The number of the nearest centre of each row."""
    half = (centres**2).sum(axis=1) / 2
    blocks = (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))
    return np.concatenate([(block @ centres.T - half).argmax(axis=1) for block in blocks]).astype(np.uint8)


def centres_of(rows: np.ndarray, centres: np.ndarray) -> Array:
    """Lloyd's algorithm from given centres; one that is nobody's nearest stays where it is."""
    before = None
    for _ in range(ROUNDS):
        chosen = nearest(rows, centres)
        if before is not None and (chosen != before).mean() <= STEADY:
            break
        before, sizes = chosen, np.bincount(chosen, minlength=len(centres))[:, None]
        sums = np.stack([np.bincount(chosen, column, len(centres)) for column in rows.T], axis=1)
        centres = np.where(sizes > 0, sums / np.maximum(sizes, 1), centres).astype(np.float32)
    return centres


class ProductQuantiser(BaseCoder):
    """The dimensions in as many parts as there are bytes; of each part the number of the nearest of 256 centres."""

    example = "a number of bytes, such as pq=16"

    def fit(self, values: np.ndarray) -> None:
        self.width(values.shape[1])
        self._learn(values, np.random.default_rng(0).permutation(values)[:CENTRES])

    def _learn(self, values: np.ndarray, centres: np.ndarray) -> None:
        """The centres of each part, from whole rows to begin with."""
        parts = zip(self._parts(values), self._parts(centres), strict=True)
        self.shared = tuple(centres_of(np.ascontiguousarray(part), first) for part, first in parts)

    def _parts(self, values: np.ndarray) -> list[np.ndarray]:
        return np.array_split(values, self.size, axis=1)

    def encode(self, values: np.ndarray) -> Array:
        return np.stack([nearest(*pair) for pair in zip(self._parts(values), self.shared, strict=True)], axis=1)

    def decode(self, codes: np.ndarray) -> Array:
        return np.hstack([centres[column] for column, centres in zip(codes.T, self.shared, strict=True)])


class RotatedQuantiser(BaseCoder):
    """OPQ (Ge et al., 2013): the rotation begins with principal axes, dealt out to the parts in turn, and then follows
    what the quantiser gives back (the Procrustes problem)."""

    example = "a number of bytes, such as opq=16"

    def fit(self, values: np.ndarray) -> None:
        self._quantiser = quantiser = ProductQuantiser(str(self.size))
        axes = principal_axes(values - values.mean(axis=0, dtype=np.float64))
        rotation = axes[:, np.argsort(np.arange(self.width(len(axes))) % self.size, kind="stable")]
        quantiser.fit(values @ rotation)
        for _ in range(TURNS):
            back = quantiser.decode(quantiser.encode(values @ rotation))
            left, _, right = np.linalg.svd(values.T @ back)
            rotation = left @ right
            quantiser._learn(values @ rotation, np.hstack(quantiser.shared))
        self.shared = rotation, *quantiser.shared

    def encode(self, values: np.ndarray) -> Array:
        return self._quantiser.encode(values @ self.shared[0])

    def decode(self, codes: np.ndarray) -> Array:
        return self._quantiser.decode(codes) @ self.shared[0].T
