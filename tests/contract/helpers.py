"""A small dataset with a good task and a good method, as plugin directories; and ways to spoil them."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import neuco_methods
import neuco_tasks
from neuco_core.contract.checks.plugin import UNUSED
from neuco_core.plugins.catalog import catalog
from neuco_core.plugins.discovery import extended
from tests import command
from tests.command import Said

COUNT = 150

DATASET = """
import numpy as np
from neuco_core.cubes.cubes import CubeBatch

class Cubes:
    version, bands, seasons = "1", ("grey/0",), ("scene",)
    def ids(self):
        return tuple(f"s{{i:03d}}" for i in range({count}))
    def read(self, ids):
        rows = [np.random.default_rng(int(name[1:])).standard_normal((1, 1, 4, 4)) for name in ids]
        return CubeBatch(tuple(ids), np.stack(rows).astype("float32"), self.bands, self.seasons)
"""

TASK = """
from neuco_core import Baseline, Dataset, Remote, Task, hookimpl

def cubes():
    from neuco_tasks.good.cubes import Cubes
    return Cubes()

@hookimpl
def neuco_datasets():
    yield Dataset(id="good", bands=("grey/0",), seasons=("scene",), cubes=cubes, license="MIT")

@hookimpl
def neuco_tasks():
    yield Task(
        id="good",
        title="Good",
        description="Sum of the pixels",
        dataset="good",
        kind="regression",
        unit="1",
        license="CC-BY-4.0",
        citation="10.1234/example",
        source=Remote("pkg://neuco_tasks.good/labels.csv", sha256="{sha}", size={size}),
        baseline=Baseline(method="plain", score={score}, tolerance=0.05, protocol="ridge+k=10"),
    )
"""

METHOD = """
from neuco_core import Method, hookimpl

class Flat:
    def encode(self, batch):
        return batch.values.reshape(len(batch.ids), -1)

@hookimpl
def neuco_methods():
    yield Method(id="plain", title="Pixels", description="The pixels", encoder=Flat, license="MIT", bands=("grey/0",))
"""

# Checks: git and main are not here, and pytest, which runs now, does not run itself.
NOT_HERE = {f"{noun}-{name}" for noun in ("task", "method", "dataset") for name in ("tests", "change")}
TEST = "def test_something():\n    assert 1 + 1 == 2\n"


def labels() -> str:
    """The sum of a sample's pixels with some noise, as a CSV."""
    random = np.random.default_rng(5)
    sums = [np.random.default_rng(i).standard_normal((1, 1, 4, 4)).sum() for i in range(COUNT)]
    rows = [f"s{i:03d},{total + 1.5 * random.standard_normal():.4f}" for i, total in enumerate(sums)]
    return "\n".join(["id,label", *rows, ""])


def write_good(folder: Path) -> Path:
    """The folder for the Python path with ``neuco_tasks/good`` and ``neuco_methods/plain``."""
    text = labels()
    sha = hashlib.sha256(text.encode()).hexdigest()
    task, method = folder / "neuco_tasks" / "good", folder / "neuco_methods" / "plain"
    task.mkdir(parents=True)
    method.mkdir(parents=True)
    (task / "labels.csv").write_text(text)
    (task / "cubes.py").write_text(DATASET.format(count=COUNT))
    (task / "__init__.py").write_text(TASK.format(sha=sha, size=len(text), score=0.84))
    (task / "README.md").write_text("# good\n\nThe sum of the pixels.\n")
    (task / "test.py").write_text(TEST)
    (method / "__init__.py").write_text(METHOD)
    (method / "README.md").write_text("# plain\n\nThe pixels.\n")
    (method / "test.py").write_text(TEST)
    return folder


def neuco(folder: Path, *args: object) -> Said:
    """``neuco`` with the plugins of a folder, and a cache of its own, since tests change the code of one plugin."""
    return command.neuco(*args, path=folder, env={"NEUCO_CACHE": str(folder / "cache")})


