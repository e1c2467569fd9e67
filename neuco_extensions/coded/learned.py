"""Coders that take dimensions together: prefix, projections, product quantisation with and without a rotation."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from neuco_core.errors import ScoreError
from neuco_extensions.coded.plain import Array, BaseCoder, setting_of

CENTRES = 256  # of a part: its number is a byte
ROUNDS = 25  # of Lloyd's algorithm, as in faiss
STEADY = 0.002  # it ends once so few of the rows move: on 2,880 AlphaEarth rows the error is 0.06 % above the last one
BLOCK = 512  # rows
TURNS = 12  # of the rotation: on the same rows in 8 bytes, 24 turns lower the error by another 0.6 %


class Reduction(BaseCoder):
    """Fewer dimensions, each still a float32; the decoder leaves them as they are."""

    def __init__(self, setting: str) -> None:
        super().__init__()
        self.dim = int(setting_of(self, setting, int, "a number of dimensions, such as pca=64"))

    def width(self, dim: int) -> int:
        if self.dim > dim:
            raise ScoreError("more dimensions than the embedding has", expected=f"at most {dim}", got=self.dim)
        return self.dim

    def decode(self, codes: np.ndarray) -> Array:
        return codes


class Prefix(Reduction):
    def encode(self, values: np.ndarray) -> Array:
        return np.ascontiguousarray(values[:, : self.width(values.shape[1])])


class Pca(Reduction):
    def fit(self, values: np.ndarray) -> None:
        mean = values.mean(axis=0, dtype=np.float64)
        axes = principal_axes(values - mean)[1][:, : self.width(values.shape[1])]
        self.shared = mean.astype(np.float32), axes.astype(np.float32)

    def encode(self, values: np.ndarray) -> Array:
        mean, axes = self.shared
        return (values - mean) @ axes


class RandomProjection(Reduction):
    """Onto Gaussian directions, scaled so that distances are kept on average; a seed gives them, so none is stored."""

    def encode(self, values: np.ndarray) -> Array:
        shape = values.shape[1], self.width(values.shape[1])
        directions = np.random.default_rng(0).standard_normal(shape) / np.sqrt(self.dim)
        return values @ directions.astype(np.float32)


def principal_axes(centred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variances and axes, the widest first; each axis points where its largest entry is positive."""
    spread, axes = np.linalg.eigh(centred.T @ centred)
    spread, axes = spread[::-1] / len(centred), axes[:, ::-1]
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    return spread, axes * np.where(largest < 0, -1.0, 1.0)


def nearest(rows: np.ndarray, centres: np.ndarray) -> Array:
    """The number of the nearest centre of each row; a few rows at a time, so that their scores stay in the cache."""
    half, chosen = (centres**2).sum(axis=1) / 2, np.empty(len(rows), np.uint8)
    scores = np.empty((min(BLOCK, len(rows)), len(centres)), np.float32)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        near = np.matmul(block, centres.T, out=scores[: len(block)])
        near -= half
        chosen[start : start + BLOCK] = near.argmax(axis=1)
    return chosen


def centres_of(rows: np.ndarray, rounds: int, centres: np.ndarray | None = None) -> Array:
    """Lloyd's algorithm from random rows, or from given centres; a centre without rows moves next to the largest."""
    if centres is None:
        centres = rows[np.random.default_rng(0).permutation(len(rows))[:CENTRES]]
    before = None
    for _ in range(rounds):
        chosen = nearest(rows, centres)
        if before is not None and (chosen != before).mean() <= STEADY:
            break
        before, sizes = chosen, np.bincount(chosen, minlength=len(centres))
        sums = np.stack([np.bincount(chosen, weights=column, minlength=len(centres)) for column in rows.T], axis=1)
        centres = (sums / np.maximum(sizes, 1)[:, None]).astype(np.float32)
        order = np.argsort(-sizes, kind="stable")
        for place, empty in enumerate(np.flatnonzero(sizes == 0)):
            centres[empty] = centres[order[place]] * np.float32(1 + 1 / 1024)
    return centres


class ProductQuantiser(BaseCoder):
    """The dimensions in as many parts as there are bytes; of each part the number of the nearest of 256 centres."""

    def __init__(self, setting: str) -> None:
        super().__init__()
        self.bytes = int(setting_of(self, setting, int, "a number of bytes, such as pq=16"))

    def parts(self, dim: int) -> list[slice]:
        if self.bytes > dim:
            raise ScoreError("more parts than the embedding has dimensions", expected=f"at most {dim}", got=self.bytes)
        ends = np.linspace(0, dim, self.bytes + 1).astype(int)
        return [slice(first, last) for first, last in pairwise(ends)]

    def fit(self, values: np.ndarray) -> None:
        parts = self.parts(values.shape[1])
        self.shared = tuple(centres_of(np.ascontiguousarray(values[:, part]), ROUNDS) for part in parts)

    def encode(self, values: np.ndarray) -> Array:
        parts = self.parts(values.shape[1])
        columns = [nearest(values[:, part], centres) for part, centres in zip(parts, self.shared, strict=True)]
        return np.stack(columns, axis=1)

    def decode(self, codes: np.ndarray) -> Array:
        return np.hstack([centres[column] for column, centres in zip(codes.T, self.shared, strict=True)])


class RotatedQuantiser(ProductQuantiser):
    """OPQ (Ge et al., 2013): the rotation begins with principal axes, dealt out so that all parts vary alike, and then
    follows what the quantiser gives back (the Procrustes problem), turn by turn."""

    def fit(self, values: np.ndarray) -> None:
        parts = self.parts(values.shape[1])
        spread, axes = principal_axes(values - values.mean(axis=0, dtype=np.float64))
        rotation = axes[:, dealt(spread, parts)].astype(np.float32)
        codebooks: list[np.ndarray | None] = [None for _ in parts]
        quantiser = ProductQuantiser(str(self.bytes))
        for turn in range(TURNS + 1):
            turned = values @ rotation
            rounds = 4 if 0 < turn < TURNS else ROUNDS
            columns = [np.ascontiguousarray(turned[:, part]) for part in parts]
            codebooks = [centres_of(c, rounds, b) for c, b in zip(columns, codebooks, strict=True)]
            quantiser.shared = tuple(book for book in codebooks if book is not None)
            if turn < TURNS:
                left, _, right = np.linalg.svd(values.T @ quantiser.decode(quantiser.encode(turned)))
                rotation = left @ right
        self.shared = rotation, *quantiser.shared
        self._quantiser = quantiser

    def encode(self, values: np.ndarray) -> Array:
        return self._quantiser.encode(values @ self.shared[0])

    def decode(self, codes: np.ndarray) -> Array:
        return self._quantiser.decode(codes) @ self.shared[0].T


def dealt(spread: np.ndarray, parts: list[slice]) -> Array:
    """The axes in the order of the parts: the widest left goes to the part with room whose product is smallest."""
    room = [part.stop - part.start for part in parts]
    taken: list[list[int]] = [[] for _ in parts]
    product = np.zeros(len(parts))
    for axis, width in enumerate(np.log(np.maximum(spread, 1e-12 * max(spread[0], 1e-300)))):
        free = [place for place in range(len(parts)) if len(taken[place]) < room[place]]
        place = min(free, key=lambda number: product[number])
        taken[place].append(axis)
        product[place] += width - np.log(max(spread[0], 1e-300)) + 30  # above 0, so that each axis adds
    return np.concatenate(taken).astype(int)
