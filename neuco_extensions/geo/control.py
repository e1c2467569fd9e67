"""The location alone as a control: the nearest neighbour in space, by the same splits as the methods."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.spatial import cKDTree

from neuco_core.errors import NeucoError
from neuco_core.plugins.catalog import load_metric, load_task
from neuco_core.protocol import Protocol
from neuco_core.scoring.splits import Splits, splits_of
from neuco_core.specs import resolve
from neuco_core.tables.labels import Labels
from neuco_core.tables.positions import Positions, positions_of


@cache
def located(task: str) -> tuple[Labels, Positions] | None:
    """Labels with positions, if their dataset or file gives any; several boards may have the task."""
    try:
        labels = load_task(task).labels()
        return labels, positions_of(labels)
    except NeucoError:
        return None


@cache
def splits_by(task: str, protocol: Protocol) -> Splits:
    return splits_of(load_task(task).labels(), protocol)


@cache
def space_scores(task: str, protocol: Protocol) -> np.ndarray:
    """The location alone, by split: each tested sample gets the label of the training sample nearest to it."""
    found = located(task)
    if found is None:
        return np.empty(0)
    labels, positions = found
    truth, metric = labels.values, resolve(load_metric(load_task(task).metric).function)
    classes = labels.kind == "classification"
    scores = []
    for train, test in splits_by(task, protocol):
        _, nearest = cKDTree(positions.xyz[train]).query(positions.xyz[test])
        true, predicted = truth[test], truth[train[nearest]]
        if classes:
            true, predicted = true.astype(np.int64), np.eye(int(truth.max()) + 1)[predicted.astype(np.int64)]
        scores.append(metric(true, predicted) if np.ptp(true, axis=0).all() else np.nan)
    return np.array(scores)
