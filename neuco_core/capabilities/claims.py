"""Which choices of the capabilities-encoding paper a table supports: five dimensions, and Euclidean distance.

Where an encoder begins decides much, so each is fitted from several starts, in other folds each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neuco_core.capabilities.evaluate import Outcome, Protocol, cross_validate, difference
from neuco_core.capabilities.table import Table

CHOSEN = "l2-5"  # the paper's own
OTHERS = ("l2-2", "l2-3", "l2-7", "l2-10", "cosine-5", "cosine-15", "poincare-5")


@dataclass(frozen=True)
class Claim:
    """That the paper's choice is better than another encoder: how much larger its error is, with a 95 % interval."""

    other: str
    more: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        return "supported" if self.low > 0 else "opposite" if self.high < 0 else "not supported"


@dataclass(frozen=True)
class Encoder:
    """The mean error over seeds, their standard deviation, and what this says of the paper's choice."""

    name: str
    mse: float
    deviation: float
    claim: Claim | None


def encoders(table: Table, seeds: int, protocol: Protocol = "paper", others: Sequence[str] = OTHERS) -> list[Encoder]:
    """The paper's choice first, then the others."""
    chosen = _run(table, CHOSEN, seeds, protocol)
    found = [_summary(chosen, None)]
    for name in others:
        outcomes = _run(table, name, seeds, protocol)
        found.append(_summary(outcomes, Claim(name, *difference(outcomes, chosen))))
    return found


def _run(table: Table, name: str, seeds: int, protocol: Protocol) -> list[Outcome]:
    return [cross_validate(table, name, protocol, seed) for seed in range(seeds)]


def _summary(outcomes: list[Outcome], claim: Claim | None) -> Encoder:
    errors = [outcome.mse for outcome in outcomes]
    deviation = float(np.std(errors, ddof=1)) if len(errors) > 1 else 0.0
    return Encoder(outcomes[0].name, float(np.mean(errors)), deviation, claim)
