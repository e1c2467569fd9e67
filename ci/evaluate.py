"""Check and score touched plugins in a tree where all plugins are data (see ``as_data``).

    python -m ci.evaluate OUT JOB.json

The job names tasks and methods to check, and the cells to score by protocol. No contributed code is imported here, and
there is no network: what could be fetched was, so whatever is not here is nobody's fault.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from ci.inside import write_json
from ci.stub import MADE, place_of
from neuco_core.contract.contract import Inapplicable, all_checks, run_checks
from neuco_core.contract.subjects import DatasetSubject, MethodSubject, TaskSubject
from neuco_core.errors import NeucoError
from neuco_core.plugins.catalog import Catalog, catalog, load_method, load_protocol, load_task
from neuco_core.plugins.discovery import BrokenPlugin, Candidate
from neuco_core.plugins.loading import Plugins
from neuco_core.records.model import Record, record_line
from neuco_core.runs.engine import open_engine
from neuco_core.runs.plan import Plan, Planner
from neuco_core.runs.run import default_limits, run_plan
from neuco_core.specs import Dataset, exact

if TYPE_CHECKING:
    import numpy as np

    from neuco_core.tables.embeddings import Embeddings

Job = Mapping[str, Any]
ELSEWHERE = ("method-deterministic", "dataset-images")  # tested in the sandbox, by encoding twice and by reading all


class StoredSubject(MethodSubject):
    """A method of which everything was made in its sandbox."""

    def disturbed(self, dataset: str) -> np.ndarray:
        import numpy as np

        path = (self.folder or Path()) / MADE / "disturbed" / place_of(self.spec) / f"{dataset}.npy"
        if not path.is_file():
            raise Inapplicable(f"{self.id} was not run on {dataset} here")
        return np.asarray(np.load(path, allow_pickle=False))

    def plain(self, dataset: str) -> Embeddings:
        import numpy as np

        from neuco_core.tables.embeddings import make_embeddings

        spec = self.catalog.load(Dataset, dataset)
        folder = Path(spec.origin.source if spec.origin else "") / MADE / "cubes" / dataset
        if spec.cubes is None or not (folder / "plain.npy").is_file():
            raise Inapplicable(f"the images of {dataset} are not here")
        return make_embeddings(spec.cubes().ids(), np.load(folder / "plain.npy", allow_pickle=False))


def evaluate(job: Job, registry: Path) -> dict[str, Any]:
    """Findings and records of the job's tasks and methods."""
    findings = []
    for name in job["tasks"]:
        subject, unpinned = TaskSubject(load_task(exact(name))), name in job["unpinned"]
        findings += run_checks("task", subject, _only(name, "task", job), allow_unpinned=unpinned)
    for name in job["methods"]:
        findings += run_checks("method", StoredSubject(load_method(exact(name))), _only(name, "method", job))
    for name in job["datasets"]:
        findings += run_checks("dataset", DatasetSubject(catalog().load(Dataset, name)), _only(name, "dataset", job))
    plans = [_plan(protocol, pairs) for protocol, pairs in job["cells"].items()]
    records = [record for plan in plans for record in _records(plan, job, registry)]
    return {
        "findings": msgspec.to_builtins(findings),
        "problems": [asdict(problem) for problem in problems(job["touched"])],
        "records": [record_line(record).decode() for record in records],
        "unscored": [cell.to_json() for plan in plans for cell in plan.cells if not cell.to_run],
        "foreign": list(_foreign(records, job)),
    }


def _only(name: str, noun: str, job: Job) -> list[str]:
    """The checks to run; if only the card or the tests changed, those that look at nothing else."""
    if name in job["cards"]:
        return [f"{noun}-files", f"{noun}-metadata"]
    return [item.id for item in all_checks(noun) if item.id not in ELSEWHERE]


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


class Untouched(Plugins):
    """All plugins but the modules given."""

    def __init__(self, touched: Sequence[str]) -> None:
        super().__init__()
        self.touched = touched

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        return tuple(item for item in super().candidates if item.module not in self.touched)


def problems(touched: Sequence[str]) -> list[BrokenPlugin]:
    """What is wrong with any plugin, and is not without the touched ones: whoever's it is, they brought it."""
    known = Catalog(Untouched(touched)).problems()
    return [problem for problem in catalog().problems() if problem not in known]


def _plan(protocol: str, pairs: Sequence[tuple[str, str]]) -> Plan:
    planner = Planner(load_protocol(protocol), {})
    cells = (planner.cell(load_method(exact(method)), load_task(exact(task))) for method, task in pairs)
    return Plan(planner.protocol, tuple(cells))


def _records(plan: Plan, job: Job, registry: Path) -> Iterator[Record]:
    """The records of a plan; each names the commit that it was made from."""
    limits = default_limits(1, float(job["seconds"]))
    for record in run_plan(plan, registry, open_engine("local", 1), limits):
        yield replace(record, provenance={**record.provenance, "commit": job["commit"]})


def main(arguments: list[str]) -> int:
    out, path = arguments
    registry = Path(out) / "registry"
    shutil.copytree("registry", registry)
    os.environ |= {"NEUCO_REGISTRY": str(registry), "NEUCO_OFFLINE": "1"}  # this process is for nothing else
    try:
        result = evaluate(json.loads(Path(path).read_text(encoding="utf-8")), registry)
    except NeucoError as error:
        result = {"error": str(error)}
    write_json(Path(out) / "result.json", result)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
