"""The leaderboard's table of a submission by capability, theirs and ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from neuco_extensions.geobench.facts import CAPABILITIES
from neuco_extensions.geobench.iqm import Score, official_replicates, score
from neuco_extensions.geobench.normaliser import Normaliser
from neuco_extensions.geobench.submission import Submission


@dataclass(frozen=True)
class Pair:
    """A capability score as the leaderboard prints it, with its ±, and ours with the standard error."""

    official: float
    official_error: float
    ours: Score


def capability_table(
    submission: Submission,
    normaliser: Normaliser,
    capabilities: Mapping[str, tuple[str, ...]] = CAPABILITIES,
) -> dict[str, dict[str, Pair]]:
    """By backbone and capability; a backbone that lacks a dataset of a capability has no score for it."""
    values = {key: normaliser(key[1], scores) for key, scores in submission.scores().items()}
    table: dict[str, dict[str, Pair]] = {backbone: {} for backbone in submission.backbones}
    for capability, datasets in capabilities.items():
        inside = {key: own for key, own in values.items() if key[1] in datasets}
        theirs = official_replicates({key: own.tolist() for key, own in inside.items()})
        for backbone in submission.backbones:
            keys = [(backbone, dataset) for dataset in datasets]
            if all(key in inside for key in keys):
                ours = score([inside[key].tolist() for key in keys], names=datasets)
                own = theirs[backbone]
                error = float(own.std(ddof=1) / np.sqrt(len(own)))
                table[backbone][capability] = Pair(float(own.mean()), error, ours)
    return table