@contextmanager
def plugins_of(folder: Path) -> Iterator[None]:
    """This process sees the plugins of a folder as well, as they are now, and forgets them afterwards."""
    trees = (neuco_tasks, neuco_methods)
    paths, modules = [list(tree.__path__) for tree in trees], set(sys.modules)
    sys.path.insert(0, str(folder))
    for tree, path in zip(trees, paths, strict=True):
        tree.__path__ = extended(path, tree.__name__)
    importlib.invalidate_caches()
    catalog.cache_clear()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for tree, path in zip(trees, paths, strict=True):
            tree.__path__ = path
        for name in set(sys.modules) - modules:
            inside = str(getattr(sys.modules[name], "__file__", "")).startswith(f"{folder}{os.sep}")
            if inside or name.startswith(("neuco_tasks.", "neuco_methods.")):
                del sys.modules[name]
        catalog.cache_clear()


def quick_neuco(folder: Path, *args: object) -> Said:
    """The same in this process, which costs no start."""
    with plugins_of(folder):
        return command.neuco_here(*args, env={"NEUCO_CACHE": str(folder / "cache")})


def run_pytest(folder: Path, *args: object) -> Said:
    """``pytest`` as in a project of its own, with the plugins of a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "NEUCO_CACHE": str(folder / "cache")}
    # In a folder of its own: else pytest removes, when it ends, what earlier runs of all tests have left.
    options = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--basetemp", str(folder / "own"), *UNUSED]
    line = [sys.executable, "-m", "pytest", *options, *map(str, args)]
    done = subprocess.run(line, capture_output=True, text=True, env=environment)
    return Said(done.returncode, done.stdout, done.stderr)


def check(folder: Path, *args: str) -> dict[str, dict[str, Any]]:
    """``neuco check … --json`` as check → finding; the exit code must agree with the findings."""
    done = quick_neuco(folder, "check", *args, "--json")
    if not done.out:
        raise AssertionError(done.err)
    findings = {row["check"]: row for row in json.loads(done.out)}
    statuses = {row["status"] for row in findings.values()}
    lacking = any(row["lacking"] for row in findings.values())
    if done.code != (1 if "failed" in statuses or "ok" not in statuses else 8 if lacking else 0):
        raise AssertionError(f"exit code {done.code} for {findings}")
    return findings


# Ways to spoil the good task and the good method.
Spoil = Callable[[Path], None]
TASK_FILE, METHOD_FILE = "neuco_tasks/good/__init__.py", "neuco_methods/plain/__init__.py"


def edit(name: str, old: str, new: str) -> Spoil:
    """Replace some text of a file; it must be there, or the test would test nothing."""

    def spoil(folder: Path) -> None:
        text = (folder / name).read_text()
        if old not in text:
            raise AssertionError(f"{old!r} is not in {name}")
        (folder / name).write_text(text.replace(old, new))

    return spoil


def write(name: str, text: str) -> Spoil:
    return lambda folder: (folder / name).write_text(text) and None


def new_labels(text: str) -> Spoil:
    """Other labels, properly declared."""

    def spoil(folder: Path) -> None:
        (folder / "neuco_tasks/good/labels.csv").write_text(text)
        path = folder / "neuco_tasks/good/__init__.py"
        digest = hashlib.sha256(text.encode()).hexdigest()
        source = re.sub(r'sha256="\w+", size=\d+', f'sha256="{digest}", size={len(text.encode())}', path.read_text())
        path.write_text(source)

    return spoil


def column(value: Callable[[int], object]) -> str:
    return "\n".join(["id,label", *(f"s{i:03d},{value(i)}" for i in range(COUNT)), ""])


def statistic(function: str) -> str:
    """Labels that a plain statistic of the image tells exactly."""
    images = [np.random.default_rng(i).standard_normal((1, 1, 4, 4)).astype("float32") for i in range(150)]
    values = [float(getattr(image.astype(float), function)()) for image in images]
    return "\n".join(["id,label", *(f"s{i:03d},{value:.6f}" for i, value in enumerate(values)), ""])


def only_good(folder: Path) -> None:
    """A band that no other dataset has, so that the method is run on this one alone."""
    for name in (TASK_FILE, METHOD_FILE, "neuco_tasks/good/cubes.py"):
        edit(name, "grey/0", "odd/0")(folder)


def judged_by(metric: str, score: float, tolerance: float = 0.1) -> Spoil:
    """The good task with another metric, and a baseline measured with it."""

    def spoil(folder: Path) -> None:
        edit(TASK_FILE, 'unit="1"', f'unit="1", metric="{metric}"')(folder)
        edit(TASK_FILE, "score=0.84, tolerance=0.05", f"score={score}, tolerance={tolerance}")(folder)

    return spoil
