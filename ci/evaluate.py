"""Check and score touched plugins, in a process that sees them only as data (see ``overlay``).

    python -m ci.evaluate JOB.json

``PYTHONPATH`` starts with the overlay, ``NEUCO_REGISTRY`` is a scratch copy of main's registry.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from neuco_core.contract.contract import run_checks
from neuco_core.contract.subjects import MethodSubject, TaskSubject
from neuco_core.errors import NeucoError
from neuco_core.paths import registry_dir
from neuco_core.plugins.catalog import catalog, list_methods, list_suites, list_tasks, load_protocol
from neuco_core.records.fingerprint import Identity, embeddings_key, labels_key
from neuco_core.records.model import Record, fingerprint, record_bytes
from neuco_core.records.store import DEFAULT_PROTOCOL, write_record
from neuco_core.runs.engines import open_engine
from neuco_core.runs.plan import Plan, Planner
from neuco_core.runs.run import default_limits, run_plan
from neuco_core.specs import Dataset, Method, Task

Job = Mapping[str, Any]


def evaluate(job: Job) -> dict[str, Any]:
    """Findings and records of the job's tasks and methods."""
    tasks = {task.id: task for task in list_tasks()}
    methods = {method.id: method for method in list_methods()}
    mine = [tasks[name] for name in job["tasks"] if name in tasks]
    made = [methods[name] for name in job["methods"] if name in methods]
    findings = [f for task in mine for f in run_checks("task", TaskSubject(task), allow_unpinned=job["allow_unpinned"])]
    findings += [f for method in made for f in run_checks("method", MethodSubject(method)) if f.check != _ELSEWHERE]
    problems = [asdict(problem) for problem in catalog().problems() if problem.name in job["plugins"]]
    records = list(_records(mine, made, job))
    return {
        "findings": msgspec.to_builtins(findings),
        "problems": problems,
        "records": [record_bytes(record).decode() for record in records],
    }


_ELSEWHERE = "method-deterministic"  # tested by encoding twice in the sandbox; a file of embeddings cannot change


def _records(mine: list[Task], made: list[Method], job: Job) -> Iterator[Record]:
    """The touched rows and columns under the protocols of the suites that they belong to."""
    registry = registry_dir()
    for protocol, pairs in _cells(mine, made).items():
        planner = Planner(load_protocol(protocol), {})
        cells = tuple(planner.cell(method, task) for method, task in pairs)
        plan = Plan(planner.protocol, cells)
        limits = default_limits(1, float(job["seconds"]))
        for record in run_plan(plan, registry, open_engine("local", 1), limits):
            settled = _settle(record, job)
            if settled != record:
                write_record(settled, registry)
            yield settled


def _cells(mine: list[Task], made: list[Method]) -> dict[str, list[tuple[Method, Task]]]:
    """Method and task pairs by protocol: that of each suite, and the default for a task that is in no suite."""
    everyone, names = list_methods(), {task.id for task in mine}
    found: dict[str, dict[tuple[str, str], tuple[Method, Task]]] = {}
    suites = {suite.protocol: set() for suite in list_suites()}  # type: dict[str, set[str]]
    for suite in list_suites():
        suites[suite.protocol] |= set(suite.tasks)
    inside = set().union(*suites.values()) if suites else set()
    suites.setdefault(DEFAULT_PROTOCOL, set()).update(names - inside)
    for protocol, members in suites.items():
        for task in list_tasks():
            for method in everyone if task.id in names else made:
                if task.id in members:
                    found.setdefault(protocol, {})[method.id, task.id] = method, task
    return {protocol: list(pairs.values()) for protocol, pairs in found.items()}


def _settle(record: Record, job: Job) -> Record:
    """Name the inputs as main will see them after the merge, when the plugin is code again."""
    inputs = dict(record.inputs)
    if record.method in job["parts"]:
        inputs["embeddings_from"] = embeddings_key(job["parts"][record.method], _dataset_key(record.dataset))
    if record.task in job["loaders"]:
        words = job["loaders"][record.task]
        inputs["labels_from"] = labels_key(
            words["content"], record.kind, words["columns"], words["group"], words["code"]
        )
    if inputs == dict(record.inputs) or not record.ok:
        return record
    return msgspec.structs.replace(record, inputs=inputs, fingerprint=fingerprint(inputs))


def _dataset_key(dataset: str) -> str:
    return Identity(load_protocol(DEFAULT_PROTOCOL)).dataset(catalog().load(Dataset, dataset).id)


def main(path: str) -> int:
    job_file = Path(path)
    job = json.loads(job_file.read_text(encoding="utf-8"))
    try:
        result = evaluate(job)
    except NeucoError as error:
        result = {"findings": [], "problems": [], "records": [], "error": str(error)}
    job_file.with_name("result.json").write_text(json.dumps(result, allow_nan=False), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
