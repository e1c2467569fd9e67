"""Ways to split samples into a training and a test part, k times."""

from __future__ import annotations

import math

import numpy as np

from neuco_core.errors import ScoreError
from neuco_core.protocol import Protocol
from neuco_core.versions import versioned

Splits = list[tuple[np.ndarray, np.ndarray]]


@versioned(1)
def shuffle(n: int, protocol: Protocol, groups: np.ndarray | None = None) -> Splits:
    """k random permutations of the samples; the first ceil(test_size · n) of each are its test part."""
    test = _test_count(n, protocol, "samples")
    random = np.random.RandomState(protocol.seed)
    orders = [random.permutation(n) for _ in range(protocol.k)]
    return [(order[test:], order[:test]) for order in orders]


@versioned(1)
def group(n: int, protocol: Protocol, groups: np.ndarray | None = None) -> Splits:
    """The same, over whole groups: no group has samples in both parts, and the parts' sizes vary with the groups."""
    if groups is None:
        raise ScoreError("splits by group need groups", hint="The task names none; use a protocol with shuffle splits")
    names, member = np.unique(groups, return_inverse=True)
    test = _test_count(len(names), protocol, "groups")
    random = np.random.RandomState(protocol.seed)
    splits: Splits = []
    for _ in range(protocol.k):
        order, chosen = random.permutation(n), random.permutation(len(names))[:test]
        inside = np.isin(member[order], chosen)
        splits.append((order[~inside], order[inside]))
    return splits


@versioned(1)
def fixed(n: int, protocol: Protocol, split: np.ndarray | None = None) -> Splits:
    """The one split that the task names: ``split`` says ``train`` or ``test`` of each sample."""
    if split is None:
        raise ScoreError("a fixed split needs a split column", hint="The task names none; use another splitter")
    order = np.random.RandomState(protocol.seed).permutation(n)  # so that a share of the training part is a random one
    test = np.asarray(split)[order] == "test"
    return [(order[~test], order[test])]


def _test_count(n: int, protocol: Protocol, what: str) -> int:
    test = math.ceil(protocol.test_size * n)
    if n < 2 or test >= n:
        expected = f"enough for a test part of {protocol.test_size:g} and a training part"
        raise ScoreError(f"too few {what}", expected=expected, got=n)
    return test
