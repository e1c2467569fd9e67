"""Which cells of all suites are to be scored, in a tree where all plugins are data (see ``as_data``).

    python -m ci.replan OUT [SUITE…]

``OUT/plan.json`` has the cells that have no record, an outdated one, or one of a failure that may not come again; and
how many cannot be scored here, by reason.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ci.inside import write_json
from neuco_core.errors import NeucoError
from neuco_core.plugins.catalog import Catalog, catalog, load_protocol
from neuco_core.records.store import read_all
from neuco_core.runs.plan import PlannedCell, Planner
from neuco_core.specs import Method, Suite

# What a slow machine, a missing package or a broken download caused; a method's own error comes again.
RETRYABLE = ("timeout", "memory", "crash", "dependency", "data")


def cells(registry: Path, suites: Sequence[Suite]) -> Iterator[tuple[str, PlannedCell]]:
    """Every method on every task of the suites, once for each protocol."""
    records = {record.key: record for record in read_all(registry)}
    methods = list(catalog().all(Method).values())
    planners = {suite.protocol: Planner(load_protocol(suite.protocol), records, retry=True) for suite in suites}
    seen: set[tuple[str, str, str]] = set()
    for suite in suites:
        for task in catalog().suite_tasks(suite):
            for method in methods:
                place = suite.protocol, method.label, task.label
                if place not in seen:
                    seen.add(place)
                    yield suite.protocol, planners[suite.protocol].cell(method, task)


def plan(registry: Path, names: Sequence[str]) -> dict[str, Any]:
    known = Catalog(registry=registry)
    chosen = [known.suite(name) for name in names] if names else list(known.suites().values())
    wanted, left = [], Counter[str]()
    usable = []
    for suite in chosen:  # a dataset may name a protocol that does not exist, which is no reason to score nothing
        try:
            load_protocol(suite.protocol)
            usable.append(suite)
        except NeucoError as error:
            left[f"suite {suite.id}: {error}"] += 1
    held: set[tuple[str, str]] = set()
    busy: set[tuple[str, str]] = set()
    for protocol, cell in cells(registry, usable):
        ids = {("method", cell.method.id), ("task", cell.task.id)}
        again = cell.state == "retry" and cell.record is not None and cell.record.failure not in RETRYABLE
        if cell.to_run and not again:
            wanted.append([protocol, cell.method.label, cell.task.label, cell.state])
            busy |= ids
        elif cell.state == "skipped":
            left[cell.reason] += 1
            busy |= ids
        elif cell.state == "cached":
            held |= ids
    return {"cells": wanted, "skipped": dict(left), "held": sorted(held), "busy": sorted(busy)}


def main(arguments: Sequence[str]) -> int:
    out, *names = arguments
    os.environ["NEUCO_REGISTRY"] = str(Path("registry").absolute())  # this process is for nothing else
    try:
        write_json(Path(out) / "plan.json", plan(Path("registry"), names))
    except NeucoError as error:
        print(f"ci: error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
