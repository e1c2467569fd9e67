"""Retrieval: tested samples are queries, training samples are the gallery; nothing is learned.

The gallery is sorted by its distance to a query. What is of the query's class is relevant; of a multilabel task, what
shares a label with it. Distances, blocks and ties are those of nearest neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuco_core.protocol import Protocol
from neuco_core.scoring.probes import Fit, Split
from neuco_core.scoring.probes.knn import Space, checked, tested_rows
from neuco_core.versions import versioned


@versioned(1)
class Retrieval:
    """Mean average precision, and precision and recall ``at`` so many; ``metric`` is cosine or l2.

    With ``positives`` above 1 a query is the mean of so many tested samples of a class, or with a label, each used
    once for it; what is left over is no query. A query without anything relevant in the gallery does not count.
    """

    def __init__(self, protocol: Protocol) -> None:
        rules = checked(protocol, at=10, positives=1, metric="cosine")
        self.at, self.positives, self.metric = rules["at"], rules["positives"], rules["metric"]
        self.seed = protocol.seed
        self._x: np.ndarray | None = None

    def prepare(self, splits: Sequence[Split], threads: int) -> None:
        self._x = splits[0].x
        self._measures = self._measure(splits, threads)

    def fit(self, split: Split) -> Fit:
        # Scaled by the training part, distances are of one split only.
        values = self._measures[split.index] if split.x is self._x else self._measure([split], 1)[0]
        names = ("map", f"precision_at_{self.at}", f"recall_at_{self.at}")
        defined = values[~np.isnan(values[:, 0])]
        means = defined.mean(axis=0) if len(defined) else np.full(3, np.nan)
        return Fit(measures=dict(zip(names, means.tolist(), strict=True)), settings={"queries": len(defined)})

    def _measure(self, splits: Sequence[Split], threads: int) -> list[np.ndarray]:
        """Of each query of each split the average precision, and precision and recall at the front."""
        y, space = splits[0].y, Space(splits[0].x, self.metric)
        classes = splits[0].classes
        labels = np.eye(classes, dtype=np.float32)[y[:, 0].astype(np.int64)] if classes else y.astype(np.float32)
        if self.positives == 1:
            rows, places = tested_rows(splits)
            points, wanted = space.x[rows], labels[rows]
        else:
            drawn = [self._drawn(split, labels) for split in splits]
            ends = np.cumsum([len(groups) for groups, _ in drawn])
            places = [np.arange(end - len(groups), end) for end, (groups, _) in zip(ends, drawn, strict=True)]
            points = np.concatenate([space.x[groups].mean(axis=1) for groups, _ in drawn])
            wanted = np.concatenate([labels for _, labels in drawn])
        found = [np.empty((len(place), 3)) for place in places]

        def see(number: int, here: np.ndarray, order: np.ndarray, train: np.ndarray) -> None:
            gallery = order[train[order]].reshape(len(here), -1)
            relevant = wanted[places[number][here]] @ labels.T > 0
            found[number][here] = measures_of(np.take_along_axis(relevant, gallery, axis=1), self.at)

        space.visit(points, places, splits, see, threads)
        return found

    def _drawn(self, split: Split, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Groups of tested samples that share a label, and that label."""
        order = np.random.RandomState([self.seed, split.index]).permutation(split.test)
        groups, wanted = [], []
        for column, label in enumerate(np.eye(labels.shape[1], dtype=np.float32)):
            members = order[labels[order, column] > 0]
            whole = members[: len(members) // self.positives * self.positives].reshape(-1, self.positives)
            groups.append(whole)
            wanted.append(np.tile(label, (len(whole), 1)))
        return np.concatenate(groups), np.concatenate(wanted)


def measures_of(ranked: np.ndarray, at: int) -> np.ndarray:
    """(queries, 3): average precision, precision and recall at the front of what is ``ranked``: relevant or not.

    NaN where nothing is relevant. Of a gallery of fewer than ``at``, the front is all of it.
    """
    total = ranked.sum(axis=1)
    query, place = np.nonzero(ranked)
    number = np.arange(1, len(place) + 1) - (np.cumsum(total) - total)[query]
    precisions = np.bincount(query, number / (place + 1), minlength=len(ranked))
    front = ranked[:, :at]
    hits = front.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.stack([precisions / total, hits / front.shape[1], hits / total], axis=1)
