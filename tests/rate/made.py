"""Records of methods that are coded in several ways, with known scores and sizes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import structs

from neuco_core.plugins.catalog import load_protocol
from neuco_core.records.model import Record
from neuco_core.specs import Suite
from neuco_extensions.coded.probe import coded_protocol
from tests.boards.helpers import make_record, make_suite

TASKS = ("first", "second")
SUITE = make_suite(*TASKS, kind="rate", protocol="ridge")
SIZES = {"float32": 256.0, "int8": 64.0, "binary": 8.0, "pca=4": 16.0}
# By method and coder, the mean score; of `steady` all forms are as good.
MEANS: Mapping[str, Mapping[str, float]] = {
    "wide": {"float32": 0.9, "int8": 0.88, "binary": 0.3, "pca=4": 0.5},
    "steady": {"float32": 0.7, "int8": 0.7, "binary": 0.7, "pca=4": 0.7},
    "lone": {"float32": 0.6},
}


def coded_records(means: Mapping[str, Mapping[str, float]] = MEANS, suite: Suite = SUITE) -> list[Record]:
    """Two tasks of 10 splits; the same splits are hard for everybody."""
    hard, base, records = np.random.default_rng(7).standard_normal(10), load_protocol(suite.protocol), []
    for method, by_coder in means.items():
        for coder, mean in by_coder.items():
            protocol = base if coder == "float32" else coded_protocol(base, coder)
            for number, task in enumerate(suite.tasks):
                splits = tuple((mean - 0.1 * number + 0.02 * hard).tolist())
                costs = {"bytes_per_sample": (SIZES[coder],) * 10, "shared_bytes": (100.0,) * 10}
                made = make_record(method, task, splits, protocol=protocol.name)
                settings = {} if coder == "float32" else costs
                records.append(structs.replace(made, settings=settings, dim=64, fingerprint=made.fingerprint))
    return records
