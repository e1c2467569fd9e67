"""How long a plan over many records takes: ``python benchmarks/matrix.py [RECORDS [FOLDER]]`` (10,000 unless told).

Writes a folder of plugins with one task plugin and enough file methods, a record for every cell, all current, and
times ``neuco score --all --dry-run`` from the start of the process to its end. A FOLDER is kept and used again.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from neuco_core.files import hashed
from neuco_core.plugins.catalog import load_protocol
from neuco_core.records.fingerprint import CellInputs
from neuco_core.records.model import Record, summary
from neuco_core.records.store import write_records
from neuco_core.specs import Method, Remote, Task

TASKS = 11
SPLITS = 40
PLUGIN = """
from neuco_core import Dataset, Method, Remote, Task, hookimpl

@hookimpl
def neuco_datasets():
    yield Dataset(id="many")

@hookimpl
def neuco_tasks():
    for i in range({tasks}):
        source = Remote("file:///t", sha256=f"{{i:064x}}")
        yield Task(id=f"many_t{{i}}", dataset="many", kind="regression", source=source)

@hookimpl
def neuco_methods():
    for i in range({methods}):
        yield Method(id=f"many_m{{i}}", files={{"many": Remote("file:///m", sha256=f"{{i:064x}}")}})
"""


def main(count: int, folder: Path) -> None:
    methods = -(-count // TASKS)
    if not (folder / "registry").exists():
        plugin = folder / "neuco_tasks" / "many" / "__init__.py"
        plugin.parent.mkdir(parents=True)
        plugin.write_text(PLUGIN.format(tasks=TASKS, methods=methods))
        start = time.perf_counter()
        fill(folder / "registry", methods)
        print(f"{methods * TASKS} records of {methods} methods × {TASKS} tasks written in {since(start)}")
    for run in ("first", "second"):
        start, before = time.perf_counter(), children_seconds()
        out = plan(folder)
        print(f"{run} plan: {since(start)}, of which the processor {children_seconds() - before:.1f} s\n{out}")


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def since(start: float) -> str:
    return f"{time.perf_counter() - start:.1f} s"


def fill(registry: Path, methods: int) -> None:
    chance = random.Random(1)
    decides = CellInputs(load_protocol("neuco-2025"))
    remotes = [Remote("file:///t", sha256=f"{i:064x}") for i in range(max(TASKS, methods))]
    tasks = [Task(id=f"many_t{i}", dataset="many", kind="regression", source=remotes[i]) for i in range(TASKS)]
    for i in range(methods):
        method = Method(id=f"many_m{i}", files={"many": remotes[i]})
        write_records(registry, [record(decides, method, task, chance) for task in tasks])


def record(decides: CellInputs, method: Method, task: Task, chance: random.Random) -> Record:
    inputs = {**decides.of(method, task), "labels": "0" * 64, "embeddings": "0" * 64}
    splits = tuple(chance.random() for _ in range(SPLITS))
    mean, std, q = summary(splits, True) or (None, None, None)
    return Record(
        method=method.id,
        method_version=1,
        task=task.id,
        task_version=1,
        dataset=task.dataset,
        kind="regression",
        metric="r2",
        protocol="neuco-2025",
        status="ok",
        fingerprint=hashed(inputs),
        inputs=inputs,
        greater_is_better=True,
        per_split=splits,
        mean=mean,
        std=std,
        q=q,
        metrics={"mse": splits, "mae": splits},
        samples={"used": 1000},
        upper=1.0,
    )


def plan(folder: Path) -> str:
    command = [
        sys.executable,
        "-m",
        "neuco_core.cli",
        "score",
        "--all",
        "--dry-run",
        "--method",
        "many_*",
        "--dataset",
        "many",
    ]
    paths = [str(folder), str(Path(__file__).resolve().parents[1])]
    env = {**os.environ, "NEUCO_REGISTRY": str(folder / "registry"), "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    if len(sys.argv) > 2:
        main(number, Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(number, Path(name))
