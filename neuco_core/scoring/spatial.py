"""Splits by place: samples that lie near each other are alike, and random splits reward that."""

from __future__ import annotations

import numpy as np

from neuco_core.errors import ScoreError, UsageError
from neuco_core.protocol import Protocol
from neuco_core.scoring.splits import Splits, tested_count
from neuco_core.tables.positions import DEGREE, Positions
from neuco_core.versions import versioned


@versioned(1)
def block_splits(n: int, protocol: Protocol, groups: np.ndarray | None, positions: Positions) -> Splits:
    """Whole blocks of a grid are tested, which is laid anew for each split; ``margin`` keeps what is near out."""
    size, margin = protocol.params["size"], positions.length("margin", protocol.params["margin"])
    if not positions.length("size", size):
        raise UsageError("blocks without a size", where=protocol.name, hint="Write splitter=blocks,size=50km")
    in_degrees = str(size).endswith("deg")
    random = np.random.RandomState(protocol.seed)
    splits: Splits = []
    for _ in range(protocol.k):
        numbers = _block_numbers(positions, positions.length("size", size), random.random_sample(2), in_degrees)
        names, member = np.unique(numbers, axis=0, return_inverse=True)
        chosen = random.permutation(len(names))[: tested_count(len(names), protocol, "blocks")]
        order = random.permutation(n)
        inside = np.isin(member.ravel()[order], chosen)
        splits.append(_apart(order[~inside], order[inside], positions, margin, protocol))
    return splits


def _block_numbers(positions: Positions, size: float, shift: np.ndarray, in_degrees: bool) -> np.ndarray:
    """Row and column of each sample. Each row of blocks goes around the earth in whole blocks, so that it has no seam.

    Blocks in km are about as wide as they are high; a row that touches a pole is one block.
    """
    if not positions.on_earth:
        return np.asarray(np.floor(positions.values / size + shift))
    lon, lat = positions.values.T
    height = size / DEGREE
    row = np.floor((lat + 90) / height + shift[0])
    low = (row - shift[0]) * height - 90
    narrow = np.ones(len(row)) if in_degrees else np.cos(np.radians(np.clip(low + height / 2, -90, 90)))
    columns = np.maximum(np.round(360 * narrow / height), 1)
    columns[(low <= -90) | (low + height >= 90)] = 1
    return np.column_stack([row, np.floor((lon / 360 + shift[1]) % 1 * columns)])


@versioned(1)
def buffer_splits(n: int, protocol: Protocol, groups: np.ndarray | None, positions: Positions) -> Splits:
    """Random samples are tested, and no training sample is nearer to one of them than ``r``."""
    r, test = positions.length("r", protocol.params["r"]), tested_count(n, protocol, "samples")
    random = np.random.RandomState(protocol.seed)
    orders = [random.permutation(n) for _ in range(protocol.k)]
    return [_apart(order[test:], order[:test], positions, r, protocol) for order in orders]


@versioned(1)
def region_splits(n: int, protocol: Protocol, groups: np.ndarray | None, positions: Positions) -> Splits:
    """Each of ``regions`` is tested once; they are made by k-means of the positions, on the sphere for degrees."""
    regions = regions_of(positions, protocol)
    order = np.random.RandomState(protocol.seed).permutation(n)
    margin = positions.length("margin", protocol.params["margin"])
    return [
        _apart(order[regions[order] != region], order[regions[order] == region], positions, margin, protocol)
        for region in range(regions.max() + 1)
    ]


def regions_of(positions: Positions, protocol: Protocol) -> np.ndarray:
    """The region of each sample, numbered by the first sample of each."""
    from sklearn.cluster import KMeans  # heavy

    count = protocol.params["regions"]
    places = len(np.unique(positions.xyz, axis=0))
    if not isinstance(count, int) or not 2 <= count <= places:
        expected = f"a whole number from 2 to {places}, the number of places"
        raise UsageError("bad regions of a splitter", where=protocol.name, expected=expected, got=repr(count))
    found = KMeans(count, n_init=10, random_state=protocol.seed).fit_predict(positions.xyz)
    _, first, member = np.unique(found, return_index=True, return_inverse=True)
    return np.asarray(first.argsort().argsort()[member])


def _apart(
    train: np.ndarray, test: np.ndarray, positions: Positions, distance: float, protocol: Protocol
) -> tuple[np.ndarray, np.ndarray]:
    """Training samples nearer than a distance to a tested one are in neither part."""
    if distance and len(train) and len(test):
        train = train[~positions.nearer(train, test, distance)]
        if not len(train):
            hint = "Choose a shorter distance, or a smaller test_size"
            what = f"no training sample is left: each is nearer to a tested one than {distance:g}"
            raise ScoreError(what, where=protocol.name, hint=hint)
    return train, test
