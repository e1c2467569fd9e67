"""A small world of plugins: methods, tasks and a probe in folders on the Python path, and ways to run neuco in it."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from neuco_core.files import canonical
from neuco_core.records.store import read_all
from neuco_core.testing import TinyCubes

PROTOCOL = "neuco-2025+k=3,probe=toy_probe"
TASKS = tuple(f"toy_{letter}" for letter in "abcdef")
METHODS = ("toy_one", "toy_two", "toy_three")
SAMPLES = 40
IDS = TinyCubes(SAMPLES).ids()
ROOT = Path(__file__).resolve().parents[2]

TASK_PLUGIN = '''
"""A dataset of numbers and its tasks."""
import os
from neuco_core import Dataset, Remote, Task, hookimpl

FILES = {files!r}

def cubes():
    from neuco_core.testing import TinyCubes
    return TinyCubes({samples}, ("x/a", "x/b"), ("s",), 2)

def loader(path):
    import csv
    with open(os.environ["TOY_LOG"] + ".labels", "a") as log:
        log.write(f"{{os.getpid()}} {{path.name}}\\n")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {{name: [row[name] for row in rows] for name in rows[0]}}

@hookimpl
def neuco_datasets():
    yield Dataset(id="toy", bands=("x/a", "x/b"), seasons=("s",), cubes=cubes)
    yield Dataset(id="toy_bare")

@hookimpl
def neuco_tasks():
    for name, (url, sha256) in FILES.items():
        yield Task(id=name, dataset="toy", kind="regression", source=Remote(url, sha256=sha256), loader=loader)
    yield Task(id="toy_unpinned", dataset="toy", kind="regression", source=Remote("https://127.0.0.1:9/x.csv"))
    yield Task(id="toy_bare_task", dataset="toy_bare", kind="regression", source=Remote(*FILES["toy_a"]))
'''

METHOD_PLUGIN = '''
"""Methods that differ by their dimension, by which the probe can tell them apart."""
from neuco_core import Method, hookimpl
from neuco_core.specs import Probe

def encoder(dim):
    from neuco_methods.toy.work import Encoder
    return Encoder(dim)

@hookimpl
def neuco_methods():
    for name, dim in (("one", 2), ("two", 3), ("three", 4), ("evil", 5), ("broken", 6), ("aborting", 7)):
        yield Method(id=f"toy_{name}", encoder=encoder, params={"dim": dim}, dim=dim)

@hookimpl
def neuco_probes():
    yield Probe(id="toy_probe", factory="neuco_methods.toy.work:ToyProbe")
'''

WORK = '''
import os, signal, sys, time
import numpy as np
from neuco_core.scoring.probes import Fit

class Encoder:
    def __init__(self, dim):
        self.dim = dim

    def encode(self, batch):
        if self.dim == 6:
            raise ValueError("this encoder never works")
        if self.dim == 7:
            os.abort()
        log("embed", self.dim)
        return batch.values.reshape(len(batch.ids), -1)[:, : self.dim]

class ToyProbe:
    """Least squares, in closed form; some cells of the evil method do harm."""

    def __init__(self, protocol):
        pass

    def prepare(self, splits, threads):
        x = splits[0].x
        task = "toy_" + "abcdef"[SAMPLES - len(x)]
        log("cell", x.shape[1], task)
        time.sleep(float(os.environ.get("TOY_SLEEP", "0")))
        if x.shape[1] == 5 and not os.environ.get("TOY_GOOD"):
            harm(task)

    def fit(self, split):
        x = np.column_stack([split.x, np.ones(len(split.x))])
        weights = np.linalg.lstsq(x[split.train], split.y[split.train], rcond=None)[0]
        return Fit((x[split.test] @ weights)[None])

def harm(task):
    if task == "toy_a":
        os.abort()
    if task == "toy_b":
        eaten = []
        while True:
            eaten.append(np.ones(4_000_000))
    if task == "toy_c":
        time.sleep(10**6)
    if task == "toy_d":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "toy_e":
        sys.exit("goodbye")
    if task == "toy_f" and os.environ.get("TOY_PARENT"):
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)

def log(*words):
    handle = os.open(os.environ["TOY_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, (" ".join(map(str, words)) + "\\n").encode())
    os.close(handle)
'''.replace("SAMPLES", str(SAMPLES))


class World:
    """The plugins below ``folder``, a cache, and a registry for each run that wants its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        files = {name: self._labels(name, number) for number, name in enumerate(TASKS)}
        self.write("neuco_tasks/toy/__init__.py", TASK_PLUGIN.format(files=files, samples=SAMPLES))
        self.write("neuco_methods/toy/__init__.py", METHOD_PLUGIN)
        self.write("neuco_methods/toy/work.py", WORK)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def _labels(self, name: str, seed: int) -> tuple[str, str]:
        labels = np.random.default_rng(seed).normal(size=SAMPLES)
        # Each task has another number of samples, by which the probe can tell them apart.
        lines = [f"{name},{label}" for name, label in zip(IDS[seed:], labels[seed:], strict=True)]
        path = self.write(f"labels/{name}.csv", "id,label\n" + "\n".join(lines) + "\n")
        return path.as_uri(), hashlib.sha256(path.read_bytes()).hexdigest()

    def env(self, registry: str = "registry", **more: str) -> dict[str, str]:
        settings = {
            "NEUCO_REGISTRY": str(self.folder / registry),
            "NEUCO_CACHE": str(self.folder / "cache"),
            "NEUCO_CONFIG": str(self.folder / "config"),
            "PYTHONPATH": os.pathsep.join([str(self.folder), str(ROOT)]),
            "TOY_LOG": str(self.log),
        }
        kept = {key: value for key, value in os.environ.items() if not key.startswith("NEUCO_")}
        return {**kept, **settings, **more}

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-P", "-m", "neuco_core.cli", *words]

    def start(self, *words: str, registry: str = "registry", **env: str) -> subprocess.Popen[str]:
        """The command in a session of its own, as from a terminal."""
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        line, env = self.command(*words), self.env(registry, **env)
        return subprocess.Popen(line, env=env, cwd=self.folder, start_new_session=True, **pipes)

    def neuco(self, *words: str, registry: str = "registry", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words), env=self.env(registry, **env), capture_output=True, text=True, timeout=300
        )

    def score(self, *words: str, methods: tuple[str, ...] = METHODS, **env: str) -> subprocess.CompletedProcess[str]:
        return self.neuco(*self.score_words(*words, methods=methods), **env)

    def score_words(self, *words: str, methods: tuple[str, ...] = METHODS) -> list[str]:
        chosen = [word for name in methods for word in ("--method", name)]
        chosen += [word for name in TASKS for word in ("--task", name)]
        return ["score", "--all", "--protocol", PROTOCOL, *chosen, *words]

    def records(self, registry: str = "registry") -> dict[str, str]:
        """All records as JSON, by method and task; without what tells who made a record, and when."""
        records = read_all(self.folder / registry)
        return {f"{r.method}/{r.task}": canonical(replace(r, provenance={}).to_json()) for r in records}

    def logged(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()
