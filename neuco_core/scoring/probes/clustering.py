"""Clustering: k-means finds as many clusters as there are classes, without labels; how well do they agree?"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from neuco_core.protocol import Protocol
from neuco_core.scoring.metrics import v_measure
from neuco_core.scoring.probes import Fit, Split
from neuco_core.scoring.probes.knn import checked
from neuco_core.versions import versioned


@versioned(1)
class Clustering:
    """The clusters come from the training part, and the tested samples join the nearest one; best of ``starts``.

    With few tested samples for many classes v-measure is high by chance; ``adjusted_mutual_information`` is 0 then.
    A test part of one class has neither.
    """

    def __init__(self, protocol: Protocol) -> None:
        self.starts = checked(protocol, starts=3)["starts"]
        self.seed = protocol.seed

    def fit(self, split: Split) -> Fit:
        from sklearn.cluster import KMeans
        from sklearn.metrics import adjusted_mutual_info_score

        train, truth = split.x[split.train].astype(np.float64), split.y[split.test, 0].astype(np.int64)
        clusters = min(split.classes, len({row.tobytes() for row in train}))
        model = KMeans(clusters, n_init=self.starts, random_state=self.seed)
        with threadpool_limits(1, user_api="openmp"):  # of this thread; the order of sums changes their last digits
            found = model.fit(train).predict(split.x[split.test].astype(np.float64))
        several = len(np.unique(truth)) > 1
        agreement = v_measure(truth, np.eye(clusters)[found]) if several else np.nan
        adjusted = adjusted_mutual_info_score(truth, found) if several else np.nan
        return Fit(measures={"v_measure": agreement, "adjusted_mutual_information": adjusted})
