"""A small method and task in plugin folders, with records and a cache of them, run without processes.

An engine is whatever runs steps, and a "new process" begins with no module of the plugins imported: a case takes a
fraction of a second.
"""

from __future__ import annotations

import hashlib
import importlib
import itertools
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import neuco_methods
import neuco_tasks
from neuco_core.plugins import catalog
from neuco_core.records.model import Record
from neuco_core.records.store import find_record, read_all, write_records
from neuco_core.runs.engine import StepLimits
from neuco_core.runs.messages import Group, Result, Step
from neuco_core.runs.plan import make_plan
from neuco_core.runs.run import run_plan
from neuco_core.runs.verify import TOLERANCE, Verified, verify_records
from neuco_core.runs.worker import WorkerSteps

SAMPLES, PROTOCOL = 300, "ridge+k=3"  # more than one chunk of the encoder's cache
IDS = tuple(f"s{i:03}" for i in range(SAMPLES))
FILES = {
    "neuco_tasks/small/__init__.py": """
import numpy as np
from neuco_core import Dataset, Remote, Task, hookimpl
from neuco_core.cubes.cubes import CubeBatch

class Cubes:
    version, bands, seasons = "1", ("x/a", "x/b"), ("s",)
    def ids(self):
        return tuple(f"s{i:03}" for i in range(300))
    def read(self, ids):
        rows = [np.random.default_rng(int(name[1:])).normal(size=(1, 2, 2, 2)) for name in ids]
        return CubeBatch(tuple(ids), np.stack(rows).astype(np.float32), self.bands, self.seasons)

@hookimpl
def neuco_datasets():
    yield Dataset(id="small", bands=("x/a", "x/b"), seasons=("s",), cubes=Cubes)
    yield Dataset(id="small_bare", bands=("other/a",), seasons=("s",), cubes=Cubes)

@hookimpl
def neuco_tasks():
    source = Remote("pkg://neuco_tasks.small/labels.csv", sha256="{sha256}")
    for name in ("a", "b"):
        yield Task(id=f"small_{name}", dataset="small", kind="regression", source=source, columns=(name,))
    yield Task(id="small_bare", dataset="small_bare", kind="regression", source=source, columns=("a",))
""",
    "neuco_methods/small/__init__.py": """
from neuco_core import Method, hookimpl

def make(size):
    from neuco_methods.small.encoder import Encoder
    return Encoder(size)

@hookimpl
def neuco_methods():
    for name, size in (("one", 1.0), ("two", 2.0)):
        yield Method(id=f"small_{name}", encoder=make, params={"size": size}, bands=("x",))
""",
    "neuco_methods/small/encoder.py": """
from importlib import resources
import numpy as np
from neuco_methods.beside.tool import SHARE
from .deep.inner import BEND
from .helper import FACTOR

def number(name):
    file = resources.files("neuco_methods.small").joinpath(name)
    return float(file.read_text()) if file.is_file() else 1.0

class Encoder:
    def __init__(self, size):
        self.sizes = [size * FACTOR, BEND * SHARE, number("weights.npy"), number("linked/w"), outside()]
    def encode(self, batch):
        pixels = batch.values.reshape(len(batch.ids), -1)
        return np.stack([np.sin(size * pixels[:, i % 8] + pixels[:, i % 5]) for i, size in enumerate(self.sizes)], 1)

def outside():
    from pathlib import Path
    path = Path("OUTSIDE")
    return float(path.read_text()) if path.is_file() else 1.0
""",
    "neuco_methods/small/helper.py": '"""1.0"""\nFACTOR = float(__doc__)\n',
    "neuco_methods/small/deep/__init__.py": "",
    "neuco_methods/small/deep/inner.py": "BEND = 1.0\n",
    "neuco_methods/beside/__init__.py": "",
    "neuco_methods/beside/tool.py": "SHARE = 1.0\n",
}  # fmt: skip


class Serial:
    """An engine without processes."""

    name = "serial"
    progress = None

    def run(self, groups: Sequence[Group], limits: StepLimits) -> Iterator[tuple[Step, Result]]:
        for group in groups:
            worker = WorkerSteps()
            for step in group.steps:
                yield step, worker.do(step)


