"""The mean label of the nearest training samples, exact.

The distances of a block of samples to all others are computed and sorted once, and every split in which one of these
samples is tested picks its own training samples from that order: 40 splits cost as much as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from neuco_core.errors import UsageError
from neuco_core.protocol import Protocol
from neuco_core.scoring.probes import Fit, Split, parameters
from neuco_core.versions import versioned

See = Callable[[int, np.ndarray, np.ndarray, np.ndarray], None]
BLOCK = 2**22  # distances at a time and thread: 32 MB, and about four times that with their order


class Space:
    """Samples among which nearest ones are looked for, by l2 or cosine distance.

    Distances are computed in float64 and compared in float32, so that what differs by rounding alone is a tie; of
    equally near samples the one with the lower row comes first. Samples that are the same have the same distances.
    """

    def __init__(self, x: np.ndarray, metric: str) -> None:
        x = x.astype(np.float64)
        if metric == "cosine":
            x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300)
        else:
            # Neither changes an order. A common offset would cost digits, and a mean would bring in that of a wild
            # sample; the largest distances must fit into float32.
            x -= np.median(x, axis=0)
            x /= max(float(np.abs(x).max()), 1e-300)
        self.x, self._squares = x, np.square(x).sum(axis=1)
        seen: dict[bytes, int] = {}
        self._first = np.array([seen.setdefault(row.tobytes(), number) for number, row in enumerate(x)])
        self._repeats = len(seen) < len(x)

    def visit(
        self, points: np.ndarray, places: Sequence[np.ndarray], splits: Sequence[Split], see: See, threads: int
    ) -> None:
        """Call ``see(number, here, order, train)`` for blocks of the points that each split tests.

        ``places`` are those of its points among all, ``here`` which of them are in the block; ``order`` has all
        samples for each, the nearest first, and ``train`` marks those that the split learns from.
        """
        masks = np.zeros((len(splits), len(self.x)), dtype=bool)
        for mask, split in zip(masks, splits, strict=True):
            mask[split.train] = True
        size = max(1, BLOCK // len(self.x))

        def visit_block(start: int) -> None:
            order = self._order(points[start : start + size])
            for number, place in enumerate(places):
                here = np.flatnonzero((place >= start) & (place < start + size))
                if here.size:
                    see(number, here, order[place[here] - start], masks[number])

        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(visit_block, range(0, len(points), size)):
                pass  # an error in a block ends the others

    def _order(self, points: np.ndarray) -> np.ndarray:
        squared = points @ self.x.T
        squared *= -2
        squared += self._squares
        squared += np.square(points).sum(axis=1)[:, None]
        if self._repeats:
            squared = squared[:, self._first]
        np.maximum(squared, 0, out=squared)
        np.abs(np.sqrt(squared, out=squared), out=squared)  # −0 has other bits than 0
        # Floats of at least 0 have the order of their bits; the row behind them settles ties.
        keys = squared.astype(np.float32).view(np.uint32).astype(np.uint64)
        keys <<= np.uint64(32)
        keys |= np.arange(len(self.x), dtype=np.uint64)
        keys.sort(axis=1)
        keys &= np.uint64(2**32 - 1)
        order: np.ndarray = keys.astype(np.int64)
        return order


def first_of(order: np.ndarray, wanted: np.ndarray, count: int) -> np.ndarray:
    """The first ``count`` of each row of ``order`` that are wanted; there must be so many."""
    width = 4 * count
    while width < order.shape[1] and (wanted[order[:, :width]].sum(axis=1) < count).any():
        width *= 4
    order = order[:, :width]
    kept = wanted[order]
    kept &= kept.cumsum(axis=1) <= count
    nearest: np.ndarray = order[kept].reshape(len(order), count)
    return nearest


def tested_rows(splits: Sequence[Split]) -> tuple[np.ndarray, list[np.ndarray]]:
    """The samples that some split tests, and where those of each split are among them."""
    place = np.full(len(splits[0].x), -1)
    rows = np.unique(np.concatenate([split.test for split in splits]))
    place[rows] = np.arange(len(rows))
    return rows, [place[split.test] for split in splits]


def checked(protocol: Protocol, **defaults: Any) -> dict[str, Any]:
    """The parameters of a probe; numbers are at least 1, and a metric is one of two."""
    rules = parameters(protocol, **defaults)
    for name, value in rules.items():
        expected = "cosine or l2" if name == "metric" else "at least 1"
        if (name == "metric" and value not in ("cosine", "l2")) or (isinstance(value, int) and value < 1):
            raise UsageError(f"bad parameter {name!r}", where=protocol.name, expected=expected, got=value)
    return rules


@versioned(1)
class NearestNeighbors:
    """``neighbors``, ``metric`` (cosine or l2), and ``weights``: uniform, or distance for 1 / distance.

    With ``distance``, training samples that are the same as the tested one are the only ones that count.
    """

    def __init__(self, protocol: Protocol) -> None:
        rules = checked(protocol, neighbors=5, metric="cosine", weights="uniform")
        self.neighbors, self.metric, self.weights = rules["neighbors"], rules["metric"], rules["weights"]
        if self.weights not in ("uniform", "distance"):
            expected = "uniform or distance"
            raise UsageError("bad parameter 'weights'", where=protocol.name, expected=expected, got=self.weights)
        self._x: np.ndarray | None = None

    def prepare(self, splits: Sequence[Split], threads: int) -> None:
        self._x = splits[0].x
        self._space = Space(self._x, self.metric)
        self._nearest = self._search(self._space, splits, threads)

    def _search(self, space: Space, splits: Sequence[Split], threads: int) -> list[np.ndarray]:
        """The nearest training samples of each tested sample, by split."""
        found = [np.empty((len(split.test), min(self.neighbors, len(split.train))), np.int64) for split in splits]

        def see(number: int, here: np.ndarray, order: np.ndarray, train: np.ndarray) -> None:
            found[number][here] = first_of(order, train, found[number].shape[1])

        rows, places = tested_rows(splits)
        space.visit(space.x[rows], places, splits, see, threads)
        return found

    def fit(self, split: Split) -> Fit:
        if split.x is self._x:
            space, nearest = self._space, self._nearest[split.index]
        else:  # scaled by the training part: distances of one split only
            space = Space(split.x, self.metric)
            nearest = self._search(space, [split], 1)[0]
        labels = split.y.astype(np.float64)
        if split.classes:
            labels = np.eye(split.classes)[split.y[:, 0].astype(np.int64)]
        if self.weights == "uniform":
            return Fit(labels[nearest].mean(axis=1)[None])
        # From differences, which are 0 for samples that are the same.
        squared = np.stack([np.square(space.x[split.test] - space.x[near]).sum(axis=1) for near in nearest.T], axis=1)
        distance = squared / 2 if self.metric == "cosine" else np.sqrt(squared)
        same = distance == 0
        weight = np.where(same.any(axis=1, keepdims=True), same, 1 / np.where(same, 1.0, distance))
        weight /= weight.sum(axis=1, keepdims=True)
        return Fit(np.einsum("ij,ijk->ik", weight, labels[nearest])[None])
