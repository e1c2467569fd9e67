"""Records for analysis: one array over method, task and split."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from neuco_core.errors import UsageError
from neuco_core.records.model import Record

if TYPE_CHECKING:
    import xarray


def score_array(records: Iterable[Record], protocol: str = "neuco-2025") -> xarray.DataArray:
    """The scores of all splits under a protocol; NaN where a cell, or a split of it, has none.

    Tasks carry their dataset and metric, methods whether they are a baseline. Select with a mapping,
    ``scores.sel({"method": "pca"})``: as a keyword, xarray takes ``method`` for its way to interpolate.
    """
    import xarray as xr

    scored = [record for record in records if record.ok and record.protocol == protocol]
    if not scored:
        raise UsageError(f"no scores under the protocol {protocol!r}", hint="Run `neuco score --all`")
    methods = {record.method: record.baseline for record in scored}
    tasks = {record.task: (record.dataset, record.metric) for record in scored}
    names, columns = sorted(methods), sorted(tasks)
    values = np.full((len(names), len(columns), max(len(record.per_split) for record in scored)), np.nan)
    for record in scored:
        row = values[names.index(record.method), columns.index(record.task)]
        row[: len(record.per_split)] = [np.nan if value is None else value for value in record.per_split]
    coords = {
        "method": names,
        "task": columns,
        "baseline": ("method", [methods[name] for name in names]),
        "dataset": ("task", [tasks[name][0] for name in columns]),
        "metric": ("task", [tasks[name][1] for name in columns]),
    }
    return xr.DataArray(values, coords, ("method", "task", "split"), name="score", attrs={"protocol": protocol})