class Small:
    """The plugins, a cache and a registry below one folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = folder, monkeypatch
        self.cache, self.registry = folder / "cache", folder / "registry"
        self.method = folder / "neuco_methods" / "small"
        for package in (neuco_methods, neuco_tasks):
            monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder / package.__name__)])
        monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def make(self) -> None:
        """The plugins as they are at first, with records and a cache of them."""
        shutil.rmtree(self.folder, ignore_errors=True)
        first = self.folder.with_name("first")
        if first.exists():  # made once, for all tests
            shutil.copytree(first, self.folder, symlinks=True)
            return
        pixels = np.stack([np.random.default_rng(i).normal(size=8) for i in range(SAMPLES)])
        noise = np.random.default_rng(SAMPLES).normal(size=(SAMPLES, 2))
        columns = np.sin(pixels[:, :1] + pixels[:, :1]) + pixels[:, 1:2] + 0.5 * noise
        labels = "\n".join(["id,a,b", *(f"{name},{a},{b}" for name, (a, b) in zip(IDS, columns, strict=True)), ""])
        sha256 = hashlib.sha256(labels.encode()).hexdigest()
        for name, text in FILES.items():
            self.write(name, text.replace("{sha256}", sha256).replace("OUTSIDE", str(self.folder / "outside")))
        self.write("neuco_tasks/small/labels.csv", labels)
        self.write("elsewhere/weights", "1.0")
        (self.method / "weights.npy").symlink_to(self.folder / "elsewhere/weights")
        self.score(self.registry, self.cache)
        shutil.copytree(self.folder, first, symlinks=True)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new))

    def new_process(self, cache: Path) -> None:
        for name in [name for name in sys.modules if name.startswith(("neuco_tasks.small", "neuco_methods.small",
                                                                      "neuco_methods.beside"))]:  # fmt: skip
            del sys.modules[name]
        importlib.invalidate_caches()
        catalog.catalog.cache_clear()
        self.patch.setenv("NEUCO_CACHE", str(cache))

    def score(self, registry: Path, cache: Path, *, fresh: bool = False) -> dict[str, Record]:
        """What ``neuco score`` leaves in the registry, by method and task."""
        self.new_process(cache)
        methods = [catalog.load_method(name) for name in ("small_one", "small_two")]
        tasks = [catalog.load_task(name) for name in ("small_a", "small_b", "small_bare")]
        plan = make_plan(methods, tasks, catalog.load_protocol(PROTOCOL), registry, fresh=fresh)
        shared = self.folder / "shared"
        shutil.rmtree(shared, ignore_errors=True)
        shared.mkdir()
        list(run_plan(plan, registry, Serial(), StepLimits(), shared=str(shared)))
        return {f"{record.method} {record.task}": record for record in read_all(registry)}

    def truth(self) -> dict[str, Record]:
        """A fresh run on an empty cache and an empty registry, with nothing compiled."""
        for name in ("truth", "empty"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for folder in list(self.folder.rglob("__pycache__")):
            for path in folder.glob("*.pyc"):
                path.unlink()
        return self.score(self.folder / "truth", self.folder / "empty")

    def verify(self, registry: Path | None = None, *, fresh: bool = True) -> list[Verified]:
        self.new_process(self.cache)
        shared = self.folder / "verified"
        shutil.rmtree(shared, ignore_errors=True)
        shared.mkdir()
        records = read_all(registry or self.registry)
        return list(verify_records(records, Serial(), StepLimits(), fresh=fresh, shared=str(shared)))

    def cached(self, method: str = "small_one") -> Path:
        (file,) = (self.cache / "encoded" / method / "small").glob("*.npz")
        return file

    def record(self, change: Callable[[Record], Record]) -> None:
        """Rewrite a record, with a digest that is right."""
        record = find_record(self.registry, ("small_one", "small_a", PROTOCOL))
        assert record is not None
        write_records(self.registry, [change(record)])

    def now(self) -> dict[str, object]:
        """The inputs that a record of small_one on small_a would have now: what a forger can find out."""
        return dict(self.truth()["small_one small_a"].inputs)


def verdict(checks: Sequence[Verified]) -> str:
    return next(check.verdict for check in checks if check.record.key[:2] == ("small_one", "small_a"))


def same_numbers(record: Record, truth: Record) -> bool:
    pairs = itertools.zip_longest(record.per_split, truth.per_split, fillvalue=np.inf)
    return all(abs(a - b) <= TOLERANCE for a, b in pairs)  # type: ignore[operator]
