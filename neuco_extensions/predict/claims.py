"""Which choices of the capabilities-encoding paper a table supports: five dimensions, and Euclidean distance.

Where an encoder begins decides much, so each is fitted from several starts, in other folds each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from neuco_extensions.predict.evaluate import Outcome, Protocol, cross_validate, difference, side_by_side
from neuco_extensions.predict.table import Table

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


def encoders(
    table: Table, seeds: int, protocol: Protocol = "paper", others: Sequence[str] = OTHERS, jobs: int = 1
) -> list[Encoder]:
    """The paper's choice first, then the others."""
    every = [(name, seed) for name in (CHOSEN, *others) for seed in range(seeds)]
    made = side_by_side({(n, seed): partial(cross_validate, table, n, protocol, seed) for n, seed in every}, jobs)
    chosen, *runs = ([made[name, seed] for seed in range(seeds)] for name in (CHOSEN, *others))
    claims = [Claim(name, *difference(run, chosen)) for name, run in zip(others, runs, strict=True)]
    return [_summary(run, claim) for run, claim in zip([chosen, *runs], [None, *claims], strict=True)]


def _summary(outcomes: list[Outcome], claim: Claim | None) -> Encoder:
    errors = [outcome.mse for outcome in outcomes]
    deviation = float(np.std(errors, ddof=1)) if len(errors) > 1 else 0.0
    return Encoder(outcomes[0].name, float(np.mean(errors)), deviation, claim)
