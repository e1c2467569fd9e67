"""What runs in a tree where all plugins are data (see ``ci.score``): no contributed code is imported here.

    python -m ci.evaluate OUT score|plan|boards JOB.json

``score`` checks the tasks and methods that a job names, and scores its cells. ``plan`` says which cells of the suites
have no record that holds. ``boards`` makes the boards of all suites from the registry's records. There is no network:
what could be fetched was, so whatever is not here is nobody's fault.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ci.inside import write_json
from ci.stub_tree import MADE, read_json
from neuco_core.boards.build import TooManyCellsError
from neuco_core.boards.store import current, write_board
from neuco_core.contract.contract import Finding, Inapplicable, all_checks, run_checks
from neuco_core.contract.probing import Probes
from neuco_core.contract.subjects import DatasetSubject, MethodSubject, TaskSubject
from neuco_core.errors import NeucoError
from neuco_core.plugins.catalog import Catalog, catalog, load_dataset, load_method, load_protocol, load_task
from neuco_core.plugins.discovery import BrokenPlugin
from neuco_core.plugins.loading import Plugins
from neuco_core.records.model import Record, record_line
from neuco_core.records.store import read_all
from neuco_core.runs.engine import default_limits, open_engine
from neuco_core.runs.plan import Plan, Planner
from neuco_core.runs.run import run_plan
from neuco_core.site.page_data import gather
from neuco_core.site.write import write_site
from neuco_core.specs import Dataset, Method, exact
from neuco_core.tables.embeddings import Embeddings, make_embeddings

Job = Mapping[str, Any]
# Tested in the sandbox, by encoding twice and by reading all; what looks at code, which is not here; and at the change.
ELSEWHERE = ("method-deterministic", "dataset-images")
OF_CODE = ("review", "imports", "tests", "change")
# What a slow machine, a missing package or a broken download caused; a method's own error comes again.
RETRYABLE = ("timeout", "memory", "crash", "dependency", "data")


class StoredSubject(MethodSubject):
    """A method of which everything was made in its sandbox."""

    def disturbed(self, dataset: str) -> np.ndarray:
        path = (self.folder or Path()) / MADE / "disturbed" / self.spec.label / f"{dataset}.npy"
        if not path.is_file():
            raise Inapplicable(f"{self.id} was not run on {dataset} here")
        return np.asarray(np.load(path, allow_pickle=False))

    @cached_property
    def probes(self) -> Probes:
        """Of the dataset with the most bands that the encoder was run on."""
        paths = ((self.folder or Path()) / MADE / "probes" / self.spec.label).glob("*.json")
        made = [msgspec.convert(read_json(path), Probes) for path in sorted(paths)]
        if not made:
            raise Inapplicable(f"{self.id} was not looked at while it ran here")
        return max(made, key=lambda probes: len(probes.bands))

    def plain(self, dataset: str, only: Collection[str] = ()) -> Embeddings:
        spec = load_dataset(dataset)
        folder = Path(spec.origin.source if spec.origin else "") / MADE / "cubes" / dataset
        if spec.cubes is None or not (folder / "plain.npy").is_file():
            raise Inapplicable(f"the images of {dataset} are not here")
        ids, rows = spec.cubes().ids(), np.load(folder / "plain.npy", allow_pickle=False)
        kept = [row for row, name in enumerate(ids) if not only or name in only]
        return make_embeddings(tuple(ids[row] for row in kept), rows[kept])


def score(job: Job, registry: Path) -> dict[str, Any]:
    """Findings and records of the job's tasks and methods; when its time is over, no further cell is begun."""
    end = time.monotonic() + job["time"]
    findings: list[Finding] = []
    for name in job["tasks"]:
        findings += _check("task", TaskSubject(load_task(exact(name))), name, job)
    for name in job["methods"]:
        findings += _check("method", StoredSubject(load_method(exact(name))), name, job)
    for name in job["datasets"]:
        findings += _check("dataset", DatasetSubject(catalog().load(Dataset, name)), name, job)
    records: list[Record] = []
    unscored = []
    limits = default_limits(1, float(job["seconds"]))
    for protocol, pairs in job["cells"].items():
        planner = Planner(load_protocol(protocol), {})
        cells = [planner.cell(load_method(exact(method)), load_task(exact(task))) for method, task in pairs]
        unscored += [cell.to_json() for cell in cells if not cell.to_run]
        late = [cell.to_json() | {"state": "skipped", "reason": "no time was left"} for cell in cells if cell.to_run]
        for record in run_plan(Plan(planner.protocol, tuple(cells)), registry, open_engine("local", 1), limits):
            made_from = "file" if load_method(exact(record.key[0])).files else "code"
            provenance = {**record.provenance, "commit": job["commit"], "made_from": made_from}
            records.append(msgspec.structs.replace(record, provenance=provenance))
            late = [cell for cell in late if (cell["method"], cell["task"]) != record.key[:2]]
            if time.monotonic() > end:
                break
        unscored += late
    return {
        "findings": msgspec.to_builtins(findings),
        "problems": [asdict(problem) for problem in problems(job["touched"])],
        "texts": [record_line(record).decode() for record in records],
        "unscored": unscored,
        "foreign": list(_foreign(records, job)),
    }


