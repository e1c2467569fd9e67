"""What 1,000 tasks and 500 methods cost: ``python benchmarks/scale.py [--tasks 1000] [--methods 500] [--all]``.

Writes plugins into a folder, one for each task and each method, and records of some of the cells, and measures each
command in a process of its own: seconds of the processor and of the clock, and the most memory. ``--all`` also checks
all tasks at once in the large folder. To measure another version of neuco, put its checkout on the Python path:
``PYTHONPATH=../old python …``.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import neuco_core

ROOT = Path(neuco_core.__file__).parents[1]
BANDS = 8  # of an image; labels are sums of them with noise, so that each task can be solved and none is another
TASK = """from neuco_core import Baseline, Remote, Task, hookimpl

@hookimpl
def neuco_tasks():
    yield Task(
        id="{name}", title="{name}", description="A made-up task", dataset="scale", kind="regression", unit="1",
        license="MIT", citation="10.1234/example",
        source=Remote("pkg://neuco_tasks.{name}/labels.csv", sha256="{sha}", size={size}),
        baseline=Baseline(method="m000", score=0.5, tolerance=1.0, protocol="ridge+k=10"),
    )
"""
DATASET = """from neuco_core import Dataset, hookimpl

def cubes():
    from neuco_tasks.scale.cubes import Cubes
    return Cubes()

@hookimpl
def neuco_datasets():
    yield Dataset(id="scale", bands={bands}, seasons=("scene",), cubes=cubes, license="MIT")
"""
CUBES = """import numpy as np
from neuco_core.cubes.cubes import CubeBatch

class Cubes:
    version, bands, seasons = "1", tuple(f"made/{{i}}" for i in range({bands})), ("scene",)

    def ids(self):
        return tuple(f"s{{i:05d}}" for i in range({samples}))

    def read(self, ids):
        rows = [np.random.default_rng(int(name[1:])).standard_normal(({bands}, 1, 1)) for name in ids]
        return CubeBatch(tuple(ids), np.stack(rows)[:, None].astype("float32"), self.bands, self.seasons)
"""
METHOD = """from neuco_core import Method, Remote, hookimpl

@hookimpl
def neuco_methods():
    remote = Remote("pkg://neuco_methods.{name}/rows.csv", sha256="{sha}", size={size})
    yield Method(id="{name}", title="{name}", description="Made up", license="MIT", files={{"scale": remote}})
"""


class Used(NamedTuple):
    """What a process took: seconds of the processor and of the clock, and MB; and what it printed."""

    processor: float
    clock: float
    memory: float
    text: str


def run(env: dict[str, str], *arguments: str) -> Used:
    """Run a Python process to its end."""
    with tempfile.TemporaryFile() as out:
        start = time.perf_counter()
        child = subprocess.Popen([sys.executable, *arguments], env=env, stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode()
    if child.returncode:
        raise SystemExit(f"{' '.join(arguments)[:200]} ended with {child.returncode}:\n{text[-2000:]}")
    return Used(used.ru_utime + used.ru_stime, seconds, used.ru_maxrss / 1024, text)


class World:
    """A folder of plugins and records, and ways to run neuco in it."""

    def __init__(self, folder: Path, tasks: int, methods: int, samples: int) -> None:
        self.folder = folder
        self.tasks = [f"t{i:04d}" for i in range(tasks)]
        self.methods = [f"m{i:03d}" for i in range(methods)]
        ids = [f"s{i:05d}" for i in range(samples)]
        images = np.stack([np.random.default_rng(i).standard_normal(BANDS) for i in range(samples)])
        chance = np.random.default_rng(0)
        dataset = folder / "neuco_tasks" / "scale"
        dataset.mkdir(parents=True)
        (dataset / "__init__.py").write_text(DATASET.format(bands=tuple(f"made/{i}" for i in range(BANDS))))
        (dataset / "cubes.py").write_text(CUBES.format(bands=BANDS, samples=samples))
        for name in self.tasks:
            weights = chance.standard_normal(BANDS)
            labels = images @ (3 * weights / np.linalg.norm(weights)) + 2 * chance.standard_normal(samples)
            self._plugin("neuco_tasks", name, TASK, "labels.csv", ids, labels[:, None], ["label"])
        for name in self.methods:
            rows = images + chance.standard_normal(images.shape)
            self._plugin("neuco_methods", name, METHOD, "rows.csv", ids, rows, [str(i) for i in range(BANDS)])

    def _plugin(
        self, package: str, name: str, source: str, file: str, ids: list[str], rows: np.ndarray, columns: list[str]
    ) -> None:
        folder = self.folder / package / name
        folder.mkdir(parents=True)
        numbers = [",".join(f"{value:.4f}" for value in row) for row in rows]
        lines = [",".join(["id", *columns]), *(f"{sample},{row}" for sample, row in zip(ids, numbers, strict=True))]
        data = ("\n".join(lines) + "\n").encode()
        (folder / file).write_bytes(data)
        sha = hashlib.sha256(data).hexdigest()
        (folder / "__init__.py").write_text(source.format(name=name, sha=sha, size=len(data)))
        (folder / "README.md").write_text(f"# {name}\n")
        (folder / "test.py").write_text("def test_nothing():\n    pass\n")

    @property
    def env(self) -> dict[str, str]:
        own = {"NEUCO_REGISTRY": str(self.folder / "registry"), "NEUCO_CACHE": str(self.folder / "cache")}
        return {**os.environ, **own, "PYTHONPATH": os.pathsep.join([str(self.folder), str(ROOT)])}

    def run(self, *arguments: str) -> Used:
        return run(self.env, *arguments)

    def neuco(self, *arguments: str) -> Used:
        return self.run("-m", "neuco_core.cli", *arguments)


WRITE = """
import sys
from pathlib import Path
from benchmarks_matrix import record
from neuco_core import load_method, load_task
from neuco_core.plugins.catalog import load_protocol
from neuco_core.records.fingerprint import Identity
from neuco_core.records.store import write_records
import random
identity, chance = Identity(load_protocol("neuco-2025")), random.Random(1)
registry, tasks, methods = Path(sys.argv[1]), sys.argv[2].split(), sys.argv[3].split()
for method in map(load_method, methods):
    write_records(registry, [record(identity, method, load_task(task), chance) for task in tasks])
