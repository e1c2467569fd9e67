"""What publishing costs: ``python benchmarks/publish.py [--tasks 1000] [--methods 500] [--each 100]``.

Makes a tree as main has it and packed records of all cells but those of one method; then publishes that method's
records: every plugin is asked in a sandbox of its own what it registers, the records are decided on and packed, the
boards of a frozen suite of 20 tasks and of the living suite of all tasks are made. ``--each`` is how many tasks or
methods a plugin registers: with 1 the time of the sandboxes is seen, with 100 that of the records. Prints seconds of
the clock; of the processor and of memory only what can be seen from outside the sandbox.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.matrix import record
from benchmarks.scale import ROOT, Used, run, show
from ci.report import PluginReport, Report
from neuco_core.contract.contract import Finding
from neuco_core.plugins.catalog import load_protocol
from neuco_core.records.fingerprint import Identity
from neuco_core.records.model import Record, record_bytes
from neuco_core.records.packs import change_packs, record_name
from neuco_core.specs import Method, Remote, Task

SUITE = 'id = "some"\ntitle = "Some"\nprotocol = "neuco-2025"\n\n[tasks]\n'
DATASET = """from neuco_core import Dataset, hookimpl

@hookimpl
def neuco_datasets():
    yield Dataset(id="scale")
"""
TASKS = """from neuco_core import Remote, Task, hookimpl

@hookimpl
def neuco_tasks():
    for i in range({count}):
        source = Remote("https://example.org/t", sha256=f"{{i:064x}}")
        yield Task(id=f"{name}_{{i}}", dataset="scale", kind="regression", source=source)
"""
METHODS = """from neuco_core import Method, Remote, hookimpl

@hookimpl
def neuco_methods():
    for i in range({count}):
        yield Method(id=f"{name}_{{i}}", files={{"scale": Remote("https://example.org/m", sha256=f"{{i:064x}}")}})
"""


class World:
    """A tree with plugins, and what they register."""

    def __init__(self, folder: Path, tasks: int, methods: int, each: int) -> None:
        self.folder = folder
        for name in ("neuco_core", "ci", "registry/schema"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        self._write("neuco_tasks/scale", DATASET)
        self.tasks = [Task(id=name, dataset="scale", kind="regression", source=remote) for name, remote in
                      self._plugins("neuco_tasks", "t", TASKS, tasks, each)]  # fmt: skip
        self.methods = [Method(id=name, files={"scale": remote}) for name, remote in
                        self._plugins("neuco_methods", "m", METHODS, methods, each)]  # fmt: skip
        suite = folder / "registry" / "suites" / "some.toml"
        suite.parent.mkdir()
        suite.write_text(SUITE + "".join(f"{task.id} = 1\n" for task in self.tasks[:20]))

    def _plugins(self, tree: str, letter: str, source: str, count: int, each: int) -> Iterator[tuple[str, Remote]]:
        (self.folder / tree).mkdir(exist_ok=True)
        (self.folder / tree / "__init__.py").touch()
        for start in range(0, count, each):
            name, own = f"{letter}{start:04d}", min(each, count - start)
            self._write(f"{tree}/{name}", source.format(name=name, count=own))
            for i in range(own):
                yield f"{name}_{i}", Remote(f"https://example.org/{letter}", sha256=f"{i:064x}")

    def _write(self, place: str, source: str) -> None:
        (self.folder / place).mkdir(parents=True)
        (self.folder / place / "__init__.py").write_text(source)

    def rows(self, method: Method) -> Iterator[Record]:
        chance, identity = random.Random(method.id), Identity(load_protocol("neuco-2025"))
        yield from (record(identity, method, task, chance) for task in self.tasks)

    def fill(self) -> None:
        """Packed records of all methods but the last."""
        for method in self.methods[:-1]:
            made = {record_name(item.task, item.protocol): record_bytes(item) for item in self.rows(method)}
            change_packs(self.folder / "registry", {method.id: made})

    def publish(self) -> Used:
        """The last method's records, as a report has them."""
        last = self.methods[-1]
        texts = tuple(record_bytes(item).decode() for item in self.rows(last))
        fine = (Finding("method-metadata", last.id, "ok", "made up"),)
        plugin = PluginReport("neuco_methods", last.id.partition("_")[0], "changed", (), (last.id,), fine)
        report = self.folder / "report.json"
        report.write_bytes(Report("0" * 40, "1" * 40, "bubblewrap", (plugin,), (), texts, (), 0.0, 1).to_bytes())
        os.chdir(self.folder)
        return run({**os.environ, "PYTHONPATH": str(self.folder)}, "-m", "ci", "publish", "--report", str(report))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--methods", type=int, default=500)
    parser.add_argument("--each", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        world = World(Path(name), options.tasks, options.methods, options.each)
        start = time.process_time()
        world.fill()
        files = list((world.folder / "registry" / "records").rglob("*.xz"))
        size = sum(path.stat().st_size for path in files)
        print(f"{options.tasks * (options.methods - 1)} records in {len(files)} packs, {size / 1e6:.1f} MB,", end=" ")
        print(f"made in {time.process_time() - start:.0f} s of the processor", flush=True)
        used = world.publish()
        show("python -m ci publish, one more method", used)
        print("  " + used.text.strip().replace("\n", "\n  "))


if __name__ == "__main__":
    main()