def _check(noun: str, subject: Any, name: str, job: Job) -> list[Finding]:
    """Run the contract; if only the card or the tests changed, the checks that look at nothing else."""
    if name in job["cards"]:
        checks = [f"{noun}-files", f"{noun}-metadata"]
    else:
        elsewhere = (*ELSEWHERE, *(f"{noun}-{name}" for name in OF_CODE))
        checks = [item.id for item in all_checks(noun) if item.id not in elsewhere]
    return run_checks(noun, subject, checks, allow_unpinned=noun == "task" and name in job["unpinned"])


def _foreign(records: Sequence[Record], job: Job) -> Iterator[tuple[str, str]]:
    """The failed cells whose untouched half cannot be had by itself: the other half is not to blame."""
    for record in records:
        if record.status == "failed":
            method, task, _ = record.key
            try:
                if task not in job["tasks"]:
                    load_task(exact(task)).labels()
                if method not in job["methods"]:
                    load_method(exact(method)).embeddings(record.dataset)
            except NeucoError:
                yield method, task


def problems(touched: Sequence[str]) -> list[BrokenPlugin]:
    """What is wrong with any plugin, and is not without the touched ones: whoever's it is, they brought it."""
    without = Catalog(Plugins(without=touched)).problems()
    return [problem for problem in catalog().problems() if problem not in without]


def plan(job: Job, registry: Path) -> dict[str, Any]:
    """The cells of the suites that have no record, or an outdated one; and why others cannot be scored here.

    With ``retry``, also those whose record is of a failure that may not come again.
    """
    records = {record.key: record for record in read_all(registry)}
    methods = list(catalog().all(Method).values())
    states: dict[tuple[str, str, str], str] = {}
    skipped = Counter[str]()
    planners: dict[str, Planner] = {}
    for suite in Catalog(registry=registry).suites().values():
        try:
            if suite.protocol not in planners:
                planners[suite.protocol] = Planner(load_protocol(suite.protocol), records, retry=True)
            tasks = catalog().suite_tasks(suite)
        except NeucoError as error:  # a bad suite is no reason to score nothing
            skipped[f"suite {suite.id}: {error}"] += 1
            continue
        for task, method in product(tasks, methods):
            label = (suite.protocol, method.label, task.label)
            if label in states:
                continue
            cell = planners[suite.protocol].cell(method, task)
            again = job["retry"] and cell.record is not None and cell.record.failure in RETRYABLE
            states[label] = cell.state if cell.to_run and (again or cell.state != "retry") else ""
            if cell.state == "skipped":
                skipped[cell.reason] += 1
    return {"cells": [[*label, state] for label, state in states.items() if state], "skipped": dict(skipped)}


def boards(job: Job, registry: Path) -> dict[str, Any]:
    """Make the boards of all suites, and the site if it is wanted; gives what changed, line by line."""
    now = current(registry)
    lines = []
    for suite in now.choose():
        try:
            changes = write_board(registry, now.board(suite))
        except TooManyCellsError as error:  # a suite of all tasks grows by itself; it must not hold up the others
            lines.append(f"board {suite.id} is not made: {error}")
            continue
        if changes:
            lines.append(f"board {suite.id}: {'; '.join(changes)}")
    if job["site"]:
        lines.append(f"site: {write_site(gather(registry), registry.with_name('site'))} pages")
    return {"lines": lines}


COMMANDS = {command.__name__: command for command in (score, plan, boards)}


def main(arguments: Sequence[str]) -> int:
    """Run a command on a copy of the registry; ``OUT/result.json`` has what it gives, or the ``error``."""
    out, command, job = arguments
    registry = Path(out) / "registry"
    shutil.copytree("registry", registry)
    os.environ |= {"NEUCO_REGISTRY": str(registry), "NEUCO_OFFLINE": "1"}  # this process is for nothing else
    try:
        result = COMMANDS[command](json.loads(Path(job).read_text(encoding="utf-8")), registry)
    except NeucoError as error:
        result = {"error": str(error)}
    write_json(Path(out) / "result.json", result)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