"""
STALE = """
import os, time
from pathlib import Path
from neuco_core.records.store import read_all
from neuco_core.runs.plan import stale_records
records = read_all(Path(os.environ["NEUCO_REGISTRY"]))
for what in ("importing the plugins", "a second time"):
    start = time.process_time()
    stale = stale_records(records)
    seconds = time.process_time() - start
    each = 1000 * seconds / len(records)
    print(f"  {what}: {len(stale)} of {len(records)} stale, {seconds:.2f} s, {each:.3f} ms a record")
"""


def measure_check_one(world: World) -> None:
    show("neuco check, one task", world.neuco("check", world.tasks[len(world.tasks) // 2]))


def measure_check_method(world: World) -> None:
    show("neuco check, one method", world.neuco("check", world.methods[-1]))


def measure_check_all(world: World, *options: str) -> float:
    """All tasks of the folder, named one by one: ``--all`` would add those that ship."""
    used = world.neuco("check", *world.tasks, *options)
    show(f"neuco check, {len(world.tasks)} tasks {' '.join(options)}", used)
    return used.processor


def measure_growth(sizes: list[int], samples: int) -> None:
    """The one check of a task that looks at the others."""
    times = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            times.append(measure_check_all(World(Path(name), size, 1, samples), "--only", "task-novelty"))
    steps = [math.log(b / a) / math.log(n / m) for a, b, m, n in zip(times, times[1:], sizes, sizes[1:], strict=False)]
    print("  time grows with the number of tasks to the power of " + ", ".join(f"{step:.2f}" for step in steps))


def measure_plan(world: World) -> None:
    command = ("score", "--all", "--dry-run", "--method", "m*", "--dataset", "scale", "--protocol", "neuco-2025")
    show(f"neuco score --all --dry-run, {len(world.tasks) * len(world.methods)} cells", world.neuco(*command))


def measure_staleness(world: World) -> None:
    used = world.run("-c", STALE)
    show("reading records and finding the stale ones", used)
    print(used.text.rstrip())


def measure_size(world: World) -> None:
    """What the records take as they lie in the registry."""
    files = [path for path in (world.folder / "registry").rglob("*") if path.is_file()]
    total = sum(path.stat().st_size for path in files)
    print(f"  {len(files)} files of records, {total / 1e6:.1f} MB, {total / max(len(files), 1):.0f} bytes each")


# What is measured in the large folder, in this order; publishing is in ``publish.py``.
MEASURES: list[Callable[[World], None]] = [
    measure_size,
    measure_staleness,
    measure_plan,
    measure_check_one,
    measure_check_method,
]


def show(what: str, used: Used) -> None:
    print(f"{what:<52} {used.processor:8.1f} s ({used.clock:.1f} s) {used.memory:8.0f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--methods", type=int, default=500)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--records", type=int, default=20_000, help="Cells with a record.")
    parser.add_argument("--growth", type=int, nargs="*", default=[50, 100, 200], help="Numbers of tasks to check.")
    parser.add_argument("--all", action="store_true", help="Also check all tasks of the large folder.")
    options = parser.parse_args()
    print(f"neuco of {ROOT}")
    if len(options.growth) > 1:
        measure_growth(options.growth, options.samples)
    with tempfile.TemporaryDirectory() as name:
        world = World(Path(name), options.tasks, options.methods, options.samples)
        own = Path(__file__).with_name("matrix.py")
        (world.folder / "benchmarks_matrix.py").write_text(own.read_text())  # it knows what a record looks like
        scored = world.methods[: max(1, options.records // options.tasks)]
        world.run("-c", WRITE, str(world.folder / "registry"), " ".join(world.tasks), " ".join(scored))
        for measure in MEASURES:
            measure(world)
        if options.all:
            measure_check_all(world)


if __name__ == "__main__":
    main()
